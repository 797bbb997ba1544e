// SPDX-License-Identifier: Apache-2.0
// The vectors of kernels that are compiled once for each instruction set, and the loading of each format of numbers.
// A file that includes this is compiled for its instruction set and includes nothing else with inline code: such code
// would be shared with files for lesser CPUs.
#pragma once

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include <cstring>

#include "inspector/tensor/number_format.h"

namespace parallax::vectors {
namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

// A row is eight neighboring elements; one vector of doubles holds a part of it.
constexpr int kRowLanes = 8;
constexpr int kPartLanes = kVectorBytes / 8;
constexpr int kParts = kRowLanes / kPartLanes;
using Part = double __attribute__((vector_size(kVectorBytes)));
using PartBits = int64_t __attribute__((vector_size(kVectorBytes)));
using FloatPart = float __attribute__((vector_size(kVectorBytes / 2)));
using FloatMask = int32_t __attribute__((vector_size(kVectorBytes / 2)));
using FloatRow = float __attribute__((vector_size(4 * kRowLanes)));
using FloatPartBits = uint32_t __attribute__((vector_size(kVectorBytes / 2)));
using FloatRowBits = uint32_t __attribute__((vector_size(4 * kRowLanes)));
// As many floats as a register holds.
constexpr int kFullLanes = kVectorBytes / 4;
using FloatsFull = float __attribute__((vector_size(kVectorBytes)));
using FloatsFullMask = int32_t __attribute__((vector_size(kVectorBytes)));
using FloatsFullBits = uint32_t __attribute__((vector_size(kVectorBytes)));

// float32, float16 or bfloat16 as float32, as many as the vector has.
template <NumberFormat kFormat, class Bits, class Floats>
inline void load_floats(const std::byte* source, Floats& floats) {
  if constexpr (kFormat == NumberFormat::float32) {
    std::memcpy(&floats, source, sizeof floats);
    return;
  }
  constexpr size_t kCount = sizeof floats / sizeof(float);
  uint16_t half[kCount];
  std::memcpy(half, source, sizeof half);
  Bits bits;
  for (size_t lane = 0; lane < kCount; ++lane) bits[lane] = half[lane];
  if constexpr (kFormat == NumberFormat::bfloat16) {
    bits <<= 16;
    std::memcpy(&floats, &bits, sizeof floats);
  } else {
    // The mantissa and exponent of float16, read as float32, are too small by 2^112; subnormal ones included.
    const Bits magnitude = (bits & 0x7FFFU) << 13;
    std::memcpy(&floats, &magnitude, sizeof floats);
    floats *= 0x1p112F;
    Bits scaled;
    std::memcpy(&scaled, &floats, sizeof scaled);
    scaled = magnitude >= 0x7C00U << 13 ? (magnitude | 0x7F800000U) : scaled;
    scaled |= (bits & 0x8000U) << 16;
    std::memcpy(&floats, &scaled, sizeof floats);
  }
}

#if defined(__F16C__)
template <>
inline void load_floats<NumberFormat::float16, FloatRowBits>(const std::byte* source, FloatRow& floats) {
  floats = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(source)));
}
#if defined(__AVX512F__)
template <>
inline void load_floats<NumberFormat::float16, FloatsFullBits>(const std::byte* source, FloatsFull& floats) {
  floats = _mm512_maskz_cvtph_ps(0xFFFF, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source)));
}
#else
template <>
inline void load_floats<NumberFormat::float16, FloatPartBits>(const std::byte* source, FloatPart& floats) {
  floats = _mm_cvtph_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(source)));
}
#endif
#endif

inline Part widened(Part numbers) { return numbers; }
inline Part widened(FloatPart numbers) {
#if defined(__AVX512F__)
  // GCC 12 makes two halves of __builtin_convertvector, and warns of its own _mm512_cvtps_pd.
  return _mm512_maskz_cvtps_pd(0xFF, numbers);
#elif defined(__AVX2__)
  return _mm256_cvtps_pd(numbers);
#else
  return __builtin_convertvector(numbers, Part);
#endif
}

}  // namespace
}  // namespace parallax::vectors
