// SPDX-License-Identifier: Apache-2.0
// The kernels in AVX2 (with FMA and F16C): eight elements a step.
#include "inspector/diff/metrics/metrics_kernel.h"

#if defined(__x86_64__)
#include <algorithm>
#include <cstdint>

#include <immintrin.h>

#define PX_AVX2 __attribute__((target("avx2,fma,f16c"), always_inline)) inline
#define PX_AVX2_ENTRY __attribute__((target("avx2,fma,f16c")))

namespace parallax::diff {
namespace {

struct Half {
  __m256d abs, dd, aa, bb, dp;
};
struct Sums {
  Half low, high;  // lanes 0 to 3 and 4 to 7
};
struct NarrowSums {
  __m256 abs, dd, aa, bb, dp;
};

PX_AVX2 __m256d absolute(__m256d value) { return _mm256_andnot_pd(_mm256_set1_pd(-0.0), value); }
PX_AVX2 __m256 absolute(__m256 value) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0F), value); }

PX_AVX2 void add_to_sums(Half& sums, __m256d x, __m256d y) {
  const __m256d d = _mm256_sub_pd(x, y);
  sums.abs = _mm256_add_pd(sums.abs, absolute(d));
  sums.dd = _mm256_add_pd(sums.dd, _mm256_mul_pd(d, d));
  sums.aa = _mm256_add_pd(sums.aa, _mm256_mul_pd(x, x));
  sums.bb = _mm256_add_pd(sums.bb, _mm256_mul_pd(y, y));
  sums.dp = _mm256_add_pd(sums.dp, _mm256_mul_pd(d, _mm256_add_pd(x, y)));
}

PX_AVX2 void add_to_sums(NarrowSums& sums, __m256 x, __m256 y, __m256 difference, __m256 d) {
  sums.abs = _mm256_add_ps(sums.abs, d);
  sums.dd = _mm256_add_ps(sums.dd, _mm256_mul_ps(d, d));
  sums.aa = _mm256_add_ps(sums.aa, _mm256_mul_ps(x, x));
  sums.bb = _mm256_add_ps(sums.bb, _mm256_mul_ps(y, y));
  sums.dp = _mm256_add_ps(sums.dp, _mm256_mul_ps(difference, _mm256_add_ps(x, y)));
}

PX_AVX2 Sums no_sums() {
  const __m256d zero = _mm256_setzero_pd();
  return {{zero, zero, zero, zero, zero}, {zero, zero, zero, zero, zero}};
}

PX_AVX2 NarrowSums no_narrow_sums() {
  const __m256 zero = _mm256_setzero_ps();
  return {zero, zero, zero, zero, zero};
}

PX_AVX2 void widen(__m256d& low, __m256d& high, __m256 narrow) {
  low = _mm256_add_pd(low, _mm256_cvtps_pd(_mm256_castps256_ps128(narrow)));
  high = _mm256_add_pd(high, _mm256_cvtps_pd(_mm256_extractf128_ps(narrow, 1)));
}

PX_AVX2 void flush(NarrowSums& narrow, Sums& sums) {
  widen(sums.low.abs, sums.high.abs, narrow.abs);
  widen(sums.low.dd, sums.high.dd, narrow.dd);
  widen(sums.low.aa, sums.high.aa, narrow.aa);
  widen(sums.low.bb, sums.high.bb, narrow.bb);
  widen(sums.low.dp, sums.high.dp, narrow.dp);
  narrow = no_narrow_sums();
}

PX_AVX2 void store_half(const Half& sums, BlockResult& result, size_t lane) {
  _mm256_store_pd(result.sum_abs.data() + lane, sums.abs);
  _mm256_store_pd(result.sum_dd.data() + lane, sums.dd);
  _mm256_store_pd(result.sum_aa.data() + lane, sums.aa);
  _mm256_store_pd(result.sum_bb.data() + lane, sums.bb);
  _mm256_store_pd(result.sum_dp.data() + lane, sums.dp);
}

// As in the AVX-512 kernels.
PX_AVX2 void fetch_ahead(const void* address) {
  constexpr uintptr_t kAheadBytes = 1024;
  _mm_prefetch(reinterpret_cast<const char*>(reinterpret_cast<uintptr_t>(address) + kAheadBytes), _MM_HINT_T0);
}

