// SPDX-License-Identifier: Apache-2.0
// Formulas and readings that the operators of com.microsoft share.
#pragma once

#include <cmath>
#include <optional>
#include <vector>

#include "reference/ops/op_context.h"

namespace parallax::reference {

inline double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

// x * Phi(x), Phi being the standard normal distribution's cumulative function.
inline double gelu_exact(double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }

// The approximation 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) (Hendrycks and Gimpel, "Gaussian Error Linear
// Units").
inline double gelu_tanh(double x) {
  constexpr double kPi = 3.14159265358979323846;
  const double inner = std::sqrt(2.0 / kPi) * (x + 0.044715 * x * x * x);
  return x / (1 + std::exp(-2 * inner));  // where tanh is near -1 the sum keeps no digits
}

// All numbers of an input, repeated to `shape`.
Result<std::vector<double>> broadcast_input(const OpContext& op, size_t index, const Shape& shape);

// Errors: input `index` has not this shape.
Status expect_shape(const OpContext& op, size_t index, const Shape& shape);

// A transposition that moves the channels from the last axis to the second, and back.
std::vector<int64_t> channels_first(size_t rank);
std::vector<int64_t> channels_last(size_t rank);

}  // namespace parallax::reference
