// SPDX-License-Identifier: Apache-2.0
// Operands of Attention by heads, and keys and values with those of the past in front.
#pragma once

#include <string_view>

#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/copy.h"
#include "runtime/device/cpu/growable.h"
#include "runtime/device/cpu/products/attention_problem.h"
#include "runtime/ops/op_context.h"

namespace parallax::runtime {

// A tensor seen as [batch, heads, length, size], from rank 4 or from [batch, length, heads * size]; strides in
// elements.
struct HeadsView {
  int64_t batch = 0, heads = 0, length = 0, size = 0;
  int64_t batch_stride = 0, head_stride = 0, row_stride = 0;
  int64_t row(int64_t b, int64_t h, int64_t i) const { return b * batch_stride + h * head_stride + i * row_stride; }
  // The layout of `sharing` times as many heads, which share those stored here in groups.
  MatrixOffsets locations(int64_t sharing) const {
    MatrixOffsets all{Ints(batch * sharing), row_stride, 1};
    for (int64_t i = 0; i < all.offsets.size(); ++i) {
      all.offsets[i] = row(i / sharing, i % sharing / (sharing / heads), 0);
    }
    return all;
  }
};

inline Result<HeadsView> heads_view(const Shape& shape, int64_t heads, std::string_view name) {
  HeadsView view;
  if (shape.rank() == 4) {
    view = {shape[0], shape[1], shape[2], shape[3], shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3]};
    return view;
  }
  if (shape.rank() != 3 || heads < 1 || shape[2] % heads != 0)
    return wrong_shape(name, shape, "have rank 4, or rank 3 with a last axis that splits into {} heads", heads);
  const int64_t size = shape[2] / heads;
  return HeadsView{shape[0], heads, shape[1], size, shape[1] * shape[2], size, shape[2]};
}

// All keys or values, [batch, heads, keys, size]: the matrix of a head begins `matrix` elements after the one before.
struct CachedRows {
  MutableView view;
  int64_t matrix = 0;
  explicit CachedRows(const MutableView& all) : view(all), matrix(all.shape[2] * all.shape[3]) {}
};

// The new rows are appended to `past`, which is open, and all of them are the output. Narrow floats are copied, since
// they are converted as a whole.
template <class Device>
Result<CachedRows> append_rows(OpContext<Device>& op, const HeadsView& now, int64_t input, const Tensor& past,
                               int64_t output) {
  const Tensor all =
      PX_TRY(append(op.queue(), past, now.length,
                    {op.input(input).view().data, {now.batch_stride, now.head_stride, now.row_stride, 1}, 0}));
  op.set_output(output, all);
  const bool is_converted = bits_of(all.dtype()) < 32;
  CachedRows rows(MutableView{all.dtype(), all.shape(), all.storage().get(), {}});
  if (!is_converted) {
    rows.matrix = element_strides(all)[1];
    return rows;
  }
  const MutableView packed = PX_TRY(op.scratch(all.dtype(), all.shape()));
  copy_strided(op.queue(), element_bytes(all.dtype()), all.shape(), {packed.data, row_major_strides(all.shape()), 0},
               {all.view().data, element_strides(all), 0});
  return CachedRows(packed);
}

// past and present of K or V side by side, in the output that asks for it or in scratch memory.
template <class Device>
Result<CachedRows> present_of(OpContext<Device>& op, const HeadsView& now, int64_t input, int64_t past_input,
                              int64_t output, int64_t keys) {
  const Tensor& current = op.input(input);
  const Shape shape{now.batch, now.heads, keys, now.size};
  const int64_t past = keys - now.length;
  if (past > 0 && !(op.input(past_input).shape() == Shape{now.batch, now.heads, past, now.size}))
    return wrong_input(op, past_input, "be [{},{},{},{}], to be joined with V", now.batch, now.heads, past, now.size);
  const bool is_held = op.has_input(past_input) && is_open(op.input(past_input)) &&
                       op.input(past_input).shape() == Shape{now.batch, now.heads, past, now.size} &&
                       growing_axis(op.input(past_input)) == 2 && op.input(past_input).dtype() == current.dtype();
  if (is_held) return append_rows(op, now, input, op.input(past_input), output);
  const Ints from =
      is_growable(current) ? element_strides(current) : Ints{now.batch_stride, now.head_stride, now.row_stride, 1};
  if (is_growable(current) && past == 0 && !op.wants_output(output)) {  // all rows, as GroupQueryAttention has them
    CachedRows rows(MutableView{current.dtype(), shape, current.storage().get(), {}});
    rows.matrix = from[1];
    return rows;
  }
  const MutableView all = op.wants_output(output) ? PX_TRY(op.make_output(output, current.dtype(), shape))
                                                  : PX_TRY(op.scratch(current.dtype(), shape));
  const int64_t bytes = element_bytes(current.dtype());
  const Ints strides = row_major_strides(shape);
  if (past > 0) {
    const TensorView& held = op.input(past_input).view();
    copy_strided(op.queue(), bytes, held.shape, {all.data, strides, 0}, {held.data, element_strides(held), 0});
  }
  copy_strided(op.queue(), bytes, {now.batch, now.heads, now.length, now.size}, {all.data, strides, past * now.size},
               {current.view().data, from, 0});
  return CachedRows(all);
}

}  // namespace parallax::runtime
