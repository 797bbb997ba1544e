// SPDX-License-Identifier: Apache-2.0
// Encoding and decoding of every narrow float by one algorithm over a table of formats.
#include "inspector/tensor/float_formats.h"

#include <array>
#include <cmath>
#include <limits>

#include "inspector/base/check.h"

namespace parallax {
namespace {

// The meaning of the all-ones exponent, or of another pattern.
enum class Specials : uint8_t {
  ieee,           // exponent all ones: infinity with zero mantissa, NaN otherwise
  nan_only,       // "FN": all ones everywhere is NaN, no infinity
  unsigned_zero,  // "FNUZ": the pattern of -0 is NaN, no infinity, no -0
  none,           // every pattern is a number
};

struct Format {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  Specials specials;
  uint32_t max_finite;  // pattern of the largest finite value
  uint32_t nan;         // the NaN that encode gives
};

constexpr Format kFloat16 = {5, 10, 15, Specials::ieee, 0x7BFF, 0x7E00};
constexpr Format kBFloat16 = {8, 7, 127, Specials::ieee, 0x7F7F, 0x7FC0};
constexpr Format kE4M3FN = {4, 3, 7, Specials::nan_only, 0x7E, 0x7F};
constexpr Format kE4M3FNUZ = {4, 3, 8, Specials::unsigned_zero, 0x7F, 0x80};
constexpr Format kE5M2 = {5, 2, 15, Specials::ieee, 0x7B, 0x7F};
constexpr Format kE5M2FNUZ = {5, 2, 16, Specials::unsigned_zero, 0x7F, 0x80};
// It has no NaN: one becomes -0, as in the Cast cases of operator set 23 on (the text leaves it open).
constexpr Format kE2M1 = {2, 1, 1, Specials::none, 0x7, 0x8};

static_assert(kDTypeCount == 27, "A new narrow float needs its case here, in table_of and in float_limits");

const Format& format_of(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return kFloat16;
    case DType::bfloat16:
      return kBFloat16;
    case DType::float8e4m3fn:
      return kE4M3FN;
    case DType::float8e4m3fnuz:
      return kE4M3FNUZ;
    case DType::float8e5m2:
      return kE5M2;
    case DType::float8e5m2fnuz:
      return kE5M2FNUZ;
    default:
      PX_CHECK(dtype == DType::float4e2m1);
      return kE2M1;
  }
}

uint32_t sign_bit(const Format& format) { return 1U << (format.exponent_bits + format.mantissa_bits); }

double decode(const Format& format, uint32_t bits) {
  const uint32_t sign_mask = sign_bit(format);
  const uint32_t magnitude = bits & (sign_mask - 1);
  const double sign = (bits & sign_mask) != 0 ? -1.0 : 1.0;
  const uint32_t exponent = magnitude >> format.mantissa_bits;
  const uint32_t mantissa = magnitude & ((1U << format.mantissa_bits) - 1);
  const bool top_exponent = exponent == (1U << format.exponent_bits) - 1;
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  if (format.specials == Specials::ieee && top_exponent) {
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity() : std::copysign(kNaN, sign);
  }
  if (format.specials == Specials::nan_only && magnitude == sign_mask - 1) return kNaN;
  if (format.specials == Specials::unsigned_zero && bits == sign_mask) return kNaN;
  const int scale = format.bias + format.mantissa_bits;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - scale);
  return sign * std::ldexp(mantissa + (1U << format.mantissa_bits), static_cast<int>(exponent) - scale);
}

// Pattern of |value| rounded to nearest even as if the exponent had no upper end. value is finite.
uint64_t round_magnitude(const Format& format, double value) {
  const auto bits = std::bit_cast<uint64_t>(value) & ~(1ULL << 63);
  const int exponent = static_cast<int>(bits >> 52) - 1023;  // double's own subnormals are far below every format here
  if (exponent < -1022) return 0;
  const uint64_t significand = (bits & ((1ULL << 52) - 1)) | 1ULL << 52;
  int drop = 52 - format.mantissa_bits;  // bits of the significand that do not fit
  const int minimum_exponent = 1 - format.bias;
  if (exponent < minimum_exponent) drop += minimum_exponent - exponent;
  if (drop > 54) return 0;
  const uint64_t kept = significand >> drop;
  const uint64_t rest = significand & ((1ULL << drop) - 1);
  const uint64_t half = 1ULL << (drop - 1);
  const uint64_t rounded = kept + ((rest > half || (rest == half && (kept & 1U) != 0)) ? 1 : 0);
  if (exponent < minimum_exponent) return rounded;  // a carry into the first normal number is the right pattern
  const auto biased = static_cast<uint64_t>(exponent + format.bias - 1);  // the implicit one adds the last 1
  return (biased << format.mantissa_bits) + rounded;
}

uint32_t out_of_range(const Format& format, uint32_t sign, bool saturate) {
  if (saturate || format.specials == Specials::none) return sign | format.max_finite;
  if (format.specials == Specials::ieee) {
    return sign | ((1U << format.exponent_bits) - 1) << format.mantissa_bits;
  }
  return format.specials == Specials::unsigned_zero ? format.nan : sign | format.nan;
}

