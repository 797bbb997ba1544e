// SPDX-License-Identifier: Apache-2.0
// The steps of statistics_kernel_body.h that an instruction set decides: comparisons, products, the copy past the
// cache, and the CRC of the bytes copied. Compiled with that file for each instruction set, as part of it.
#pragma once

#include <cstring>

#include "inspector/dump/statistics/statistics_kernel.h"
#include "inspector/tensor/kernel_vectors.h"

namespace parallax::dump {
namespace {

using namespace vectors;
using statistics::kAddedGroups;
using statistics::kBundleElements;
using statistics::kGroupElements;
using statistics::kGroups;
using statistics::kLanes;
using statistics::kRows;
using statistics::lane_sign;
using statistics::row_sign;
static_assert(kLanes == kRowLanes);
constexpr double kInfinity = __builtin_inf();

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
