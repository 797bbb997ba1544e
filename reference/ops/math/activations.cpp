// SPDX-License-Identifier: Apache-2.0
// Activation functions. Each is the formula of its operator's page in the specification.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "inspector/model/rule_errors.h"
#include "reference/kernels/elementary.h"
#include "reference/ops/families.h"
#include "reference/ops/map.h"

namespace parallax::reference {
namespace {

Status op_relu(OpContext& op) {
  return map_numbers(op, [](auto x) { return x < decltype(x){0} ? decltype(x){0} : x; });  // NaN stays NaN
}

Status op_leaky_relu(OpContext& op) {
  const double alpha = op.float_attribute("alpha");
  return map_floats(op, [=](double x) { return x < 0 ? alpha * x : x; });
}

Status op_elu(OpContext& op) {
  const double alpha = op.float_attribute("alpha");
  return map_floats(op, [=](double x) { return x < 0 ? alpha * std::expm1(x) : x; });
}

Status op_selu(OpContext& op) {
  const double alpha = op.float_attribute("alpha");
  const double gamma = op.float_attribute("gamma");
  return map_floats(op, [=](double x) { return x > 0 ? gamma * x : gamma * alpha * std::expm1(x); });
}

// max(0, x) + min(0, alpha * (exp(x / alpha) - 1))
Status op_celu(OpContext& op) {
  const double alpha = op.float_attribute("alpha");
  return map_floats(op, [=](double x) { return x > 0 ? x : alpha * std::expm1(x / alpha); });
}

Status op_sigmoid(OpContext& op) { return map_blocks(op, sigmoid_each); }

Status op_hard_sigmoid(OpContext& op) {
  const double alpha = op.float_attribute("alpha");
  const double beta = op.float_attribute("beta");
  return map_floats(op, [=](double x) { return std::clamp(alpha * x + beta, 0.0, 1.0); });
}

// x * max(0, min(1, alpha * x + beta)) with alpha = 1/6 and beta = 0.5
Status op_hard_swish(OpContext& op) {
  return map_floats(op, [](double x) { return x * std::clamp(x / 6.0 + 0.5, 0.0, 1.0); });
}

// ln(1 + e^x), written so that e^x does not overflow
Status op_softplus(OpContext& op) {
  return map_floats(op, [](double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); });
}

Status op_softsign(OpContext& op) {
  return map_floats(op, [](double x) { return x / (1.0 + std::fabs(x)); });
}

Status op_thresholded_relu(OpContext& op) {
  const double alpha = op.float_attribute("alpha");
  return map_floats(op, [=](double x) { return x > alpha ? x : 0.0; });
}

// x < -lambd: x + bias; x > lambd: x - bias; else 0. Integers are computed as numbers and truncated.
Status op_shrink(OpContext& op) {
  const double lambd = op.float_attribute("lambd");
  const double bias = op.float_attribute("bias");
  return map_numbers(op, [=](auto x) {
    const auto number = static_cast<double>(x);
    const double result = number < -lambd ? number + bias : number > lambd ? number - bias : 0.0;
    if constexpr (std::is_same_v<decltype(x), double>)
      return result;
    else
      return static_cast<decltype(x)>(truncate_to_int64(result));
  });
}

// x gate(inner(x))
template <class Inner>
Status gated(OpContext& op, void (*gate)(std::span<double>), const Inner& inner) {
  return map_blocks(op, [&](std::span<double> numbers) {
    std::array<double, kBlock> within;
    const auto values = std::span(within).first(numbers.size());
    std::ranges::transform(numbers, values.begin(), inner);
    gate(values);
    for (size_t index = 0; index < values.size(); ++index) numbers[index] *= values[index];
  });
}

// (1 + erf(z)) / 2; far below 0, where the sum keeps no digits, erfc(-z) / 2.
void half_and_half_erf_each(std::span<double> values) {
  constexpr double kFar = -2;
  std::array<double, kBlock> given;
  std::ranges::copy(values, given.begin());
  erf_each(values);
  for (size_t index = 0; index < values.size(); ++index)
    values[index] = given[index] < kFar ? 0.5 * std::erfc(-given[index]) : 0.5 * (1.0 + values[index]);
}

// Gelu-20: 0.5 x (1 + erf(x / sqrt 2)), or its approximation by tanh, for which (1 + tanh(u)) / 2 = sigmoid(2 u).
Status op_gelu(OpContext& op) {
  const std::string approximate = op.string_attribute("approximate");
  if (approximate == "tanh") {
    return gated(op, sigmoid_each,
                 [](double x) { return 2.0 * std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x); });
  }
  if (approximate != "none") return wrong_attribute("approximate", approximate, "be none or tanh");
  return gated(op, half_and_half_erf_each, [](double x) { return x / std::numbers::sqrt2; });
}

