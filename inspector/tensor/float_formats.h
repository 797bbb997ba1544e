// SPDX-License-Identifier: Apache-2.0
// The narrow floating-point formats of ONNX as types, with exact conversions: every decode is exact, every encode
// rounds once, to nearest, ties to even, from double. Saturation follows the Cast operator's tables.
#pragma once

#include <bit>
#include <cstdint>

#include "inspector/tensor/dtype.h"

namespace parallax {

struct Float16 {
  uint16_t bits = 0;
};
struct BFloat16 {
  uint16_t bits = 0;
};

double float16_to_double(uint16_t bits);
float float16_to_float(uint16_t bits);
uint16_t float16_from_double(double value);  // overflow gives infinity
uint16_t float16_from_float(float value);

inline float bfloat16_to_float(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
uint16_t bfloat16_from_double(double value);
uint16_t bfloat16_from_float(float value);

// How float8e8m0 (exponent only) rounds: Cast-24's round_mode.
enum class E8M0Rounding : uint8_t { up, down, nearest };

// The 8- and 4-bit formats: `dtype` is one of the four float8 formats with a mantissa, float8e8m0 or float4e2m1.
// Decoding gives NaN and infinity where the format has them.
double small_float_to_double(DType dtype, uint8_t bits);
// Out of range: `saturate` gives the largest finite value of that sign, otherwise infinity where the format has one,
// else NaN. float4e2m1 has neither and always saturates. Source: the tables in the specification of Cast, operator set
// 19 to 25.
uint8_t small_float_from_double(DType dtype, double value, bool saturate = true,
                                E8M0Rounding rounding = E8M0Rounding::up);

// The float of the given type nearest to `value`, as a double: what rounding to a declared type means. float64 is
// identity.
double round_to_dtype(DType dtype, double value);

// Limits of a floating type: largest finite value, distance from 1 to the next value, smallest positive normal.
struct FloatLimits {
  double max_finite;
  double epsilon;
  double min_normal;
};
FloatLimits float_limits(DType dtype);

}  // namespace parallax