uint32_t encode(const Format& format, double value, bool saturate) {
  const uint32_t sign = std::signbit(value) ? sign_bit(format) : 0;
  if (std::isnan(value)) return format.specials == Specials::unsigned_zero ? format.nan : sign | format.nan;
  if (std::isinf(value)) return out_of_range(format, sign, saturate);
  const uint64_t magnitude = round_magnitude(format, value);
  if (magnitude > format.max_finite) return out_of_range(format, sign, saturate);
  if (magnitude == 0 && format.specials == Specials::unsigned_zero) return 0;
  return sign | static_cast<uint32_t>(magnitude);
}

// float8e8m0: value 2^(bits - 127), 255 is NaN. No sign, no zero, no infinity.
double decode_e8m0(uint8_t bits) {
  if (bits == 255) return std::numeric_limits<double>::quiet_NaN();
  return std::ldexp(1.0, static_cast<int>(bits) - 127);
}

uint8_t encode_e8m0(double value, bool saturate, E8M0Rounding rounding) {
  if (std::isnan(value) || value < 0) return 255;
  if (std::isinf(value)) return saturate ? 254 : 255;
  if (value == 0) return 0;
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);  // [0.5, 1)
  --exponent;                                            // value = 2 * fraction * 2^exponent
  const double mantissa = 2 * fraction;                  // [1, 2)
  if (rounding == E8M0Rounding::up && mantissa > 1) ++exponent;
  // The halfway point of the powers 2^e and 2^(e+1) is 1.5 * 2^e; the specification rounds it up.
  if (rounding == E8M0Rounding::nearest && mantissa >= 1.5) ++exponent;
  if (exponent < -127) return 0;
  if (exponent > 127) return saturate ? 254 : 255;
  return static_cast<uint8_t>(exponent + 127);
}

struct DecodeTable {
  std::array<double, 256> values{};
};

const DecodeTable& table_of(DType dtype) {
  static const auto kTables = [] {
    std::array<DecodeTable, kDTypeCount> tables{};
    for (DType type : {DType::float8e4m3fn, DType::float8e4m3fnuz, DType::float8e5m2, DType::float8e5m2fnuz}) {
      for (uint32_t bits = 0; bits < 256; ++bits) {
        tables[static_cast<size_t>(type)].values[bits] = decode(format_of(type), bits);
      }
    }
    for (uint32_t bits = 0; bits < 256; ++bits) {
      tables[static_cast<size_t>(DType::float4e2m1)].values[bits] = decode(kE2M1, bits & 0xFU);
      tables[static_cast<size_t>(DType::float8e8m0)].values[bits] = decode_e8m0(static_cast<uint8_t>(bits));
    }
    return tables;
  }();
  return kTables[static_cast<size_t>(dtype)];
}

}  // namespace

float float16_to_float(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000U) << 16;
  const uint32_t magnitude = bits & 0x7FFFU;
  if (magnitude >= 0x7C00U) return std::bit_cast<float>(sign | 0x7F800000U | (magnitude & 0x3FFU) << 13);
  if (magnitude >= 0x0400U) return std::bit_cast<float>(sign | ((magnitude << 13) + (112U << 23)));
  const float value = static_cast<float>(magnitude) * 0x1p-24F;
  return sign != 0 ? -value : value;
}
double float16_to_double(uint16_t bits) { return float16_to_float(bits); }
uint16_t float16_from_double(double value) { return static_cast<uint16_t>(encode(kFloat16, value, false)); }
uint16_t float16_from_float(float value) { return float16_from_double(value); }

uint16_t bfloat16_from_double(double value) { return static_cast<uint16_t>(encode(kBFloat16, value, false)); }
uint16_t bfloat16_from_float(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<uint16_t>((bits >> 16) | 0x40U);  // keeps NaN a NaN
  return static_cast<uint16_t>((bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16);
}

double small_float_to_double(DType dtype, uint8_t bits) { return table_of(dtype).values[bits]; }

uint8_t small_float_from_double(DType dtype, double value, bool saturate, E8M0Rounding rounding) {
  if (dtype == DType::float8e8m0) return encode_e8m0(value, saturate, rounding);
  return static_cast<uint8_t>(encode(format_of(dtype), value, saturate));
}

double round_to_dtype(DType dtype, double value) {
  switch (dtype) {
    case DType::float64:
      return value;
    case DType::float32:
      return static_cast<double>(static_cast<float>(value));
    case DType::float16:
      return float16_to_double(float16_from_double(value));
    case DType::bfloat16:
      return static_cast<double>(bfloat16_to_float(bfloat16_from_double(value)));
    default:
      return small_float_to_double(dtype, small_float_from_double(dtype, value));
  }
}

FloatLimits float_limits(DType dtype) {
  if (dtype == DType::float64) return {std::numeric_limits<double>::max(), 0x1p-52, 0x1p-1022};
  if (dtype == DType::float32) return {std::numeric_limits<float>::max(), 0x1p-23, 0x1p-126};
  if (dtype == DType::float8e8m0) return {0x1p127, 1.0, 0x1p-127};
  const Format& format = format_of(dtype);
  return {decode(format, format.max_finite), std::ldexp(1.0, -format.mantissa_bits), std::ldexp(1.0, 1 - format.bias)};
}

}  // namespace parallax
