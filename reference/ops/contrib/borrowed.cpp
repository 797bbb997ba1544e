// SPDX-License-Identifier: Apache-2.0
// com.microsoft's older forms of operators that ai.onnx has: Pad, Range, GridSample, ReduceSumInteger, UnfoldTensor,
// CropAndResize, SampleOp.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"
#include "reference/ops/contrib/shared.h"
#include "reference/ops/families.h"
#include "reference/ops/inner_op.h"
#include "reference/ops/map.h"
#include "reference/ops/move.h"

namespace parallax::reference {
namespace {

// The coordinate of a corner-aligned sample of `count` between `low` and `high`, which are parts of `length` - 1.
double sample_coordinate(double low, double high, int64_t length, int64_t count, int64_t index) {
  const auto span = static_cast<double>(length - 1);
  if (count == 1) return 0.5 * (low + high) * span;
  return low * span + static_cast<double>(index) * (high - low) * span / static_cast<double>(count - 1);
}

struct Plane {
  std::span<const double> numbers;
  int64_t height, width;

  double at(int64_t y, int64_t x) const { return numbers[static_cast<size_t>(y * width + x)]; }

  double bilinear(double y, double x) const {
    const auto top = static_cast<int64_t>(std::floor(y));
    const auto left = static_cast<int64_t>(std::floor(x));
    const int64_t bottom = std::min(top + 1, height - 1);
    const int64_t right = std::min(left + 1, width - 1);
    const double dy = y - static_cast<double>(top);
    const double dx = x - static_cast<double>(left);
    return (1 - dy) * ((1 - dx) * at(top, left) + dx * at(top, right)) +
           dy * ((1 - dx) * at(bottom, left) + dx * at(bottom, right));
  }
};

// ContribOperators.md, com.microsoft.Pad: pads may also be [1, 2 * rank].
Status op_contrib_pad(OpContext& op) {
  const Tensor& pads = op.input(1);
  if (pads.shape().rank() > 2 || (pads.shape().rank() == 2 && pads.shape()[0] != 1))
    return wrong_input(op, 1, "have rank 1, or be [1,length]");
  std::vector<Value> inputs{op.value(0), pads.reshaped(Shape{pads.element_count()})};
  if (op.has_input(2)) {
    if (op.input(2).element_count() != 1) return wrong_input(op, 2, "be one number");
    inputs.emplace_back(op.input(2).reshaped(Shape{}));
  }
  const InnerOp pad{"Pad", 13, {string_attribute("mode", op.string_attribute("mode"))}};
  return set_rounded(op, 0, op.input(0).dtype(), PX_TRY(run_inner(op, pad, std::move(inputs))));
}

// com.microsoft.Range: delta is 1 where it is absent; each input may be [1].
Status op_contrib_range(OpContext& op) {
  const DType dtype = op.input(0).dtype();
  std::vector<Value> inputs;
  for (size_t index = 0; index < 3; ++index) {
    if (op.has_input(index)) {
      if (op.input(index).element_count() != 1) return wrong_input(op, index, "be one number");
      inputs.emplace_back(op.input(index).reshaped(Shape{}));
      continue;
    }
    Tensor one = PX_TRY(Tensor::allocate(op.carried(dtype), Shape{}));
    const double value = 1;
    const int64_t whole = 1;
    is_floating(dtype) ? store<double>(one, 0, std::span(&value, 1)) : store<int64_t>(one, 0, std::span(&whole, 1));
    inputs.emplace_back(std::move(one));
  }
  const Tensor range = PX_TRY(run_inner(op, {"Range", 11}, std::move(inputs)));
  return is_floating(dtype) ? set_rounded(op, 0, dtype, range) : op.set_output(0, range);
}

// com.microsoft.GridSample: that of ai.onnx 16.
Status op_contrib_grid_sample(OpContext& op) {
  if (!is_floating(op.input(0).dtype())) return unsupported("X holds no floats; only floats have a function here");
  const InnerOp sample{"GridSample",
                       16,
                       {string_attribute("mode", op.string_attribute("mode")),
                        string_attribute("padding_mode", op.string_attribute("padding_mode")),
                        int_attribute("align_corners", op.int_attribute("align_corners"))}};
  const Tensor y = PX_TRY(run_inner(op, sample, {op.value(0), op.value(1)}));
  return set_rounded(op, 0, op.input(0).dtype(), y);
}

// com.microsoft.ReduceSumInteger: the sum as 32 bits, signed or not as the input is.
Status op_contrib_reduce_sum_integer(OpContext& op) {
  const Tensor& data = op.input(0);
  Tensor wide = PX_TRY(Tensor::allocate(DType::int64, data.shape()));
  load_int64s(data, 0, wide.mutable_as<int64_t>());
  const std::vector<int64_t> axes = op.find_ints("axes").value_or(std::vector<int64_t>{});
  const InnerOp sum{
      "ReduceSum", 11, {ints_attribute("axes", axes), int_attribute("keepdims", op.int_attribute("keepdims"))}};
  const Tensor y = PX_TRY(run_inner(op, sum, {wide}));
  return op.set_output(0, data.dtype() == DType::uint8 ? DType::uint32 : DType::int32, y.shape(), y.as<int64_t>());
}

// com.microsoft.UnfoldTensor: all slices of `size` elements, `step` elements from each other, along `dim`; the slice is
// a new last axis.
Status op_contrib_unfold_tensor(OpContext& op) {
  const Tensor& input = op.input(0);
  const size_t dim = PX_TRY(normalize_axis(op.int_attribute("dim"), input.shape().rank()));
  const int64_t size = op.int_attribute("size");
  const int64_t step = op.int_attribute("step");
  const int64_t length = input.shape()[dim];
  if (size < 1 || step < 1 || size > length)
    return execution_error(fmt::format(
        "attribute 'size' is {} and 'step' is {}; they must be 1 or more, and size at most {}, that of axis {}", size,
        step, length, dim));
  std::vector<int64_t> dims(input.shape().begin(), input.shape().end());
  dims[dim] = (length - size) / step + 1;
  dims.push_back(size);
  std::vector<int64_t> strides = strides_of(input.shape());
  strides.push_back(strides[dim]);
  strides[dim] *= std::min(step, length);  // a longer step leads nowhere
  const Shape shape = PX_TRY(Shape::create(dims));
  Tensor output = PX_TRY(op.allocate(input.dtype(), shape));
  gather_strided(input, 0, strides, output);
  return op.set_output(0, std::move(output));
}

// com.microsoft.CropAndResize: samples at the corners of each box and evenly between; a box of one sample is sampled in
// its middle. Samples outside the feature map are the extrapolation value.
Status op_contrib_crop_and_resize(OpContext& op) {
  const Shape& feature_map = op.input(0).shape();
  const Shape& rois = op.input(1).shape();
  const std::vector<int64_t> batches = to_int64s(op.input(2));
  const std::vector<int64_t> size = to_int64s(op.input(3));
  const std::string mode = op.string_attribute("mode");
  if (mode != "bilinear" && mode != "nearest")
    return as_invalid_model(wrong_attribute("mode", mode, "be bilinear or nearest"));
  if (feature_map.rank() != 4 || rois.rank() != 2 || rois[1] != 4 || static_cast<int64_t>(batches.size()) != rois[0] ||
      size.size() != 2 || size[0] < 1 || size[1] < 1)
    return wrong_input(
        op, 1, "be [n,4] for batch_indices of n ({}), X of rank 4 ({}) and a positive crop_size of two entries ({})",
        batches.size(), feature_map.to_string(), dims_text(size));
  const std::vector<int64_t> dims{rois[0], feature_map[1], size[0], size[1]};
  const Shape shape = PX_TRY(Shape::create(dims));
  Tensor output = PX_TRY(op.allocate(op.input(0).dtype(), shape));
  const Numbers<double> x(op.input(0)), boxes(op.input(1));
  const double outside = op.float_attribute("extrapolation_value");
  for (int64_t at = 0; at < shape.element_count(); ++at) {
    const int64_t roi = at / size[1] / size[0] / feature_map[1];
    const int64_t batch = batches[static_cast<size_t>(roi)];
    if (batch < 0 || batch >= feature_map[0])
      return wrong_value("an entry of batch_indices", batch, "be in [0, {}), the batch of X", feature_map[0]);
    const int64_t channel = batch * feature_map[1] + at / size[1] / size[0] % feature_map[1];
    const auto area = static_cast<size_t>(feature_map[2] * feature_map[3]);
    const Plane plane{x.span().subspan(static_cast<size_t>(channel) * area, area), feature_map[2], feature_map[3]};
    const double row =
        sample_coordinate(boxes[roi * 4], boxes[roi * 4 + 2], feature_map[2], size[0], at / size[1] % size[0]);
    const double column =
        sample_coordinate(boxes[roi * 4 + 1], boxes[roi * 4 + 3], feature_map[3], size[1], at % size[1]);
    const bool inside = row >= 0 && row <= static_cast<double>(feature_map[2] - 1) && column >= 0 &&
                        column <= static_cast<double>(feature_map[3] - 1);
    double value = outside;
    if (inside && mode == "bilinear") value = plane.bilinear(row, column);
    if (inside && mode == "nearest") {
      value = plane.at(static_cast<int64_t>(std::round(row)), static_cast<int64_t>(std::round(column)));
    }
    store<double>(output, at, std::span(&value, 1));
  }
  return op.set_output(0, std::move(output));
}

// com.microsoft.SampleOp: the identity.
Status op_contrib_sample_op(OpContext& op) { return op.set_output(0, op.value(0)); }

constexpr OpRow kContribBorrowedRows[] = {
    {"CropAndResize", kMicrosoft, 1, 1, op_contrib_crop_and_resize},
    {"GridSample", kMicrosoft, 1, 1, op_contrib_grid_sample},
    {"Pad", kMicrosoft, 1, 1, op_contrib_pad},
    {"Range", kMicrosoft, 1, 1, op_contrib_range},
    {"ReduceSumInteger", kMicrosoft, 1, 1, op_contrib_reduce_sum_integer},
    {"SampleOp", kMicrosoft, 1, 1, op_contrib_sample_op},
    {"UnfoldTensor", kMicrosoft, 1, 1, op_contrib_unfold_tensor},
};

}  // namespace

OpRows contrib_borrowed_rows() { return kContribBorrowedRows; }

}  // namespace parallax::reference
