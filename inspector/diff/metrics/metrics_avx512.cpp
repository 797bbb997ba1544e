// SPDX-License-Identifier: Apache-2.0
// The kernels in AVX-512 (F, BW, DQ, VL): sixteen elements a step, thresholds as chained masked comparisons.
#include "inspector/diff/metrics/metrics_kernel.h"

#if defined(__x86_64__)
#include <algorithm>
#include <cstdint>

#include <immintrin.h>

#define PX_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"), always_inline)) inline
#define PX_AVX512_ENTRY __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))

namespace parallax::diff {
namespace {

constexpr uintptr_t kAheadBytes = 1024;
constexpr int kTowardZero = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;

struct Sums {
  __m512d abs, dd, aa, bb, dp;
};
struct NarrowSums {
  __m512 abs, dd, aa, bb, dp;
};

PX_AVX512 Sums no_sums() {
  const __m512d zero = _mm512_setzero_pd();
  return {zero, zero, zero, zero, zero};
}

PX_AVX512 NarrowSums no_narrow_sums() {
  const __m512 zero = _mm512_setzero_ps();
  return {zero, zero, zero, zero, zero};
}

PX_AVX512 void add_to_sums(Sums& sums, __m512d x, __m512d y) {
  const __m512d d = _mm512_sub_pd(x, y);
  sums.abs = _mm512_add_pd(sums.abs, _mm512_abs_pd(d));
  sums.dd = _mm512_add_pd(sums.dd, _mm512_mul_pd(d, d));
  sums.aa = _mm512_add_pd(sums.aa, _mm512_mul_pd(x, x));
  sums.bb = _mm512_add_pd(sums.bb, _mm512_mul_pd(y, y));
  sums.dp = _mm512_add_pd(sums.dp, _mm512_mul_pd(d, _mm512_add_pd(x, y)));
}

PX_AVX512 void add_to_sums(NarrowSums& sums, __m512 x, __m512 y, __m512 difference, __m512 d) {
  sums.abs = _mm512_add_ps(sums.abs, d);
  sums.dd = _mm512_add_ps(sums.dd, _mm512_mul_ps(d, d));
  sums.aa = _mm512_add_ps(sums.aa, _mm512_mul_ps(x, x));
  sums.bb = _mm512_add_ps(sums.bb, _mm512_mul_ps(y, y));
  sums.dp = _mm512_add_ps(sums.dp, _mm512_mul_ps(difference, _mm512_add_ps(x, y)));
}

PX_AVX512 __m512d widened(__m512d sum, __m512 narrow) {
  sum = _mm512_add_pd(sum, _mm512_cvtps_pd(_mm512_castps512_ps256(narrow)));
  return _mm512_add_pd(sum, _mm512_cvtps_pd(_mm512_extractf32x8_ps(narrow, 1)));
}

PX_AVX512 void flush(NarrowSums& narrow, Sums& sums) {
  sums.abs = widened(sums.abs, narrow.abs);
  sums.dd = widened(sums.dd, narrow.dd);
  sums.aa = widened(sums.aa, narrow.aa);
  sums.bb = widened(sums.bb, narrow.bb);
  sums.dp = widened(sums.dp, narrow.dp);
  narrow = no_narrow_sums();
}

PX_AVX512 void store_sums(const Sums& sums, BlockResult& result) {
  _mm512_store_pd(result.sum_abs.data(), sums.abs);
  _mm512_store_pd(result.sum_dd.data(), sums.dd);
  _mm512_store_pd(result.sum_aa.data(), sums.aa);
  _mm512_store_pd(result.sum_bb.data(), sums.bb);
  _mm512_store_pd(result.sum_dp.data(), sums.dp);
}

// Two streams and this much work a group are more than the processor looks ahead by itself. Addresses past the end do
// no harm.
PX_AVX512 void fetch_ahead(const void* address) {
  _mm_prefetch(reinterpret_cast<const char*>(reinterpret_cast<uintptr_t>(address) + kAheadBytes), _MM_HINT_T0);
}

struct Load32 {
  using Stored = float;
  PX_AVX512 static __m512 load(const float* source, __mmask16 mask) { return _mm512_maskz_loadu_ps(mask, source); }
};
struct Load16 {
  using Stored = uint16_t;
  PX_AVX512 static __m512 load(const uint16_t* source, __mmask16 mask) {
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, source));
  }
};
struct LoadB16 {
  using Stored = uint16_t;
  PX_AVX512 static __m512 load(const uint16_t* source, __mmask16 mask) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, source)), 16));
  }
};

