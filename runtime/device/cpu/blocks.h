// SPDX-License-Identifier: Apache-2.0
// Blocks of elements on their way between storage types and the few types arithmetic is done in: float, double, int64,
// uint64. Storage types stop here, so that an operator's loop exists once per arithmetic type and not once per DType.
#pragma once

#include <cstddef>
#include <cstdint>

#include "inspector/tensor/dtype.h"

namespace parallax::runtime {

constexpr int64_t kBlockElements = 1024;  // four operands of doubles fit the first-level cache

// Elements [index, index + count) of a payload, or `count` times element `index` when stride is 0, converted to C.
// C is float, double, int64_t, uint64_t or uint8_t (bool payloads only). Not for strings and complex.
template <class C>
void load_block(DType dtype, const std::byte* data, int64_t index, int64_t stride, int64_t count, C* out);

// Stores with one rounding to floating types. Integers wrap; floats toward integers truncate, what does not fit int64
// (int32 where that is stored) and NaN become its minimum (as x86 converts). To bool: whether it is not zero.
template <class C>
void store_block(DType dtype, std::byte* data, int64_t index, int64_t count, const C* values);

// One element.
template <class C>
C load_element(DType dtype, const std::byte* data, int64_t index) {
  C value{};
  load_block<C>(dtype, data, index, 1, 1, &value);
  return value;
}

// The arithmetic type an operator computes in for a storage type: float16 in float32.
enum class Arithmetic : uint8_t { none, float32, float64, int64, uint64, boolean };
Arithmetic arithmetic_of(DType dtype);

template <class C>
constexpr DType storage_of() {
  if constexpr (std::is_same_v<C, float>) return DType::float32;
  if constexpr (std::is_same_v<C, double>) return DType::float64;
  if constexpr (std::is_same_v<C, int64_t>) return DType::int64;
  if constexpr (std::is_same_v<C, uint64_t>) return DType::uint64;
  if constexpr (std::is_same_v<C, uint8_t>) return DType::bool_;
  if constexpr (std::is_same_v<C, bool>) return DType::bool_;
  return DType::undefined;
}

}  // namespace parallax::runtime
