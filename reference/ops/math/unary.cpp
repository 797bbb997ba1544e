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

// The operators that are a function of the C++ library, or of kernels/elementary.h.
template <double (*kFunction)(double)>
Status each_float(OpContext& op) {
  return map_floats(op, [](double x) { return kFunction(x); });
}

template <void (*kFunction)(std::span<double>)>
Status each_block(OpContext& op) {
  return map_blocks(op, kFunction);
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

Status op_reciprocal(OpContext& op) {
  return map_floats(op, [](double x) { return 1.0 / x; });
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
    {"Abs", kOnnx, 1, 13, op_abs},
    {"Acos", kOnnx, 7, 22, each_float<std::acos>},
    {"Acosh", kOnnx, 9, 22, each_float<std::acosh>},
    {"Asin", kOnnx, 7, 22, each_float<std::asin>},
    {"Asinh", kOnnx, 9, 22, each_float<std::asinh>},
    {"Atan", kOnnx, 7, 22, each_float<std::atan>},
    {"Atanh", kOnnx, 9, 22, each_float<std::atanh>},
    {"BitwiseNot", kOnnx, 18, 18, op_bitwise_not},
    {"Ceil", kOnnx, 1, 13, each_float<std::ceil>},
    {"Cos", kOnnx, 7, 22, each_float<std::cos>},
    {"Cosh", kOnnx, 9, 22, each_float<std::cosh>},
    {"Erf", kOnnx, 9, 13, each_block<erf_each>},
    {"Exp", kOnnx, 1, 13, each_block<exp_each>},
    {"Floor", kOnnx, 1, 13, each_float<std::floor>},
    {"IsInf", kOnnx, 10, 20, op_is_inf},
    {"IsNaN", kOnnx, 9, 20, op_is_nan},
    {"Log", kOnnx, 1, 13, each_float<std::log>},
    {"Neg", kOnnx, 1, 13, op_neg},
    {"Not", kOnnx, 1, 1, op_not},
    {"Reciprocal", kOnnx, 1, 13, op_reciprocal},
    {"Round", kOnnx, 11, 22, each_float<round_half_even>},
    {"Sign", kOnnx, 9, 13, op_sign},
    {"Sin", kOnnx, 7, 22, each_float<std::sin>},
    {"Sinh", kOnnx, 9, 22, each_float<std::sinh>},
    {"Sqrt", kOnnx, 1, 13, each_float<std::sqrt>},
    {"Tan", kOnnx, 7, 22, each_float<std::tan>},
    {"Tanh", kOnnx, 1, 13, each_block<tanh_each>},
};

}  // namespace

OpRows unary_rows() { return kUnaryRows; }

}  // namespace parallax::reference