struct Mismatches {
  __m512i possible, certain;
};

// Bounds rounded toward zero are below every difference that reaches them, so that > does for >= and zero is never
// flagged.
PX_AVX512 void count_mismatches(Mismatches& counts, __m512 d, __m512 magnitude, const Filter<float>& filter) {
  const __m512 low = _mm512_fmadd_round_ps(_mm512_set1_ps(filter.possible_rtol), magnitude,
                                           _mm512_set1_ps(filter.possible_atol), kTowardZero);
  const __m512 high =
      _mm512_fmadd_ps(_mm512_set1_ps(filter.certain_rtol), magnitude, _mm512_set1_ps(filter.certain_atol));
  const __m512i one = _mm512_set1_epi32(1);
  counts.possible =
      _mm512_mask_add_epi32(counts.possible, _mm512_cmp_ps_mask(d, low, _CMP_GT_OQ), counts.possible, one);
  counts.certain = _mm512_mask_add_epi32(counts.certain, _mm512_cmp_ps_mask(d, high, _CMP_GT_OQ), counts.certain, one);
}

PX_AVX512 unsigned flags_of(__m512 d, __m512 magnitude, __m512 y, const Filter<float>& filter) {
  const __m512 severity = _mm512_fmadd_round_ps(_mm512_set1_ps(filter.severity_rtol), magnitude,
                                                _mm512_set1_ps(filter.severity_atol), kTowardZero);
  const __m512 relative = _mm512_mul_round_ps(_mm512_set1_ps(filter.relative), magnitude, kTowardZero);
  const __m512 larger = _mm512_max_ps(magnitude, _mm512_abs_ps(y));
  const __m512 units = _mm512_mul_round_ps(_mm512_set1_ps(filter.units), larger, kTowardZero);
  const __m512 bound =
      _mm512_min_ps(_mm512_min_ps(severity, relative), _mm512_min_ps(units, _mm512_set1_ps(filter.absolute)));
  return _mm512_cmp_ps_mask(d, bound, _CMP_GT_OQ);
}

PX_AVX512 void store_buckets(uint8_t* target, __m512 d, __mmask16 mask) {
  const __mmask16 nonzero = _mm512_test_epi32_mask(_mm512_castps_si512(d), _mm512_castps_si512(d));
  const __m512i exponent = _mm512_srli_epi32(_mm512_castps_si512(d), 23);
  const __m512i shifted = _mm512_sub_epi32(exponent, _mm512_set1_epi32(127 - kBucketExponent - 1));
  const __m512i bucket = _mm512_min_epi32(_mm512_max_epi32(shifted, _mm512_set1_epi32(1)), _mm512_set1_epi32(64));
  _mm512_mask_cvtepi32_storeu_epi8(target, mask, _mm512_maskz_mov_epi32(nonzero, bucket));
}