Status op_mish(OpContext& op) {
  return map_floats(op, [](double x) {
    const double softplus = x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
    return x * std::tanh(softplus);
  });
}

// Swish-24: x * sigmoid(alpha * x)
Status op_swish(OpContext& op) {
  const double alpha = op.float_attribute("alpha");
  return gated(op, sigmoid_each, [=](double x) { return alpha * x; });
}

// SwiGLU-28: Swish of the gate A, times B; the two have one shape.
Status op_swiglu(OpContext& op) {
  const Tensor& gate = op.input(0);
  const Tensor& value = op.input(1);
  const double alpha = op.float_attribute("alpha");
  if (!(gate.shape() == value.shape())) return wrong_input(op, 1, "have the shape of A, {}", gate.shape().to_string());
  return map_two<double>(op, gate, value, gate.dtype(),
                         [=](double a, double b) { return a / (1.0 + std::exp(-alpha * a)) * b; });
}

Status op_prelu(OpContext& op) {
  const Tensor& slope = op.input(1);
  // Since version 7 the slope is broadcast to X alone; before it is one number, or one for each channel (axis 1).
  Tensor aligned = slope;
  if (op.since_version() < 7 && slope.shape().rank() == 1 && op.input(0).shape().rank() > 2 &&
      slope.element_count() > 1) {
    std::vector<int64_t> dims(op.input(0).shape().rank() - 1, 1);
    dims[0] = slope.element_count();
    aligned = slope.reshaped(Shape(dims));
  }
  if (!broadcasts_to(aligned.shape(), op.input(0).shape()))
    return wrong_input(op, 1, "broadcast to the shape of X, {}", op.input(0).shape().to_string());
  return with_number_type(op.input(0).dtype(), [&](auto number) {
    using T = decltype(number);
    return map_two<T>(op, op.input(0), aligned, op.input(0).dtype(),
                      [](T x, T s) { return x < T{0} ? wrapping_multiply(x, s) : x; });
  });
}

template <class T>
Status clip_to(OpContext& op, T low, T high) {
  // min first, then max: where min > max every element becomes max (stated since version 13).
  return map_one<T>(op, op.input(0), op.input(0).dtype(), 2, [=](T x) {
    if (x < low) x = low;
    return x > high ? high : x;
  });
}

template <class T>
Result<T> bound_of(const OpContext& op, size_t index, std::string_view attribute, T otherwise) {
  if (op.since_version() < 11) return static_cast<T>(op.find_float(attribute).value_or(static_cast<double>(otherwise)));
  if (!op.has_input(index)) return otherwise;
  if (op.input(index).element_count() != 1) return wrong_input(op, index, "be one number");
  T bound{};
  load<T>(op.input(index), 0, std::span(&bound, 1));
  return bound;
}

Status op_clip(OpContext& op) {
  return with_number_type(op.input(0).dtype(), [&](auto number) -> Status {
    using T = decltype(number);
    constexpr bool floating = std::is_same_v<T, double>;
    const T lowest = floating ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
    const T highest = floating ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
    return clip_to<T>(op, PX_TRY(bound_of<T>(op, 1, "min", lowest)), PX_TRY(bound_of<T>(op, 2, "max", highest)));
  });
}

constexpr OpRow kActivationsRows[] = {
    {"Celu", kOnnx, 12, 28, op_celu},
    {"Clip", kOnnx, 1, 13, op_clip},
    {"Elu", kOnnx, 1, 22, op_elu},
    {"Gelu", kOnnx, 20, 20, op_gelu},
    {"HardSigmoid", kOnnx, 1, 22, op_hard_sigmoid},
    {"HardSwish", kOnnx, 14, 22, op_hard_swish},
    {"LeakyRelu", kOnnx, 1, 16, op_leaky_relu},
    {"Mish", kOnnx, 18, 22, op_mish},
    {"PRelu", kOnnx, 1, 16, op_prelu},
    {"Relu", kOnnx, 1, 14, op_relu},
    {"Selu", kOnnx, 1, 22, op_selu},
    {"Shrink", kOnnx, 9, 9, op_shrink},
    {"Sigmoid", kOnnx, 1, 13, op_sigmoid},
    {"Softplus", kOnnx, 1, 22, op_softplus},
    {"Softsign", kOnnx, 1, 22, op_softsign},
    {"SwiGLU", kOnnx, 28, 28, op_swiglu},
    {"Swish", kOnnx, 24, 24, op_swish},
    {"ThresholdedRelu", kOnnx, 10, 22, op_thresholded_relu},
};

}  // namespace

OpRows activations_rows() { return kActivationsRows; }

}  // namespace parallax::reference