struct Load32 {
  using Stored = float;
  PX_AVX2 static __m256 load(const float* source) { return _mm256_loadu_ps(source); }
};
struct Load16 {
  using Stored = uint16_t;
  PX_AVX2 static __m256 load(const uint16_t* source) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(source)));
  }
};
struct LoadB16 {
  using Stored = uint16_t;
  PX_AVX2 static __m256 load(const uint16_t* source) {
    const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(source)));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
  }
};

struct Counts {
  int64_t possible = 0, certain = 0;
};

PX_AVX2 void count_mismatches(Counts& counts, __m256 d, __m256 magnitude, __m256 nonzero, const Filter<float>& filter) {
  const __m256 low =
      _mm256_fmadd_ps(_mm256_set1_ps(filter.possible_rtol), magnitude, _mm256_set1_ps(filter.possible_atol));
  const __m256 high =
      _mm256_fmadd_ps(_mm256_set1_ps(filter.certain_rtol), magnitude, _mm256_set1_ps(filter.certain_atol));
  const __m256 possible = _mm256_and_ps(nonzero, _mm256_cmp_ps(d, low, _CMP_NLT_UQ));
  counts.possible += __builtin_popcount(static_cast<unsigned>(_mm256_movemask_ps(possible)));
  counts.certain += __builtin_popcount(static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(d, high, _CMP_GT_OQ))));
}

PX_AVX2 void store_buckets(uint8_t* target, __m256 d, __m256 nonzero) {
  const __m256i exponent = _mm256_srli_epi32(_mm256_castps_si256(d), 23);
  const __m256i shifted = _mm256_sub_epi32(exponent, _mm256_set1_epi32(127 - kBucketExponent - 1));
  const __m256i clamped = _mm256_min_epi32(_mm256_max_epi32(shifted, _mm256_set1_epi32(1)), _mm256_set1_epi32(64));
  const __m256i bucket = _mm256_and_si256(clamped, _mm256_castps_si256(nonzero));
  const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(bucket), _mm256_extracti128_si256(bucket, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(target), _mm_packus_epi16(words, words));
}

// Eight elements; returns their flags.
template <class Source>
PX_AVX2 unsigned float_step(const typename Source::Stored* a, const typename Source::Stored* b,
                            const Filter<float>& filter, NarrowSums& sums, Counts& counts, uint8_t* buckets) {
  fetch_ahead(a);
  fetch_ahead(b);
  const __m256 x = Source::load(a), y = Source::load(b);
  const __m256 difference = _mm256_sub_ps(x, y);
  const __m256 d = absolute(difference), magnitude = absolute(x);
  const __m256 nonzero = _mm256_cmp_ps(d, _mm256_setzero_ps(), _CMP_NEQ_UQ);
  const __m256 severity =
      _mm256_fmadd_ps(_mm256_set1_ps(filter.severity_rtol), magnitude, _mm256_set1_ps(filter.severity_atol));
  const __m256 relative = _mm256_mul_ps(_mm256_set1_ps(filter.relative), magnitude);
  const __m256 units = _mm256_mul_ps(_mm256_set1_ps(filter.units), _mm256_max_ps(magnitude, absolute(y)));
  const __m256 bound =
      _mm256_min_ps(_mm256_min_ps(severity, relative), _mm256_min_ps(units, _mm256_set1_ps(filter.absolute)));
  const __m256 flagged = _mm256_and_ps(nonzero, _mm256_cmp_ps(d, bound, _CMP_NLT_UQ));
  if (filter.count_mismatches) count_mismatches(counts, d, magnitude, nonzero, filter);
  if (buckets != nullptr) store_buckets(buckets, d, nonzero);
  add_to_sums(sums, x, y, difference, d);
  return static_cast<unsigned>(_mm256_movemask_ps(flagged));
}

