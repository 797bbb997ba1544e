// SPDX-License-Identifier: Apache-2.0
// The vectors of statistics_kernel_body.h: loading each format, the copy past the cache, and the CRC of what goes by.
// Compiled with that file for each instruction set, as part of it.
#pragma once

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include <cstring>

#include "inspector/dump/statistics/statistics_kernel.h"

namespace parallax::dump {
namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

using statistics::kAddedGroups;
using statistics::kBundleElements;
using statistics::kGroupElements;
using statistics::kGroups;
using statistics::kLanes;
using statistics::kRows;
using statistics::lane_sign;
using statistics::row_sign;
constexpr int kPartLanes = kVectorBytes / 8;  // of which one vector holds a part
constexpr int kParts = kLanes / kPartLanes;
using Part = double __attribute__((vector_size(kVectorBytes)));
using PartBits = int64_t __attribute__((vector_size(kVectorBytes)));
using FloatPart = float __attribute__((vector_size(kVectorBytes / 2)));
using FloatMask = int32_t __attribute__((vector_size(kVectorBytes / 2)));
using FloatRow = float __attribute__((vector_size(4 * kLanes)));
using FloatPartBits = uint32_t __attribute__((vector_size(kVectorBytes / 2)));
using FloatRowBits = uint32_t __attribute__((vector_size(4 * kLanes)));
// As many floats as a register holds.
constexpr int kFullLanes = kVectorBytes / 4;
using FloatsFull = float __attribute__((vector_size(kVectorBytes)));
using FloatsFullMask = int32_t __attribute__((vector_size(kVectorBytes)));
using FloatsFullBits = uint32_t __attribute__((vector_size(kVectorBytes)));

constexpr double kInfinity = __builtin_inf();

constexpr size_t element_bytes(NumberFormat format) {
  return format == NumberFormat::float64 ? 8 : format == NumberFormat::float32 ? 4 : 2;
}

// Numbers as they are compared: where vectors are wide, in float32, into which every format but float64 fits; of
// vectors of 16 bytes half would be idle.
template <bool kInFloats>
struct NumbersIn {
  using Type = Part;
  using Mask = PartBits;
};
template <>
struct NumbersIn<true> {
  using Type = FloatPart;
  using Mask = FloatMask;
};
template <NumberFormat kFormat>
using NumbersOf = NumbersIn<(kVectorBytes > 16 && kFormat != NumberFormat::float64)>;
template <NumberFormat kFormat>
using Numbers = typename NumbersOf<kFormat>::Type;

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
#if !defined(__AVX512F__)
template <>
inline void load_floats<NumberFormat::float16, FloatPartBits>(const std::byte* source, FloatPart& floats) {
  floats = _mm_cvtph_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(source)));
}
#endif
#endif

template <NumberFormat kFormat>
inline void load_numbers(const std::byte* source, Numbers<kFormat>& numbers) {
  if constexpr (kFormat == NumberFormat::float64) {
    std::memcpy(&numbers, source, sizeof numbers);
  } else {
    FloatPart floats;
    load_floats<kFormat, FloatPartBits>(source, floats);
    numbers = __builtin_convertvector(floats, Numbers<kFormat>);
  }
}

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

// Adds 1 to the lanes of `zeros` in which `numbers` are zero.
template <class Vector, class Mask>
inline void count_zeros(const Vector& numbers, Mask& zeros) {
  zeros -= numbers == 0;
}
#if defined(__AVX512F__)
inline void count_zeros(const FloatsFull& numbers, FloatsFullMask& zeros) {
  const __mmask16 mask = _mm512_cmp_ps_mask(numbers, _mm512_setzero_ps(), _CMP_EQ_OQ);
  const auto sum = _mm512_mask_sub_epi32(reinterpret_cast<__m512i>(zeros), mask, reinterpret_cast<__m512i>(zeros),
                                         _mm512_set1_epi32(-1));
  zeros = reinterpret_cast<FloatsFullMask>(sum);
}
#endif

template <NumberFormat kFormat>
inline void load_part(const std::byte* source, Part& part) {
  Numbers<kFormat> numbers;
  load_numbers<kFormat>(source, numbers);
  part = widened(numbers);
}

// a * b + c where the product has no more digits than a double: both ways round the same.
inline Part add_exact_product(Part a, Part b, Part c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_pd(a, b, c);
#elif defined(__FMA__)
  return _mm256_fmadd_pd(a, b, c);
#else
  return a * b + c;
#endif
}

inline Part every_lane(double number) {
#if defined(__AVX512F__)
  return _mm512_set1_pd(number);
#elif defined(__AVX2__)
  return _mm256_set1_pd(number);
#else
  return Part{number, number};
#endif
}

// Past the cache: what is captured is not read again soon, and its lines need not be fetched before they are written.
inline void copy_past_cache(std::byte* target, const std::byte* source, size_t size) {
  for (size_t offset = 0; offset < size; offset += static_cast<size_t>(kVectorBytes)) {
#if defined(__AVX512F__)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(target + offset), _mm512_loadu_si512(source + offset));
#elif defined(__AVX2__)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(target + offset),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source + offset)));
#elif defined(__SSE2__)
    _mm_stream_si128(reinterpret_cast<__m128i*>(target + offset),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + offset)));
#else
    std::memcpy(target + offset, source + offset, static_cast<size_t>(kVectorBytes));
#endif
  }
}

// So much work a group is more than the processor looks ahead by itself. Addresses past the end do no harm.
inline void fetch_ahead(const std::byte* source, size_t size) {
  constexpr size_t kAheadBytes = 2048, kLineBytes = 64;
  for (size_t offset = 0; offset < size; offset += kLineBytes) __builtin_prefetch(source + kAheadBytes + offset);
}

#if defined(__AVX2__) && !defined(__AVX512F__)  // which folds wide products in less time than this needs
constexpr bool kTakesCrc = true;

// A quarter of what a group has is taken of each quarter of the chunk: one CRC would wait for itself.
template <size_t kGroupBytes>
class CrcStreams {
 public:
  CrcStreams(const std::byte* data, size_t part_bytes) : data_(data), part_bytes_(part_bytes) {}
  void add_group(int64_t group) {
    constexpr size_t kPieceBytes = kGroupBytes / GroupsCrc::kParts;
    const std::byte* piece = data_ + static_cast<size_t>(group) * kPieceBytes;
#pragma GCC unroll 16
    for (size_t offset = 0; offset < kPieceBytes; offset += sizeof(uint64_t)) {
#pragma GCC unroll 4
      for (size_t part = 0; part < GroupsCrc::kParts; ++part) {
        uint64_t word;
        std::memcpy(&word, piece + part * part_bytes_ + offset, sizeof word);
        crcs_[part] = _mm_crc32_u64(crcs_[part], word);
      }
    }
  }
  void store(GroupsCrc& out) const {
    out.is_taken = true;
    out.part_bytes = part_bytes_;
    for (size_t part = 0; part < GroupsCrc::kParts; ++part) out.parts[part] = ~static_cast<uint32_t>(crcs_[part]);
  }

 private:
  const std::byte* data_;
  size_t part_bytes_;
  uint64_t crcs_[GroupsCrc::kParts] = {~0U, ~0U, ~0U, ~0U};
};
#else
constexpr bool kTakesCrc = false;

template <size_t kGroupBytes>
class CrcStreams {
 public:
  CrcStreams(const std::byte*, size_t) {}
  void add_group(int64_t) {}
  void store(GroupsCrc&) const {}
};
#endif

}  // namespace
}  // namespace parallax::dump
