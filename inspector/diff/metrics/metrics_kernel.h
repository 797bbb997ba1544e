// SPDX-License-Identifier: Apache-2.0
// The inner loops of the metrics: one block of elements, in AVX-512, AVX2 and plain C++. All three give the same bits.
//
// Float kernels sum in sixteen float lanes (element i belongs to lane i mod 16; every operation rounds by itself) that
// flow into eight double lanes every kFlushGroups groups: each sum is within 2^-19 of its value. Double kernels sum in
// the double lanes. Which elements may raise a maximum is decided by bounds set low by a margin; only flagged elements
// pay for divisions: metrics_extremes.h judges them exactly, so that maxima do not depend on the kernel.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "inspector/base/cpu_features.h"

namespace parallax::diff {

constexpr int64_t kBlock = 2048;  // elements; a block of two float32 streams is half of a common L1 cache
constexpr int64_t kGroup = 16;
constexpr int64_t kLanes = 8;
constexpr int64_t kFlushGroups = 16;
constexpr int kBuckets = 66;
constexpr int kBucketExponent = 48;  // bucket 1 holds |a-b| below 2^-47

// An element is flagged when |a-b| > 0 reaches any of severity_rtol |a| + severity_atol, relative |a|, units max(|a|,
// |b|), absolute. It is a possible mismatch when |a-b| > 0 reaches possible_rtol |a| + possible_atol, a certain one
// when above certain_rtol |a| + certain_atol.
template <class T>
struct Filter {
  T severity_rtol = 0, severity_atol = 0;
  T relative = 0;
  T units = 0;
  T absolute = 0;
  T possible_rtol = 0, possible_atol = 0;
  T certain_rtol = 0, certain_atol = 0;
  bool count_mismatches = false;
};

// sum_abs is NaN or infinite when the block holds a NaN, an infinity or differences beyond the type; the others also
// when squares overflow.
struct BlockResult {
  using Lanes = std::array<double, kLanes>;
  alignas(64) Lanes sum_abs;  // |a-b|
  alignas(64) Lanes sum_dd;   // (a-b)^2
  alignas(64) Lanes sum_aa;
  alignas(64) Lanes sum_bb;
  alignas(64) Lanes sum_dp;  // (a-b)(a+b): the norms' difference without cancellation
  int64_t possible = 0;
  int64_t certain = 0;
  bool any_flagged = false;
  std::array<uint16_t, kBlock / kGroup> flagged;  // a bit an element
};

// `buckets`, when not null, receives each element's histogram bucket (`count` bytes, room for kBlock).
struct Kernels {
  std::string_view name;
  VectorLevel level;
  void (*float32)(const float* a, const float* b, int64_t count, const Filter<float>&, BlockResult&, uint8_t* buckets);
  void (*float64)(const double* a, const double* b, int64_t count, const Filter<double>&, BlockResult&,
                  uint8_t* buckets);
  void (*float16)(const uint16_t* a, const uint16_t* b, int64_t count, const Filter<float>&, BlockResult&,
                  uint8_t* buckets);
  void (*bfloat16)(const uint16_t* a, const uint16_t* b, int64_t count, const Filter<float>&, BlockResult&,
                   uint8_t* buckets);
  void (*count_buckets)(const uint8_t* buckets, int64_t count, int64_t* histogram);  // count <= kBlock
};

extern const Kernels kPortableKernels;
#if defined(__x86_64__)
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
#endif

// Best first; the last runs everywhere.
std::span<const Kernels* const> all_kernels();
const Kernels& kernels_in_use();

}  // namespace parallax::diff
