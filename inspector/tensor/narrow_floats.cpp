// SPDX-License-Identifier: Apache-2.0
// Conversions without branches, so that compilers vectorize them.
#include "inspector/tensor/narrow_floats.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace parallax {
namespace {

constexpr uint32_t kMagnitude = 0x7FFFFFFFU;
constexpr uint32_t kInfinity = 0x7F800000U;

uint16_t float16_bits(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & kMagnitude;
  // Normal results: the exponent is rebased by 112, and half a unit of the last bit that stays is added.
  const uint32_t normal = (magnitude - (112U << 23) + 0xFFFU + (magnitude >> 13 & 1U)) >> 13;
  // Subnormal ones: the sum with 0.5 has its last bit where float16 has it, so that the adder rounds.
  const uint32_t subnormal = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3F000000U;
  uint32_t result = magnitude < (113U << 23) ? subnormal : normal;
  result = magnitude >= 0x477FF000U ? 0x7C00U : result;  // 65520 and more
  result = magnitude > kInfinity ? 0x7E00U : result;
  return static_cast<uint16_t>(result | (bits >> 16 & 0x8000U));
}

uint16_t bfloat16_bits(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16;
  return static_cast<uint16_t>((bits & kMagnitude) > kInfinity ? bits >> 16 | 0x40U : rounded);
}

}  // namespace

void narrow_floats(std::span<const float> values, DType to, std::span<uint16_t> out) {
  PX_CHECK(out.size() >= values.size());
  if (to == DType::float16) {
    for (size_t i = 0; i < values.size(); ++i) out[i] = float16_bits(values[i]);
  } else {
    PX_CHECK(to == DType::bfloat16);
    for (size_t i = 0; i < values.size(); ++i) out[i] = bfloat16_bits(values[i]);
  }
}

Result<Tensor> narrow_tensor(const Tensor& tensor, DType to) {
  Tensor narrow = PX_TRY(Tensor::allocate(to, tensor.shape()));
  narrow_floats(tensor.as<float>(), to,
                {reinterpret_cast<uint16_t*>(narrow.mutable_data()), static_cast<size_t>(tensor.element_count())});
  return narrow;
}

float overflow_threshold(DType to) { return to == DType::float16 ? 65520.0F : std::bit_cast<float>(0x7F7F8000U); }

FiniteRange finite_range(std::span<const float> values) {
  constexpr auto kEnd = static_cast<int32_t>(kInfinity);
  int32_t largest = 0, smallest = kEnd;  // bits of magnitudes, which are in the order of the numbers
  for (const float value : values) {
    const auto magnitude = static_cast<int32_t>(std::bit_cast<uint32_t>(value) & kMagnitude);
    largest = std::max(largest, magnitude < kEnd ? magnitude : 0);
    smallest = std::min(smallest, magnitude == 0 ? kEnd : magnitude);
  }
  FiniteRange range;
  range.largest = std::bit_cast<float>(largest);
  range.smallest = smallest >= kEnd ? 0 : std::bit_cast<float>(smallest);
  if (largest > 0 && std::ranges::find(values, range.largest) == values.end()) range.largest = -range.largest;
  return range;
}

}  // namespace parallax
