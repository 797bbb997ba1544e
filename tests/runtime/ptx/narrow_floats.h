// SPDX-License-Identifier: Apache-2.0
// Floating numbers of fewer bits than float32, for conversions and the products of matrices.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace parallax::ptx {

struct FloatFormat {
  int exponent_bits, fraction_bits;
  bool ties_away;  // from zero, else to even
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
};
constexpr FloatFormat kFloat16{5, 10, false}, kBFloat16{8, 7, false}, kTf32{8, 10, true};

// The bits of the nearest number. NaN is all ones but for the sign, as the hardware has it.
inline uint32_t narrow_bits(const FloatFormat& format, float value) {
  const uint32_t infinity = ((1U << format.exponent_bits) - 1) << format.fraction_bits;
  const int width = 1 + format.exponent_bits + format.fraction_bits;
  if (std::isnan(value)) return (1U << (width - 1)) - 1;
  const uint32_t sign = std::signbit(value) ? 1U << (width - 1) : 0;
  if (std::isinf(value)) return sign | infinity;
  const double magnitude = std::fabs(static_cast<double>(value));
  const int least = 1 - format.bias();
  const int exponent = magnitude == 0 ? least : std::max(least, std::ilogb(magnitude));
  const double units = std::ldexp(magnitude, format.fraction_bits - exponent);
  const double rounded = format.ties_away ? std::round(units) : std::nearbyint(units);
  // One more unit than the fraction holds is the next exponent.
  const auto bits = static_cast<uint32_t>((exponent - least) << format.fraction_bits) + static_cast<uint32_t>(rounded);
  return sign | (bits < infinity ? bits : infinity);
}

inline double narrow_value(const FloatFormat& format, uint32_t bits) {
  const uint32_t fraction = bits & ((1U << format.fraction_bits) - 1);
  const uint32_t exponent = bits >> format.fraction_bits & ((1U << format.exponent_bits) - 1);
  const bool is_negative = (bits >> (format.exponent_bits + format.fraction_bits) & 1) != 0;
  double value = std::ldexp(fraction, 1 - format.bias() - format.fraction_bits);
  if (exponent + 1 == 1U << format.exponent_bits) {
    value = fraction == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent != 0) {
    value = std::ldexp(fraction + (1U << format.fraction_bits),
                       static_cast<int>(exponent) - format.bias() - format.fraction_bits);
  }
  return is_negative ? -value : value;
}

}  // namespace parallax::ptx
