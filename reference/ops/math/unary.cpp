// SPDX-License-Identifier: Apache-2.0
// Elementwise functions of one input: rounding, roots, exponentials, trigonometry, tests.
#include <cmath>

#include "reference/kernels/elementary.h"
#include "reference/ops/families.h"
#include "reference/ops/map.h"
#include "reference/ops/quantized.h"

namespace parallax::reference {
namespace {

Status test_floats(OpContext& op, bool (*test)(double)) {
  return map_one<double>(op, op.input(0), DType::bool_, 2, test);
}

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

constexpr OpRow kUnaryRows[] = {
    {"Abs", kOnnx, 1, 13, op_abs},       {"Acos", kOnnx, 7, 22, op_acos},
    {"Acosh", kOnnx, 9, 22, op_acosh},   {"Asin", kOnnx, 7, 22, op_asin},
    {"Asinh", kOnnx, 9, 22, op_asinh},   {"Atan", kOnnx, 7, 22, op_atan},
    {"Atanh", kOnnx, 9, 22, op_atanh},   {"BitwiseNot", kOnnx, 18, 18, op_bitwise_not},
    {"Ceil", kOnnx, 1, 13, op_ceil},     {"Cos", kOnnx, 7, 22, op_cos},
    {"Cosh", kOnnx, 9, 22, op_cosh},     {"Erf", kOnnx, 9, 13, op_erf},
    {"Exp", kOnnx, 1, 13, op_exp},       {"Floor", kOnnx, 1, 13, op_floor},
    {"IsInf", kOnnx, 10, 20, op_is_inf}, {"IsNaN", kOnnx, 9, 20, op_is_nan},
    {"Log", kOnnx, 1, 13, op_log},       {"Neg", kOnnx, 1, 13, op_neg},
    {"Not", kOnnx, 1, 1, op_not},        {"Reciprocal", kOnnx, 1, 13, op_reciprocal},
    {"Round", kOnnx, 11, 22, op_round},  {"Sign", kOnnx, 9, 13, op_sign},
    {"Sin", kOnnx, 7, 22, op_sin},       {"Sinh", kOnnx, 9, 22, op_sinh},
    {"Sqrt", kOnnx, 1, 13, op_sqrt},     {"Tan", kOnnx, 7, 22, op_tan},
    {"Tanh", kOnnx, 1, 13, op_tanh},
};

}  // namespace

OpRows unary_rows() { return kUnaryRows; }

}  // namespace parallax::reference