// Four elements; returns their flags.
PX_AVX2 unsigned double_step(const double* a, const double* b, const Filter<double>& filter, Half& sums, Counts& counts,
                             uint8_t* buckets) {
  fetch_ahead(a);
  fetch_ahead(b);
  const __m256d x = _mm256_loadu_pd(a), y = _mm256_loadu_pd(b);
  const __m256d d = absolute(_mm256_sub_pd(x, y)), magnitude = absolute(x);
  const __m256d nonzero = _mm256_cmp_pd(d, _mm256_setzero_pd(), _CMP_NEQ_UQ);
  const __m256d severity =
      _mm256_fmadd_pd(_mm256_set1_pd(filter.severity_rtol), magnitude, _mm256_set1_pd(filter.severity_atol));
  const __m256d relative = _mm256_mul_pd(_mm256_set1_pd(filter.relative), magnitude);
  const __m256d units = _mm256_mul_pd(_mm256_set1_pd(filter.units), _mm256_max_pd(magnitude, absolute(y)));
  const __m256d bound =
      _mm256_min_pd(_mm256_min_pd(severity, relative), _mm256_min_pd(units, _mm256_set1_pd(filter.absolute)));
  const __m256d flagged = _mm256_and_pd(nonzero, _mm256_cmp_pd(d, bound, _CMP_NLT_UQ));
  if (filter.count_mismatches) {
    const __m256d low =
        _mm256_fmadd_pd(_mm256_set1_pd(filter.possible_rtol), magnitude, _mm256_set1_pd(filter.possible_atol));
    const __m256d high =
        _mm256_fmadd_pd(_mm256_set1_pd(filter.certain_rtol), magnitude, _mm256_set1_pd(filter.certain_atol));
    const __m256d possible = _mm256_and_pd(nonzero, _mm256_cmp_pd(d, low, _CMP_NLT_UQ));
    counts.possible += __builtin_popcount(static_cast<unsigned>(_mm256_movemask_pd(possible)));
    counts.certain += __builtin_popcount(static_cast<unsigned>(_mm256_movemask_pd(_mm256_cmp_pd(d, high, _CMP_GT_OQ))));
  }
  if (buckets != nullptr) {
    alignas(32) std::array<uint64_t, 4> words;
    _mm256_store_pd(reinterpret_cast<double*>(words.data()), d);
    for (size_t lane = 0; lane < words.size(); ++lane) {
      const int bucket = static_cast<int>(words[lane] >> 52) - (1023 - kBucketExponent - 1);
      buckets[lane] = words[lane] == 0 ? uint8_t{0} : static_cast<uint8_t>(std::clamp(bucket, 1, 64));
    }
  }
  add_to_sums(sums, x, y);
  return static_cast<unsigned>(_mm256_movemask_pd(flagged));
}

// The state of a run over one block; a group is sixteen elements, its flags a bit each.
template <class Source>
struct FloatRun {
  NarrowSums low, high;  // lanes 0 to 7 and 8 to 15

  PX_AVX2 unsigned group(const typename Source::Stored* a, const typename Source::Stored* b,
                         const Filter<float>& filter, Sums&, Counts& counts, uint8_t* buckets) {
    const unsigned flags = float_step<Source>(a, b, filter, low, counts, buckets);
    return flags | float_step<Source>(a + 8, b + 8, filter, high, counts, buckets == nullptr ? nullptr : buckets + 8)
                       << 8;
  }
  PX_AVX2 void begin() { low = high = no_narrow_sums(); }
  PX_AVX2 void flush_into(Sums& sums) {
    flush(low, sums);
    flush(high, sums);
  }
};

struct Doubles {
  using Stored = double;
};
struct DoubleRun {
  PX_AVX2 unsigned group(const double* a, const double* b, const Filter<double>& filter, Sums& sums, Counts& counts,
                         uint8_t* buckets) {
    unsigned flags = 0;
    for (int quarter = 0; quarter < 4; ++quarter) {
      const int offset = 4 * quarter;
      Half& half = quarter % 2 == 0 ? sums.low : sums.high;
      flags |=
          double_step(a + offset, b + offset, filter, half, counts, buckets == nullptr ? nullptr : buckets + offset)
          << offset;
    }
    return flags;
  }
  PX_AVX2 void begin() {}
  PX_AVX2 void flush_into(Sums&) {}
};

