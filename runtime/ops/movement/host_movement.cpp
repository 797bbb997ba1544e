// SPDX-License-Identifier: Apache-2.0
// In either layout a part along one axis is a run of each row, whose axes are the ones before it.
#include "runtime/ops/movement/host_movement.h"

#include "runtime/device/cpu/channels_last.h"
#include "runtime/device/cpu/copy.h"
#include "runtime/device/cpu/rows/row_parts.h"
#include "runtime/ops/orders.h"

namespace parallax::runtime {
namespace {

// The rows of a tensor of that shape along `axis`.
struct RowsInBytes {
  int64_t rows = 1;
  int64_t step_bytes = 1;  // of one index along the axis
};

RowsInBytes rows_in_bytes(const Shape& shape, int64_t axis, bool channels_last, int64_t bytes_per_element) {
  const Ints dims = channels_last ? with_channels_last(Ints(shape)) : Ints(shape);
  int64_t at = axis;
  if (channels_last && axis == 1) at = dims.size() - 1;
  if (channels_last && axis > 1) at = axis - 1;
  return {product(dims, 0, at), product(dims, at + 1, dims.size()) * bytes_per_element};
}

Result<MutableView> make_output_in(OpContext<Cpu>& op, int64_t index, DType dtype, const Shape& shape,
                                   bool channels_last) {
  return channels_last ? make_channels_last_output(op, index, shape, dtype) : op.make_output(index, dtype, shape);
}

bool are_mostly_channels_last(const OpContext<Cpu>& op) {
  int64_t last = 0, all = 0;
  for (int64_t i = 0; i < op.input_count(); ++i) {
    const int64_t count = op.input(i).element_count();
    all += count;
    last += is_channels_last(op.input(i)) ? count : 0;
  }
  return 2 * last > all;
}

}  // namespace

Status join_inputs(OpContext<Cpu>& op, int64_t axis, const Shape& shape) {
  const bool channels_last = are_mostly_channels_last(op);
  const DType dtype = op.input(0).dtype();
  const RowsInBytes along = rows_in_bytes(shape, axis, channels_last, element_bytes(dtype));
  std::vector<Tensor> parts;
  std::vector<SourcePart> sources;
  for (int64_t i = 0; i < op.input_count(); ++i) {
    const Tensor& part = op.input(i);
    parts.push_back(channels_last ? PX_TRY(to_channels_last(op.queue(), part))
                                  : PX_TRY(to_row_major(op.queue(), part)));
    sources.push_back({parts.back().storage().get(), dim_of(part.shape(), axis) * along.step_bytes});
  }
  const MutableView y = PX_TRY(make_output_in(op, 0, dtype, shape, channels_last));
  join_rows(op.queue(), along.rows, sources, y.data);
  return {};
}

Status split_input(OpContext<Cpu>& op, int64_t axis, const Ints& sizes) {
  const Tensor& x = op.input(0);
  const bool channels_last = is_channels_last(x);
  const RowsInBytes along = rows_in_bytes(x.shape(), axis, channels_last, element_bytes(x.dtype()));
  std::vector<TargetPart> targets;
  for (int64_t i = 0; i < sizes.size(); ++i) {
    Ints dims(x.shape());
    dims[axis] = sizes[i];
    const Shape shape = PX_TRY(shape_of(dims));
    const MutableView y = PX_TRY(make_output_in(op, i, x.dtype(), shape, channels_last));
    targets.push_back({y.data, sizes[i] * along.step_bytes});
  }
  split_rows(op.queue(), along.rows, x.storage().get(), targets);
  return {};
}

}  // namespace parallax::runtime
