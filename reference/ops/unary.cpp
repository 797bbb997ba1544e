// SPDX-License-Identifier: Apache-2.0
// Elementwise functions of one input: rounding, roots, exponentials, trigonometry, tests.
#include <cmath>

#include "reference/kernels/elementary.h"
#include "reference/ops/map.h"
#include "reference/ops/ops.h"
#include "reference/ops/quantized.h"

namespace parallax::reference {
namespace {

Status test_floats(OpContext& op, bool (*test)(double)) {
  return map_one<double>(op, op.input(0), DType::bool_, 2, test);
}

}  // namespace

Status op_abs(OpContext& op) {
  return map_numbers(op, [](auto x) {
    using T = decltype(x);
    if constexpr (std::is_same_v<T, double>)
      return std::fabs(x);
    else
      return std::is_signed_v<T> && static_cast<int64_t>(x) < 0 ? wrapping_subtract(T{0}, x) : x;
  });
}

// The negative of int8's -128 is -128, as in two's complement.
Status op_neg(OpContext& op) {
  return map_numbers(op, [](auto x) {
    if constexpr (std::is_same_v<decltype(x), double>)
      return -x;
    else
      return wrapping_subtract(decltype(x){0}, x);
  });
}

// Sign(NaN) is NaN: the specification is silent, the sign of no number is no number.
Status op_sign(OpContext& op) {
  return map_numbers(op, [](auto x) {
    using T = decltype(x);
    if constexpr (std::is_same_v<T, double>) {
      if (std::isnan(x)) return x;
    }
    return static_cast<T>(static_cast<T>(x > T{0}) - static_cast<T>(x < T{0}));
  });
}

Status op_floor(OpContext& op) {
  return map_floats(op, [](double x) { return std::floor(x); });
}
Status op_ceil(OpContext& op) {
  return map_floats(op, [](double x) { return std::ceil(x); });
}
Status op_round(OpContext& op) { return map_floats(op, round_half_even); }
Status op_sqrt(OpContext& op) {
  return map_floats(op, [](double x) { return std::sqrt(x); });
}
Status op_reciprocal(OpContext& op) {
  return map_floats(op, [](double x) { return 1.0 / x; });
}
Status op_exp(OpContext& op) { return map_blocks(op, exp_each); }
Status op_log(OpContext& op) {
  return map_floats(op, [](double x) { return std::log(x); });
}
Status op_erf(OpContext& op) { return map_blocks(op, erf_each); }
Status op_sin(OpContext& op) {
  return map_floats(op, [](double x) { return std::sin(x); });
}
Status op_cos(OpContext& op) {
  return map_floats(op, [](double x) { return std::cos(x); });
}
Status op_tan(OpContext& op) {
  return map_floats(op, [](double x) { return std::tan(x); });
}
Status op_asin(OpContext& op) {
  return map_floats(op, [](double x) { return std::asin(x); });
}
Status op_acos(OpContext& op) {
  return map_floats(op, [](double x) { return std::acos(x); });
}
Status op_atan(OpContext& op) {
  return map_floats(op, [](double x) { return std::atan(x); });
}
Status op_sinh(OpContext& op) {
  return map_floats(op, [](double x) { return std::sinh(x); });
}
Status op_cosh(OpContext& op) {
  return map_floats(op, [](double x) { return std::cosh(x); });
}
Status op_tanh(OpContext& op) { return map_blocks(op, tanh_each); }
Status op_asinh(OpContext& op) {
  return map_floats(op, [](double x) { return std::asinh(x); });
}
Status op_acosh(OpContext& op) {
  return map_floats(op, [](double x) { return std::acosh(x); });
}
Status op_atanh(OpContext& op) {
  return map_floats(op, [](double x) { return std::atanh(x); });
}

Status op_not(OpContext& op) {
  return map_one<int64_t>(op, op.input(0), DType::bool_, 1, [](int64_t x) { return x == 0; });
}

Status op_bitwise_not(OpContext& op) {
  return map_numbers(op, [](auto x) {
    if constexpr (std::is_same_v<decltype(x), double>)
      return x;  // no float fits the operator's types
    else
      return static_cast<decltype(x)>(~x);
  });
}

Status op_is_nan(OpContext& op) {
  return test_floats(op, [](double x) { return std::isnan(x); });
}

Status op_is_inf(OpContext& op) {
  const bool negative = op.int_attribute("detect_negative") != 0;
  const bool positive = op.int_attribute("detect_positive") != 0;
  return map_one<double>(op, op.input(0), DType::bool_, 2,
                         [=](double x) { return std::isinf(x) && (x > 0 ? positive : negative); });
}

}  // namespace parallax::reference