// The rest of a block goes through copies filled up with zeros, which add nothing.
template <class Source, class Run, class T, bool kCount, bool kHistogram>
PX_AVX2 void run_groups(const typename Source::Stored* a, const typename Source::Stored* b, int64_t count,
                        Filter<T> filter, BlockResult& result, uint8_t* buckets) {
  filter.count_mismatches = kCount;
  Run run;
  run.begin();
  Sums sums = no_sums();
  Counts counts;
  unsigned any = 0;
  const int64_t groups = count / kGroup, whole = groups * kGroup;
  for (int64_t first = 0; first < groups; first += kFlushGroups) {
    const int64_t last = first + kFlushGroups < groups ? first + kFlushGroups : groups;
    for (int64_t group = first; group < last; ++group) {
      const int64_t begin = group * kGroup;
      const unsigned flags =
          run.group(a + begin, b + begin, filter, sums, counts, kHistogram ? buckets + begin : nullptr);
      result.flagged[static_cast<size_t>(group)] = static_cast<uint16_t>(flags);
      any |= flags;
    }
    if (last - first == kFlushGroups) run.flush_into(sums);
  }
  if (whole < count) {
    std::array<typename Source::Stored, kGroup> rest_a{}, rest_b{};
    std::array<uint8_t, kGroup> rest_buckets;
    std::copy(a + whole, a + count, rest_a.begin());
    std::copy(b + whole, b + count, rest_b.begin());
    const unsigned flags =
        run.group(rest_a.data(), rest_b.data(), filter, sums, counts, kHistogram ? rest_buckets.data() : nullptr);
    result.flagged[static_cast<size_t>(groups)] = static_cast<uint16_t>(flags);
    if (kHistogram) std::copy(rest_buckets.begin(), rest_buckets.begin() + (count - whole), buckets + whole);
    any |= flags;
  }
  run.flush_into(sums);
  store_half(sums.low, result, 0);
  store_half(sums.high, result, 4);
  result.possible = counts.possible;
  result.certain = counts.certain;
  result.any_flagged = any != 0;
}

template <class Source, class Run, class T>
PX_AVX2_ENTRY void dispatch(const typename Source::Stored* a, const typename Source::Stored* b, int64_t count,
                            const Filter<T>& filter, BlockResult& result, uint8_t* buckets) {
  if (filter.count_mismatches) {
    if (buckets != nullptr) return run_groups<Source, Run, T, true, true>(a, b, count, filter, result, buckets);
    return run_groups<Source, Run, T, true, false>(a, b, count, filter, result, buckets);
  }
  if (buckets != nullptr) return run_groups<Source, Run, T, false, true>(a, b, count, filter, result, buckets);
  return run_groups<Source, Run, T, false, false>(a, b, count, filter, result, buckets);
}

// Differences of one tensor are in few buckets: one comparison a bucket and 32 elements is cheaper than 32 increments.
PX_AVX2_ENTRY void count_buckets(const uint8_t* buckets, int64_t count, int64_t* histogram) {
  const int64_t whole = count / 32 * 32;
  __m256i low = _mm256_set1_epi8(-1),
          high = _mm256_setzero_si256();  // of the buckets less one: equal elements (0) wrap around
  for (int64_t index = 0; index < whole; index += 32) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(buckets + index));
    low = _mm256_min_epu8(low, _mm256_sub_epi8(bytes, _mm256_set1_epi8(1)));
    high = _mm256_max_epu8(high, bytes);
  }
  alignas(32) std::array<uint8_t, 32> lows, highs;
  _mm256_store_si256(reinterpret_cast<__m256i*>(lows.data()), low);
  _mm256_store_si256(reinterpret_cast<__m256i*>(highs.data()), high);
  const int first = *std::min_element(lows.begin(), lows.end()) + 1;
  const int last = *std::max_element(highs.begin(), highs.end());
  int64_t different = 0;
  for (int bucket = first; bucket <= last; ++bucket) {
    const __m256i wanted = _mm256_set1_epi8(static_cast<char>(bucket));
    int64_t total = 0;
    for (int64_t index = 0; index < whole; index += 32) {
      const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(buckets + index));
      total += __builtin_popcount(static_cast<unsigned>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes, wanted))));
    }
    histogram[bucket] += total;
    different += total;
  }
  histogram[0] += whole - different;
  for (int64_t index = whole; index < count; ++index) ++histogram[buckets[index]];
}

}  // namespace

const Kernels kAvx2Kernels = {"avx2",
                              VectorLevel::avx2,
                              dispatch<Load32, FloatRun<Load32>, float>,
                              dispatch<Doubles, DoubleRun, double>,
                              dispatch<Load16, FloatRun<Load16>, float>,
                              dispatch<LoadB16, FloatRun<LoadB16>, float>,
                              count_buckets};

}  // namespace parallax::diff
#endif
