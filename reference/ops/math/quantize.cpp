// SPDX-License-Identifier: Apache-2.0
// QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear.
#include <algorithm>
#include <cmath>

#include "inspector/model/rule_errors.h"
#include "inspector/tensor/float_formats.h"
#include "reference/ops/families.h"
#include "reference/ops/map.h"
#include "reference/ops/quantized.h"

namespace parallax::reference {

std::pair<int64_t, int64_t> integer_limits(DType dtype) {
  const int bits = bits_of(dtype);
  if (info_of(dtype).kind == DTypeKind::unsigned_integer) return {0, (int64_t{1} << bits) - 1};
  return {-(int64_t{1} << (bits - 1)), (int64_t{1} << (bits - 1)) - 1};
}

double round_half_even(double value) {
  const double floor = std::floor(value);
  const double fraction = value - floor;
  if (fraction < 0.5) return std::copysign(floor, value);
  if (fraction > 0.5) return std::copysign(floor + 1, value);
  return std::copysign(std::fmod(floor, 2.0) == 0.0 ? floor : floor + 1, value);
}

int64_t quantize_number(double scaled, int64_t zero_point, DType dtype) {
  const auto [low, high] = integer_limits(dtype);
  if (std::isnan(scaled)) return zero_point;
  const double sum = round_half_even(scaled) + static_cast<double>(zero_point);
  return static_cast<int64_t>(std::clamp(sum, static_cast<double>(low), static_cast<double>(high)));
}

namespace {

// Which element of the scale belongs to element i of x: one for all, one for each slice of `axis`, or (since 21) one
// for each block of `block_size` along `axis`.
class ScaleIndex {
 public:
  static Result<ScaleIndex> create(const OpContext& op) {
    const Shape& x = op.input(0).shape();
    const Shape& scale = op.input(1).shape();
    ScaleIndex index;
    if (scale.rank() == 0 || (scale.element_count() == 1 && scale.rank() == 1)) return index;
    const size_t axis = PX_TRY(normalize_axis(op.find_int("axis").value_or(1), x.rank()));
    index.length_ = x[axis];
    index.inner_ = count_of(x, axis + 1, x.rank());
    const int64_t block = op.find_int("block_size").value_or(0);
    if (scale.rank() == 1 && (block <= 0 || x.rank() != 1)) {
      if (scale[0] != x[axis])
        return wrong_input(op, 1, "be one number or have {} elements, one for each index along axis {}", x[axis], axis);
      index.count_ = x[axis];
      return index;
    }
    bool fits = block > 0 && scale.rank() == x.rank();
    for (size_t other = 0; fits && other < x.rank(); ++other)
      fits = scale[other] == (other == axis ? x[axis] / block + (x[axis] % block != 0 ? 1 : 0) : x[other]);
    if (!fits)
      return wrong_input(
          op, 1, "be one number, one for each index of an axis, or one for each block of {} along axis {} of x {}",
          block, axis, x.to_string());
    index.block_ = block;
    index.count_ = scale[axis];
    index.blocked_ = true;
    return index;
  }

  int64_t operator()(int64_t position) const {
    if (count_ == 0) return 0;
    const int64_t along = position / inner_ % length_;
    if (!blocked_) return along;
    return (position / inner_ / length_ * count_ + along / block_) * inner_ + position % inner_;
  }

 private:
  int64_t length_ = 1, inner_ = 1, count_ = 0, block_ = 1;
  bool blocked_ = false;
};

Result<DType> quantized_type(const OpContext& op) {
  if (op.has_input(2)) return op.input(2).dtype();
  const int64_t number = op.find_int("output_dtype").value_or(0);
  if (number == 0) return DType::uint8;
  const auto dtype = dtype_from_number(number);
  const FormalParameter* y = op.node().schema->output(0);
  if (!dtype.has_value() || !y->types->contains_tensor(*dtype))
    return wrong_attribute("output_dtype", number, "be the number of an element type that y may have");
  return *dtype;
}

// The type of the division: the attribute precision, else the type of the scale; float32 for integer scales.
Result<DType> division_type(const OpContext& op) {
  const int64_t number = op.find_int("precision").value_or(0);
  if (number == 0) return is_floating(op.input(1).dtype()) ? op.input(1).dtype() : DType::float32;
  const auto dtype = dtype_from_number(number);
  if (!dtype.has_value() || !is_floating(*dtype))
    return wrong_attribute("precision", number, "be the number of a floating type");
  return *dtype;
}

// The zero points of an integer y, one for each scale.
Result<std::vector<int64_t>> zero_points(const OpContext& op, DType dtype, int64_t count) {
  if (!op.has_input(2)) return std::vector<int64_t>(static_cast<size_t>(count), 0);
  if (op.input(2).element_count() != count) return wrong_input(op, 2, "have {} elements, as many as the scale", count);
  if (is_floating(dtype)) return std::vector<int64_t>(static_cast<size_t>(count), 0);
  return to_int64s(op.input(2));
}

// y = saturate(round(x / y_scale) + y_zero_point). The quotient is rounded to the type of the division: it decides
// where ties are. For floating y, which uses no zero point, the rounding is the one of Cast to that type.
Status op_quantize_linear(OpContext& op) {
  const Tensor& x = op.input(0);
  const DType dtype = PX_TRY(quantized_type(op));
  const ScaleIndex which = PX_TRY(ScaleIndex::create(op));
  const Numbers<double> scales(op.input(1));
  const DType division = op.carried(PX_TRY(division_type(op)));
  const bool saturate = op.find_int("saturate").value_or(1) != 0;
  const std::vector<int64_t> zeros = PX_TRY(zero_points(op, dtype, scales.size()));
  Tensor output = PX_TRY(op.allocate(dtype, x.shape()));
  const Numbers<double> numbers(x);
  for_blocks(x.element_count(), 5, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      const int64_t scale = which(index);
      const double scaled = round_to_dtype(division, numbers[index] / scales[scale]);
      if (!is_floating(dtype)) {
        const int64_t value = quantize_number(scaled, zeros[static_cast<size_t>(scale)], dtype);
        store<int64_t>(output, index, std::span<const int64_t>(&value, 1));
      } else if (op.carries_double()) {
        store<double>(output, index, std::span<const double>(&scaled, 1));
      } else {
        const uint8_t bits = small_float_from_double(dtype, scaled, saturate);
        store_packed(output.mutable_data(), bits_of(dtype), index, bits);
      }
    }
  });
  return op.set_output(0, std::move(output));
}

