// SPDX-License-Identifier: Apache-2.0
// The inner loops of the metrics over one block of elements: one body of generic vectors, compiled for three
// instruction sets. It fixes the order of every addition, so that all three give the same bits.
//
// Float kernels sum in sixteen float lanes (element i belongs to lane i mod 16; every operation rounds by itself) that
// flow into eight double lanes every kFlushGroups groups: each sum is within 2^-19 of its value. Double kernels sum in
// the double lanes. Which elements may raise a maximum is decided by bounds set low by a margin; only flagged elements
// pay for divisions: metrics_extremes.h judges them exactly, so that maxima do not depend on the kernel.
#pragma once

#include <cstddef>
#include <cstdint>

#include "inspector/base/cpu_features.h"
#include "inspector/tensor/number_format.h"

namespace parallax::diff {

constexpr int64_t kBlock = 2048;  // elements; a block of two float32 streams is half of a common L1 cache
constexpr int64_t kGroup = 16;
constexpr int kLanes = 8;
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
  T smallest = 0;  // positive number of T: 0 reaches no bound
  bool count_mismatches = false;
};

// sum_abs is NaN or infinite when the block holds a NaN, an infinity or differences beyond the type; the others also
// when squares overflow.
struct BlockResult {
  using Lanes = double[kLanes];
  Lanes sum_abs;  // |a-b|
  Lanes sum_dd;   // (a-b)^2
  Lanes sum_aa;
  Lanes sum_bb;
  Lanes sum_dp;  // (a-b)(a+b): the norms' difference without cancellation
  int64_t possible = 0;
  int64_t certain = 0;
  bool any_flagged = false;
  uint16_t flagged[kBlock / kGroup];  // a bit an element
};

// `floats` reads every format but float64. `buckets`, when not null, receives each element's histogram bucket (`count`
// bytes, room for kBlock).
struct Kernels {
  const char* name;
  void (*floats)(NumberFormat format, const std::byte* a, const std::byte* b, int64_t count, const Filter<float>&,
                 BlockResult&, uint8_t* buckets);
  void (*doubles)(const std::byte* a, const std::byte* b, int64_t count, const Filter<double>&, BlockResult&,
                  uint8_t* buckets);
  void (*count_buckets)(const uint8_t* buckets, int64_t count, int64_t* histogram);  // count <= kBlock
};

// Those of vector_level().
const Kernels& kernels_in_use();

}  // namespace parallax::diff
