// SPDX-License-Identifier: Apache-2.0
// Quantization in float64: a quotient that is half-way is then exactly so.
#include "runtime/ops/pointwise/quantized_values.h"

#include <array>
#include <cmath>

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/map.h"

namespace parallax::runtime {
namespace {

struct CenteredAndScaled {
  PX_HD double operator()(double x, double zero, double scale) const { return (x - zero) * scale; }
};

struct QuantizedNumber {
  double step, zero, lowest, highest;
  PX_HD double operator()(double y) const {
    const double quotient = y / step;
    const double rounded = (quotient != quotient ? 0.0 : std::nearbyint(quotient)) + zero;  // NaN counts as 0
    return rounded < lowest ? lowest : rounded < highest ? rounded : highest;
  }
};

// Input `input` as it is broadcast over `shape`; `otherwise` where there is none.
Result<Tensor> parameter(OpContext<CompiledDevice>& op, int64_t input, const Shape& shape, double otherwise) {
  if (input < 0 || !op.has_input(input)) return op.resident(Tensor::scalar<double>(otherwise));
  const int64_t count = op.input(input).element_count();
  const int64_t last = shape.rank() == 0 ? 1 : shape[shape.rank() - 1];
  if (count != 1 && (shape.rank() == 0 || count != last))
    return wrong_input(op, input, "be one number or have one for each index of the last axis of {}", shape.to_string());
  return op.resident(op.input(input).reshaped(count == 1 ? Shape{} : Shape{count}));
}

struct Range {
  double lowest, highest;
};

Result<Range> range_of(DType dtype) {
  switch (dtype) {
    case DType::int8:
      return Range{-128, 127};
    case DType::uint8:
      return Range{0, 255};
    case DType::int16:
      return Range{-32768, 32767};
    case DType::uint16:
      return Range{0, 65535};
    default:
      return unsupported(
          fmt::format("quantizing to {} has no kernel here; --fallback=reference runs it", name_of(dtype)));
  }
}

}  // namespace

Result<Tensor> real_values(OpContext<CompiledDevice>& op, const QuantizedInput& input) {
  return real_values(op, op.input(input.values), input);
}

Result<Tensor> real_values(OpContext<CompiledDevice>& op, const Tensor& quantized, const QuantizedInput& input) {
  const Tensor x = PX_TRY(op.resident(quantized));
  const Tensor zero = PX_TRY(parameter(op, input.zero_point, x.shape(), 0.0));
  const Tensor scale = PX_TRY(parameter(op, input.scale, x.shape(), 1.0));
  Tensor real = PX_TRY(op.queue().allocate(DType::float64, x.shape()));
  map_as<double, double>(op.queue(), CenteredAndScaled{}, writable(real),
                         std::array<TensorView, 3>{x.view(), zero.view(), scale.view()});
  return real;
}

Result<Tensor> quantized_values(OpContext<CompiledDevice>& op, const Tensor& y, int64_t scale, int64_t zero_point,
                                DType dtype) {
  const double step = PX_TRY(op.real_of_input(scale));
  const double zero = op.has_input(zero_point) ? PX_TRY(op.real_of_input(zero_point)) : 0.0;
  const Range range = PX_TRY(range_of(dtype));
  Tensor result = PX_TRY(op.queue().allocate(dtype, y.shape()));
  const QuantizedNumber quantize{step, zero, range.lowest, range.highest};
  map_as<double, double>(op.queue(), quantize, writable(result), std::array<TensorView, 1>{y.view()});
  return result;
}

}  // namespace parallax::runtime
