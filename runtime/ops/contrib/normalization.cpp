// SPDX-License-Identifier: Apache-2.0
// com.microsoft's normalizations of rows on the host: SkipLayerNormalization, SkipSimplifiedLayerNormalization; and
// SimplifiedLayerNormalization, which onnxruntime writes into ai.onnx.
#include <cmath>

#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/map.h"
#include "runtime/device/cpu/rows/rows.h"
#include "runtime/ops/contributed.h"
#include "runtime/ops/families.h"
#include "runtime/ops/row_folds.h"

namespace parallax::runtime {
namespace {

using Context = OpContext<Cpu>;

// One input as a row of C, checked to have that many elements.
template <class C>
Result<std::vector<C>> row_values(Context& op, int64_t index, int64_t columns) {
  if (op.input(index).element_count() != columns)
    return wrong_input(op, index, "have {} elements, one for each column", columns);
  std::vector<C> values(static_cast<size_t>(columns));
  load_block<C>(op.input(index).dtype(), op.input(index).view().data, 0, 1, columns, values.data());
  return values;
}

// A row normalized in one go: mean, then squares of the differences from it, then scale and shift.
template <class C>
struct RowNorm {
  bool centered = true;
  C epsilon = 0;
  std::vector<C> scale = {}, bias = {};  // the bias may be empty

  void run(const C* in, C* out, C& mean, C& inverse) const {
    const auto columns = static_cast<int64_t>(scale.size());
    const C count = static_cast<C>(columns);
    mean = centered ? rows_detail::fold_row<C>(FoldSum{}, in, columns) / count : C(0);
    inverse = C(1) / std::sqrt(rows_detail::fold_row<C>(SquaredDifferenceSum<C>{mean}, in, columns) / count + epsilon);
    const C* factor = scale.data();
    const C* shift = bias.empty() ? nullptr : bias.data();
    const C m = mean, s = inverse;
    vectorized(0, columns, [=](int64_t begin, int64_t end) {
      if (shift == nullptr) {
        PX_INDEPENDENT_ITERATIONS
        for (int64_t i = begin; i < end; ++i) out[i] = (in[i] - m) * s * factor[i];
      } else {
        PX_INDEPENDENT_ITERATIONS
        for (int64_t i = begin; i < end; ++i) out[i] = (in[i] - m) * s * factor[i] + shift[i];
      }
    });
  }
};

// The statistics of rows, where they are outputs.
struct StatisticOutputs {
  MutableView mean, inverse;
  template <class C>
  void set(int64_t row, C mean_value, C inverse_value) const {
    if (mean.data != nullptr) store_block<C>(mean.dtype, mean.data, row, 1, &mean_value);
    if (inverse.data != nullptr) store_block<C>(inverse.dtype, inverse.data, row, 1, &inverse_value);
  }
};

Result<StatisticOutputs> statistic_outputs(Context& op, int64_t mean, int64_t inverse, const Shape& shape) {
  StatisticOutputs outputs;
  if (op.wants_output(mean)) outputs.mean = PX_TRY(op.make_output(mean, DType::float32, shape));
  if (op.wants_output(inverse)) outputs.inverse = PX_TRY(op.make_output(inverse, DType::float32, shape));
  return outputs;
}

Shape with_last(const Shape& shape, int64_t last) {
  std::vector<int64_t> dims(shape.begin(), shape.end());
  dims.back() = last;
  return Shape(dims);
}

// input + skip + bias, normalized row by row; the sum is output 3 where it is wanted. The skip may lack the batch.
template <class C>
Status skip_norm_as(Context& op, bool centered, int64_t beta, int64_t bias) {
  const Tensor& x = op.input(0);
  const Tensor& skip = op.input(1);
  const Ints dims(x.shape());
  if (dims.size() < 2) return wrong_input(op, 0, "have rank 2 or more");
  const int64_t columns = dims.back();
  const bool is_empty = x.element_count() == 0;
  if (!(is_empty && skip.shape() == x.shape()) &&
      (columns == 0 || skip.element_count() == 0 || x.element_count() % skip.element_count() != 0 ||
       skip.element_count() % columns != 0 || skip.shape()[skip.shape().rank() - 1] != columns))
    return wrong_input(op, 1, "broadcast to input, {}, along its first axes", x.shape().to_string());
  RowNorm<C> norm{centered, static_cast<C>(op.real("epsilon"))};
  norm.scale = PX_TRY(row_values<C>(op, 2, columns));
  if (beta >= 0 && op.has_input(beta)) norm.bias = PX_TRY(row_values<C>(op, beta, columns));
  std::vector<C> added;
  if (op.has_input(bias)) added = PX_TRY(row_values<C>(op, bias, columns));
  const StatisticOutputs statistics = PX_TRY(statistic_outputs(op, 1, 2, with_last(x.shape(), 1)));
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), x.shape()));
  MutableView sums;
  if (op.wants_output(3)) sums = PX_TRY(op.make_output(3, x.dtype(), x.shape()));
  if (is_empty) return {};
  const int64_t skip_rows = skip.element_count() / columns;
  const bool direct = x.dtype() == storage_of<C>() && skip.dtype() == storage_of<C>();
  parallel_for(x.element_count() / columns, columns * 4, [&](int64_t begin, int64_t end) {
    std::vector<C> left(static_cast<size_t>(columns)), right(left), out(left);
    for (int64_t row = begin; row < end; ++row) {
      const C* a = reinterpret_cast<const C*>(x.view().data) + row * columns;
      const C* b = reinterpret_cast<const C*>(skip.view().data) + row % skip_rows * columns;
      if (!direct) {
        load_block<C>(x.dtype(), x.view().data, row * columns, 1, columns, left.data());
        load_block<C>(skip.dtype(), skip.view().data, row % skip_rows * columns, 1, columns, right.data());
        a = left.data();
        b = right.data();
      }
      C* sum = left.data();
      const C* more = added.empty() ? nullptr : added.data();
      vectorized(0, columns, [=](int64_t first, int64_t last) {
        if (more == nullptr) {
          for (int64_t i = first; i < last; ++i) sum[i] = a[i] + b[i];
        } else {
          for (int64_t i = first; i < last; ++i) sum[i] = a[i] + b[i] + more[i];
        }
      });
      if (sums.data != nullptr) store_block<C>(sums.dtype, sums.data, row * columns, columns, sum);
      C mean = 0, inverse = 0;
      norm.run(sum, out.data(), mean, inverse);
      store_block<C>(y.dtype, y.data, row * columns, columns, out.data());
      statistics.set(row, mean, inverse);
    }
  });
  return {};
}

