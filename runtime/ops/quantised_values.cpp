// Loops of quantisation in float64: a quotient that lies half-way is then seen as such.
#include "runtime/ops/quantised_values.h"

#include <cmath>

#include <fmt/format.h>

#include "runtime/device/blocks.h"

namespace parallax::runtime {
namespace {

Result<std::vector<double>> parameters(const OpCall& op, int64_t input, const Shape& shape) {
  const Tensor& tensor = op.input(input);
  const int64_t count = tensor.element_count();
  const int64_t last = shape.rank() == 0 ? 1 : shape[shape.rank() - 1];
  if (count != 1 && (shape.rank() == 0 || count != last)) {
    return execution_error(fmt::format("{} scales or zero points for a tensor of shape {}", count, shape.to_string()));
  }
  std::vector<double> values(static_cast<size_t>(count));
  load_block<double>(tensor.dtype(), tensor.view().data, 0, 1, count, values.data());
  return values;
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
      return unsupported(fmt::format("quantising to {}", name_of(dtype)));
  }
}

}  // namespace

Result<Tensor> real_values(OpContext<Cpu>& op, const QuantisedInput& input) {
  const Tensor& x = op.input(input.values);
  Tensor real = PX_TRY(op.queue().allocate(DType::float64, x.shape()));
  double* values = reinterpret_cast<double*>(writable(real).data);
  load_block<double>(x.dtype(), x.view().data, 0, 1, x.element_count(), values);
  std::vector<double> zeros{0.0}, scales{1.0};
  if (input.zero_point >= 0 && op.has_input(input.zero_point))
    zeros = PX_TRY(parameters(op, input.zero_point, x.shape()));
  if (input.scale >= 0) scales = PX_TRY(parameters(op, input.scale, x.shape()));
  for (int64_t i = 0; i < x.element_count(); ++i) {
    const auto at = static_cast<size_t>(i);
    values[i] = (values[i] - zeros[at % zeros.size()]) * scales[at % scales.size()];
  }
  return real;
}

Result<Tensor> quantised_values(OpContext<Cpu>& op, const Tensor& y, int64_t scale, int64_t zero_point, DType dtype) {
  const double step = PX_TRY(op.real_of_input(scale));
  const double zero = op.has_input(zero_point) ? PX_TRY(op.real_of_input(zero_point)) : 0.0;
  const Range range = PX_TRY(range_of(dtype));
  Tensor result = PX_TRY(op.queue().allocate(dtype, y.shape()));
  const MutableView out = writable(result);
  const double* values = reinterpret_cast<const double*>(y.view().data);
  for (int64_t i = 0; i < y.element_count(); ++i) {
    const double rounded = std::nearbyint(values[i] / step) + zero;
    const double clamped = rounded >= range.lowest ? std::fmin(rounded, range.highest) : range.lowest;
    const auto stored = static_cast<int64_t>(clamped);
    store_block<int64_t>(dtype, out.data, i, 1, &stored);
  }
  return result;
}

}  // namespace parallax::runtime
