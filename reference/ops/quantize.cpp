// QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear.
#include <algorithm>
#include <cmath>

#include "inspector/tensor/float_formats.h"
#include "reference/ops/map.h"
#include "reference/ops/ops.h"
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
    if (scale.rank() == 1) {
      if (scale[0] != x[axis]) return execution_error(fmt::format("{} scales for an axis of {}", scale[0], x[axis]));
      index.count_ = x[axis];
      return index;
    }
    const int64_t block = op.find_int("block_size").value_or(0);
    if (block <= 0 || scale.rank() != x.rank() || scale[axis] != (x[axis] + block - 1) / block) {
      return execution_error(
          fmt::format("scale {} does not fit x {} with block_size {}", scale.to_string(), x.to_string(), block));
    }
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
  if (!dtype.has_value()) return unsupported(fmt::format("output_dtype {}", number));
  return *dtype;
}

}  // namespace

// y = saturate(round(x / y_scale) + y_zero_point). The division has a type of its own (attribute precision, else the
// scale's), to which the quotient is rounded: it decides where ties lie. For floating y the rounding is the one of Cast
// to that type.
Status op_quantize_linear(OpContext& op) {
  const Tensor& x = op.input(0);
  const DType dtype = PX_TRY(quantized_type(op));
  const ScaleIndex which = PX_TRY(ScaleIndex::create(op));
  const Numbers<double> scales(op.input(1));
  const auto precision = dtype_from_number(op.find_int("precision").value_or(0));
  const DType division =
      op.carried(precision.value_or(is_floating(op.input(1).dtype()) ? op.input(1).dtype() : DType::float32));
  const bool saturate = op.find_int("saturate").value_or(1) != 0;
  const std::vector<int64_t> zeros = op.has_input(2) && !is_floating(dtype)
                                         ? to_int64s(op.input(2))
                                         : std::vector<int64_t>(static_cast<size_t>(scales.size()), 0);
  if (zeros.size() != static_cast<size_t>(scales.size()))
    return execution_error("y_scale and y_zero_point differ in shape");
  Tensor output = PX_TRY(op.allocate(dtype, x.shape()));
  const Numbers<double> numbers(x);
  for_blocks(x.element_count(), 5, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      const int64_t scale = which(index);
      const double scaled = round_to_dtype(division, numbers[index] / scales[scale]);
      if (!is_floating(dtype)) {
        const int64_t value = quantize_number(scaled, zeros[static_cast<size_t>(scale)], dtype);
        store<int64_t>(output, index, std::span<const int64_t>(&value, 1));
        continue;
      }
      // float8 may overflow to infinity or NaN where `saturate` is off.
      const bool small = !op.carries_double() && bits_of(dtype) <= 8;
      const double value =
          small ? small_float_to_double(dtype, small_float_from_double(dtype, scaled, saturate)) : scaled;
      store<double>(output, index, std::span<const double>(&value, 1));
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
      return execution_error("x_scale and x_zero_point differ in shape");
    load<double>(op.input(2), 0, zeros);
  }
  DType dtype = op.input(1).dtype();
  if (const int64_t number = op.find_int("output_dtype").value_or(0); number != 0) {
    dtype = dtype_from_number(number).value_or(DType::undefined);
    if (!is_floating(dtype)) return unsupported(fmt::format("output_dtype {}", number));
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
  const auto zero_point = static_cast<int64_t>(zero);
  std::vector<int64_t> results;
  for (double value : numbers.span()) {
    const double scaled = scale == 0.0 ? 0.0 : round_to_dtype(carried, value / scale);
    results.push_back(quantize_number(scaled, zero_point, DType::uint8));
  }
  PX_TRY(op.set_output(0, DType::uint8, x.shape(), std::span<const int64_t>(results)));
  PX_TRY(op.set_output(1, DType::float32, Shape{}, std::span<const double>(&scale, 1)));
  return op.set_output(2, DType::uint8, Shape{}, std::span<const int64_t>(&zero_point, 1));
}

}  // namespace parallax::reference