// y = (x - x_zero_point) * x_scale, of the scale's type (or output_dtype, since 23).
Status op_dequantize_linear(OpContext& op) {
  const Tensor& x = op.input(0);
  const ScaleIndex which = PX_TRY(ScaleIndex::create(op));
  const Numbers<double> scales(op.input(1));
  const Numbers<double> numbers(x);
  std::vector<double> zeros(static_cast<size_t>(scales.size()), 0.0);
  if (op.has_input(2)) {
    if (op.input(2).element_count() != scales.size())
      return wrong_input(op, 2, "have {} elements, as many as the scale", scales.size());
    load<double>(op.input(2), 0, zeros);
  }
  DType dtype = op.input(1).dtype();
  if (const int64_t number = op.find_int("output_dtype").value_or(0); number != 0) {
    dtype = dtype_from_number(number).value_or(DType::undefined);
    if (!is_floating(dtype))
      return unsupported(
          fmt::format("attribute 'output_dtype' is {}; only floating types have a function here", number));
  }
  std::vector<double> results(static_cast<size_t>(x.element_count()));
  for (int64_t index = 0; index < x.element_count(); ++index) {
    const int64_t scale = which(index);
    results[static_cast<size_t>(index)] = (numbers[index] - zeros[static_cast<size_t>(scale)]) * scales[scale];
  }
  return op.set_output(0, dtype, x.shape(), std::span<const double>(results));
}

// The range of x, widened to hold 0, is mapped onto 0 .. 255. Scale and zero point are computed in the type of x, since
// they are values of the model: each is rounded before it is used.
Status op_dynamic_quantize_linear(OpContext& op) {
  const Tensor& x = op.input(0);
  const Numbers<double> numbers(x);
  double low = 0;
  double high = 0;
  for (double value : numbers.span()) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  const DType carried = op.carried(DType::float32);
  const double scale = high == low ? 0.0 : round_to_dtype(carried, round_to_dtype(carried, high - low) / 255.0);
  const double zero =
      high == low ? 0.0 : std::clamp(round_half_even(round_to_dtype(carried, -low / scale)), 0.0, 255.0);
  const int64_t zero_point = std::isnan(zero) ? 0 : static_cast<int64_t>(zero);  // x held an infinity
  std::vector<int64_t> results;
  for (double value : numbers.span()) {
    const double scaled = scale == 0.0 ? 0.0 : round_to_dtype(carried, value / scale);
    results.push_back(quantize_number(scaled, zero_point, DType::uint8));
  }
  PX_TRY(op.set_output(0, DType::uint8, x.shape(), std::span<const int64_t>(results)));
  PX_TRY(op.set_output(1, DType::float32, Shape{}, std::span<const double>(&scale, 1)));
  return op.set_output(2, DType::uint8, Shape{}, std::span<const int64_t>(&zero_point, 1));
}

constexpr OpRow kQuantizeRows[] = {
    {"DequantizeLinear", kOnnx, 10, 28, op_dequantize_linear},
    {"DynamicQuantizeLinear", kOnnx, 11, 11, op_dynamic_quantize_linear},
    {"QuantizeLinear", kOnnx, 10, 28, op_quantize_linear},
    {"DequantizeLinear", kMicrosoft, 1, 1, op_dequantize_linear},
    {"QuantizeLinear", kMicrosoft, 1, 1, op_quantize_linear},
};

}  // namespace

OpRows quantize_rows() { return kQuantizeRows; }

}  // namespace parallax::reference
