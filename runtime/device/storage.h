// SPDX-License-Identifier: Apache-2.0
// One element between a storage type and an arithmetic type, by the same formulas on every device. Branch-free where
// loops over them become vector code.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "inspector/tensor/float_formats.h"
#include "runtime/device/devices.h"

namespace parallax::runtime::storage {

// Subnormal float16 numbers are normalized by a float subtraction, which is exact.
PX_HD inline float decode(Float16 half) {
  const uint32_t sign = static_cast<uint32_t>(half.bits & 0x8000U) << 16;
  const uint32_t magnitude = static_cast<uint32_t>(half.bits & 0x7FFFU) << 13;
  const uint32_t exponent = magnitude & (0x7C00U << 13);
  const float normal = std::bit_cast<float>(magnitude + (uint32_t{112} << 23));
  const float special = std::bit_cast<float>(magnitude + (uint32_t{224} << 23));
  const float subnormal =
      std::bit_cast<float>(magnitude + (uint32_t{113} << 23)) - std::bit_cast<float>(uint32_t{113} << 23);
  const float value = exponent == 0 ? subnormal : (exponent == (0x7C00U << 13) ? special : normal);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | sign);
}
PX_HD inline float decode(BFloat16 value) { return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16); }

// Ties to even; NaN stays NaN.
PX_HD inline BFloat16 encode_bfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
  return {static_cast<uint16_t>(value != value ? (bits >> 16) | 0x40U : rounded)};
}

// Ties to even. Magnitudes below 2^-14 are rounded by adding a number whose last bit has the weight of a half's.
PX_HD inline Float16 encode_float16(float value) {
  constexpr uint32_t kHidden = uint32_t{126} << 23;  // 0.5: its last bit weighs 2^-24
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7FFFFFFFU;
  const uint32_t normal = (magnitude + 0xFFFU + ((magnitude >> 13) & 1U) - (uint32_t{112} << 23)) >> 13;
  const uint32_t subnormal =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude < kHidden ? magnitude : 0U) + 0.5F) - kHidden;
  const uint32_t special = magnitude > 0x7F800000U ? 0x7E00U : 0x7C00U;
  const uint32_t finite = magnitude < (uint32_t{113} << 23) ? subnormal : normal;
  const uint32_t half =
      magnitude >= (uint32_t{143} << 23) ? special : finite;  // 2^16 and more overflow; 65520 rounds there
  return {static_cast<uint16_t>(half | ((bits >> 16) & 0x8000U))};
}

// The float next to `value` whose last bit is 1, unless `value` is a float itself: rounding that to a narrower type
// gives what one rounding of `value` gives (rounding to odd; Boldo and Melquiond, 2008).
PX_HD inline float to_odd_float(double value) {
  const float nearest = static_cast<float>(value);
  const double back = static_cast<double>(nearest);
  const uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (back == value || value != value || (bits & 1U) != 0) return nearest;
  const double magnitude = value < 0 ? -value : value;
  return std::bit_cast<float>(magnitude > (back < 0 ? -back : back) ? bits + 1 : bits - 1);
}

template <class C, class S>
PX_HD C from_storage(S value) {
  if constexpr (std::is_same_v<S, Float16> || std::is_same_v<S, BFloat16>) {
    return from_storage<C>(decode(value));
  } else if constexpr (std::is_integral_v<C> && std::is_floating_point_v<S>) {
    const double wide = static_cast<double>(value);
    if (!(wide > -9.2233720368547758e18)) return static_cast<C>(INT64_MIN);
    if constexpr (std::is_same_v<C, uint64_t>) {
      return wide >= 1.8446744073709552e19 ? static_cast<C>(INT64_MIN)
             : wide < 0                    ? static_cast<C>(static_cast<int64_t>(wide))
                                           : static_cast<C>(wide);
    }
    return static_cast<C>(wide < 9.2233720368547758e18 ? static_cast<int64_t>(wide) : INT64_MIN);
  } else {
    return static_cast<C>(value);
  }
}

template <class S, class C>
PX_HD S to_storage(C value) {
  if constexpr (std::is_same_v<S, Float16> || std::is_same_v<S, BFloat16>) {
    const float narrow =
        std::is_same_v<C, float> ? static_cast<float>(value) : to_odd_float(static_cast<double>(value));
    if constexpr (std::is_same_v<S, Float16>) return encode_float16(narrow);
    if constexpr (std::is_same_v<S, BFloat16>) return encode_bfloat16(narrow);
  } else if constexpr (std::is_same_v<S, bool>) {
    return value != C{};
  } else if constexpr (std::is_same_v<S, int32_t> && std::is_floating_point_v<C>) {
    const double wide = static_cast<double>(value);
    return wide > -2147483649.0 && wide < 2147483648.0 ? static_cast<S>(wide) : INT32_MIN;
  } else if constexpr (std::is_integral_v<S> && std::is_floating_point_v<C>) {
    return static_cast<S>(std::is_same_v<S, uint64_t> ? static_cast<int64_t>(from_storage<uint64_t>(value))
                                                      : from_storage<int64_t>(value));
  } else {
    return static_cast<S>(value);
  }
}

// Calls visit with a null pointer of the storage type; false for the formats without a C++ type.
template <class Visit>
PX_HD bool visit_storage(DType dtype, const Visit& visit) {
  switch (dtype) {
    case DType::float32:
      return visit(static_cast<float*>(nullptr)), true;
    case DType::float64:
      return visit(static_cast<double*>(nullptr)), true;
    case DType::float16:
      return visit(static_cast<Float16*>(nullptr)), true;
    case DType::bfloat16:
      return visit(static_cast<BFloat16*>(nullptr)), true;
    case DType::int8:
      return visit(static_cast<int8_t*>(nullptr)), true;
    case DType::int16:
      return visit(static_cast<int16_t*>(nullptr)), true;
    case DType::int32:
      return visit(static_cast<int32_t*>(nullptr)), true;
    case DType::int64:
      return visit(static_cast<int64_t*>(nullptr)), true;
    case DType::uint8:
      return visit(static_cast<uint8_t*>(nullptr)), true;
    case DType::uint16:
      return visit(static_cast<uint16_t*>(nullptr)), true;
    case DType::uint32:
      return visit(static_cast<uint32_t*>(nullptr)), true;
    case DType::uint64:
      return visit(static_cast<uint64_t*>(nullptr)), true;
    case DType::bool_:
      return visit(static_cast<bool*>(nullptr)), true;
    default:
      return false;
  }
}

}  // namespace parallax::runtime::storage