template <class Source, bool kCount, bool kHistogram>
PX_AVX512 void run_floats(const typename Source::Stored* a, const typename Source::Stored* b, int64_t count,
                          const Filter<float>& filter, BlockResult& result, uint8_t* buckets) {
  Sums sums = no_sums();
  NarrowSums narrow = no_narrow_sums();
  Mismatches counts = {_mm512_setzero_si512(), _mm512_setzero_si512()};
  unsigned any = 0;
  const int64_t groups = (count + kGroup - 1) / kGroup;
  for (int64_t first = 0; first < groups; first += kFlushGroups) {
    const int64_t last = first + kFlushGroups < groups ? first + kFlushGroups : groups;
    for (int64_t group = first; group < last; ++group) {
      const int64_t begin = group * kGroup, left = count - begin;
      const auto mask = static_cast<__mmask16>(left >= kGroup ? 0xFFFF : (1 << left) - 1);
      fetch_ahead(a + begin);
      fetch_ahead(b + begin);
      const __m512 x = Source::load(a + begin, mask), y = Source::load(b + begin, mask);
      const __m512 difference = _mm512_sub_ps(x, y);
      const __m512 d = _mm512_abs_ps(difference), magnitude = _mm512_abs_ps(x);
      const unsigned flags = flags_of(d, magnitude, y, filter);
      result.flagged[static_cast<size_t>(group)] = static_cast<uint16_t>(flags);
      any |= flags;
      if constexpr (kCount) count_mismatches(counts, d, magnitude, filter);
      if constexpr (kHistogram) store_buckets(buckets + begin, d, mask);
      add_to_sums(narrow, x, y, difference, d);
    }
    flush(narrow, sums);
  }
  store_sums(sums, result);
  result.possible = _mm512_reduce_add_epi32(counts.possible);
  result.certain = _mm512_reduce_add_epi32(counts.certain);
  result.any_flagged = any != 0;
}

template <class Source>
PX_AVX512_ENTRY void dispatch_floats(const typename Source::Stored* a, const typename Source::Stored* b, int64_t count,
                                     const Filter<float>& filter, BlockResult& result, uint8_t* buckets) {
  if (filter.count_mismatches) {
    if (buckets != nullptr) return run_floats<Source, true, true>(a, b, count, filter, result, buckets);
    return run_floats<Source, true, false>(a, b, count, filter, result, buckets);
  }
  if (buckets != nullptr) return run_floats<Source, false, true>(a, b, count, filter, result, buckets);
  return run_floats<Source, false, false>(a, b, count, filter, result, buckets);
}

// One half of a group of doubles; returns its flags.
PX_AVX512 unsigned double_step(const double* a, const double* b, __mmask8 mask, const Filter<double>& filter,
                               Sums& sums, BlockResult& result, uint8_t* buckets) {
  fetch_ahead(a);
  fetch_ahead(b);
  const __m512d x = _mm512_maskz_loadu_pd(mask, a), y = _mm512_maskz_loadu_pd(mask, b);
  const __m512d d = _mm512_abs_pd(_mm512_sub_pd(x, y));
  const __m512d magnitude = _mm512_abs_pd(x);
  const __mmask8 nonzero = _mm512_cmp_pd_mask(d, _mm512_setzero_pd(), _CMP_NEQ_UQ);
  const __m512d severity = _mm512_fmadd_round_pd(_mm512_set1_pd(filter.severity_rtol), magnitude,
                                                 _mm512_set1_pd(filter.severity_atol), kTowardZero);
  const __m512d relative = _mm512_mul_round_pd(_mm512_set1_pd(filter.relative), magnitude, kTowardZero);
  const __m512d larger = _mm512_max_pd(magnitude, _mm512_abs_pd(y));
  const __m512d units = _mm512_mul_round_pd(_mm512_set1_pd(filter.units), larger, kTowardZero);
  const __m512d bound =
      _mm512_min_pd(_mm512_min_pd(severity, relative), _mm512_min_pd(units, _mm512_set1_pd(filter.absolute)));
  if (filter.count_mismatches) {
    const __m512d low = _mm512_fmadd_round_pd(_mm512_set1_pd(filter.possible_rtol), magnitude,
                                              _mm512_set1_pd(filter.possible_atol), kTowardZero);
    const __m512d high =
        _mm512_fmadd_pd(_mm512_set1_pd(filter.certain_rtol), magnitude, _mm512_set1_pd(filter.certain_atol));
    result.possible += __builtin_popcount(_mm512_cmp_pd_mask(d, low, _CMP_GT_OQ));
    result.certain += __builtin_popcount(_mm512_cmp_pd_mask(d, high, _CMP_GT_OQ));
  }
  if (buckets != nullptr) {
    const __m512i exponent = _mm512_srli_epi64(_mm512_castpd_si512(d), 52);
    const __m512i shifted = _mm512_sub_epi64(exponent, _mm512_set1_epi64(1023 - kBucketExponent - 1));
    const __m512i bucket = _mm512_min_epi64(_mm512_max_epi64(shifted, _mm512_set1_epi64(1)), _mm512_set1_epi64(64));
    _mm512_mask_cvtepi64_storeu_epi8(buckets, mask, _mm512_maskz_mov_epi64(nonzero, bucket));
  }
  add_to_sums(sums, x, y);
  return _mm512_cmp_pd_mask(d, bound, _CMP_GT_OQ);
}

