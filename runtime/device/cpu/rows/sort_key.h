// SPDX-License-Identifier: Apache-2.0
// Keys of radix sorts: unsigned numbers in the order of the values they are made of in a NumberOrder. Equal values have
// equal keys, so that a stable sort of keys leaves them in the order of their indices.
#pragma once

#include <concepts>

#include "runtime/device/cpu/rows/number_order.h"
#include "runtime/device/storage.h"

namespace parallax::runtime::gpu {

// Comparators that keys can replace; all others are called, by the bitonic sort.
template <class Before>
concept OrdersNumbers = requires(const Before& before) {
  { before.number_order() } -> std::same_as<NumberOrder>;
};

namespace sort_key_detail {

template <class Bits, Bits kInfinityBits>
struct FloatFormat {
  static constexpr Bits kSign = static_cast<Bits>(Bits{1} << (sizeof(Bits) * 8 - 1));
  static constexpr Bits kInfinity = kInfinityBits;  // magnitudes above it are NaN

  // Magnitudes grow with their bits. Above them all the numbers that are not negative, below them the others, reversed.
  static PX_HD Bits key(Bits bits) {
    const Bits magnitude = static_cast<Bits>(bits & static_cast<Bits>(~kSign));
    if (magnitude > kInfinity) return static_cast<Bits>(~Bits{0});
    const bool is_below_zero = magnitude != 0 && (bits & kSign) != 0;
    return static_cast<Bits>(is_below_zero ? ~bits : magnitude | kSign);
  }
};

template <class S>
struct FormatOf;
template <>
struct FormatOf<float> : FloatFormat<uint32_t, 0x7F800000U> {};
template <>
struct FormatOf<double> : FloatFormat<uint64_t, 0x7FF0000000000000U> {};
template <>
struct FormatOf<Float16> : FloatFormat<uint16_t, 0x7C00U> {};
template <>
struct FormatOf<BFloat16> : FloatFormat<uint16_t, 0x7F80U> {};

template <class S>
PX_HD auto ascending_key(S value) {
  if constexpr (std::is_same_v<S, bool>) {
    return static_cast<uint8_t>(value);
  } else if constexpr (std::is_integral_v<S>) {
    using Bits = std::make_unsigned_t<S>;
    constexpr Bits kLowest = static_cast<Bits>(std::is_signed_v<S> ? Bits{1} << (sizeof(S) * 8 - 1) : 0);
    return static_cast<Bits>(static_cast<Bits>(value) ^ kLowest);
  } else if constexpr (std::is_floating_point_v<S>) {
    using Bits = std::conditional_t<sizeof(S) == 8, uint64_t, uint32_t>;
    return FormatOf<S>::key(std::bit_cast<Bits>(value));
  } else {
    return FormatOf<S>::key(value.bits);
  }
}

}  // namespace sort_key_detail

// As many bits as the value has.
template <class S>
PX_HD auto sort_key(S value, NumberOrder order) {
  auto key = sort_key_detail::ascending_key(value);
  if (order == NumberOrder::descending) key = static_cast<decltype(key)>(~key);
  return key;
}

// How many bits the keys of a storage type have; 0 for the formats without a C++ type, which have none.
inline int key_bits(DType dtype) {
  int bits = 0;
  storage::visit_storage(dtype, [&](auto* type) { bits = static_cast<int>(sizeof(*type)) * 8; });
  return bits;
}

}  // namespace parallax::runtime::gpu