Status skip_layer_norm(Context& op) { return skip_norm_as<float>(op, true, 3, 4); }
Status skip_rms_norm(Context& op) { return skip_norm_as<float>(op, false, -1, 3); }

// x / sqrt(mean(x^2) + epsilon) * scale from `axis` on.
Status simplified_layer_norm(Context& op) {
  const Tensor& x = op.input(0);
  const Ints dims(x.shape());
  const int64_t axis = PX_TRY(OpCall::resolve_axis(op.integer("axis"), dims.size()));
  const int64_t columns = product(dims, axis, dims.size());
  std::vector<int64_t> kept(dims.begin(), dims.end());
  std::fill(kept.begin() + axis, kept.end(), 1);
  const StatisticOutputs statistics = PX_TRY(statistic_outputs(op, -1, 1, Shape(kept)));
  const MutableView y = PX_TRY(op.make_output_over(0, op.input(1).dtype(), x.shape(), {0}));
  if (x.element_count() == 0) return {};
  return visit_arithmetic<Floats>(x.dtype(), [&](auto zero) -> Status {
    using C = decltype(zero);
    RowNorm<C> norm{false, static_cast<C>(op.real("epsilon"))};
    norm.scale = PX_TRY(row_values<C>(op, 1, columns));
    const RowLayout rows{product(dims, 0, axis), columns, 1};
    const auto each = [&](int64_t row, const C* in, C* out) {
      C mean = 0, inverse = 0;
      norm.run(in, out, mean, inverse);
      statistics.set(row, mean, inverse);
    };
    scan_rows<C, C>(op.queue(), each, rows, y, x.view(), 2);
    return {};
  });
}

constexpr KernelRow<Cpu> kContribNormRows[] = {
    contributed_row("SkipLayerNormalization", kNarrowFloats, skip_layer_norm),
    contributed_row("SkipSimplifiedLayerNormalization", kNarrowFloats, skip_rms_norm),
    {"SimplifiedLayerNormalization", kFloats, simplified_layer_norm},
};

}  // namespace

template <>
Rows<Cpu> contrib_norm_rows() {
  return kContribNormRows;
}

}  // namespace parallax::runtime