PX_AVX512_ENTRY void run_float64(const double* a, const double* b, int64_t count, const Filter<double>& filter,
                                 BlockResult& result, uint8_t* buckets) {
  Sums sums = no_sums();
  result.possible = result.certain = 0;
  unsigned any = 0;
  for (int64_t begin = 0; begin < count; begin += kGroup) {
    const int64_t left = count - begin;
    const unsigned mask = left >= kGroup ? 0xFFFFU : (1U << left) - 1U;
    unsigned flags = double_step(a + begin, b + begin, static_cast<__mmask8>(mask & 0xFFU), filter, sums, result,
                                 buckets == nullptr ? nullptr : buckets + begin);
    if (left > kLanes) {
      flags |= double_step(a + begin + kLanes, b + begin + kLanes, static_cast<__mmask8>(mask >> kLanes), filter, sums,
                           result, buckets == nullptr ? nullptr : buckets + begin + kLanes)
               << kLanes;
    }
    result.flagged[static_cast<size_t>(begin / kGroup)] = static_cast<uint16_t>(flags);
    any |= flags;
  }
  store_sums(sums, result);
  result.any_flagged = any != 0;
}

// Differences of one tensor are in few buckets: one comparison a bucket and 64 elements is cheaper than 64 increments.
PX_AVX512_ENTRY void count_buckets(const uint8_t* buckets, int64_t count, int64_t* histogram) {
  const int64_t whole = count / 64 * 64;
  __m512i low = _mm512_set1_epi8(-1),
          high = _mm512_setzero_si512();  // of the buckets less one: equal elements (0) wrap around
  for (int64_t index = 0; index < whole; index += 64) {
    const __m512i bytes = _mm512_loadu_si512(buckets + index);
    low = _mm512_min_epu8(low, _mm512_sub_epi8(bytes, _mm512_set1_epi8(1)));
    high = _mm512_max_epu8(high, bytes);
  }
  alignas(64) std::array<uint8_t, 64> lows, highs;
  _mm512_store_si512(lows.data(), low);
  _mm512_store_si512(highs.data(), high);
  const int first = *std::min_element(lows.begin(), lows.end()) + 1;
  const int last = *std::max_element(highs.begin(), highs.end());
  int64_t different = 0;
  for (int bucket = first; bucket <= last; ++bucket) {
    const __m512i wanted = _mm512_set1_epi8(static_cast<char>(bucket));
    int64_t total = 0;
    for (int64_t index = 0; index < whole; index += 64) {
      total += __builtin_popcountll(_mm512_cmpeq_epi8_mask(_mm512_loadu_si512(buckets + index), wanted));
    }
    histogram[bucket] += total;
    different += total;
  }
  histogram[0] += whole - different;
  for (int64_t index = whole; index < count; ++index) ++histogram[buckets[index]];
}

}  // namespace

const Kernels kAvx512Kernels = {"avx512",     VectorLevel::avx512,     dispatch_floats<Load32>,
                                run_float64,  dispatch_floats<Load16>, dispatch_floats<LoadB16>,
                                count_buckets};

}  // namespace parallax::diff
#endif
