// SPDX-License-Identifier: Apache-2.0
// The body of the kernels, included once by each metrics_kernel_<set>.cpp, which names the functions PX_METRICS_FLOATS,
// PX_METRICS_DOUBLES and PX_METRICS_BUCKETS and is compiled for its instruction set.
#pragma once

#include <cstring>
#include <type_traits>

#include "inspector/diff/metrics/metrics_kernel.h"
#include "inspector/tensor/kernel_vectors.h"

namespace parallax::diff {
namespace {

using namespace vectors;
static_assert(kLanes == kRowLanes);

template <class T>
struct VectorsOf {
  using Vector = FloatsFull;
  using Mask = FloatsFullMask;
  using Bits = FloatsFullBits;
  using Bytes = uint8_t __attribute__((vector_size(kVectorBytes / 4)));
  static constexpr uint32_t kMagnitude = 0x7FFFFFFFU;
  static constexpr int32_t kMantissaBits = 23, kBias = 127;
};
template <>
struct VectorsOf<double> {
  using Vector = Part;
  using Mask = PartBits;
  using Bits = uint64_t __attribute__((vector_size(kVectorBytes)));
  using Bytes = uint8_t __attribute__((vector_size(kVectorBytes / 8)));
  static constexpr uint64_t kMagnitude = 0x7FFFFFFFFFFFFFFFU;
  static constexpr int64_t kMantissaBits = 52, kBias = 1023;
};
template <class T>
using VectorOf = typename VectorsOf<T>::Vector;
template <class T>
using MaskOf = typename VectorsOf<T>::Mask;

template <class T>
constexpr int kVectorLanes = kVectorBytes / static_cast<int>(sizeof(T));

template <class T>
inline VectorOf<T> every(T number) {
  return number - VectorOf<T>{};
}

template <class Vector>
inline Vector min_of(const Vector& a, const Vector& b) {
  return a < b ? a : b;
}
template <class Vector>
inline Vector max_of(const Vector& a, const Vector& b) {
  return a > b ? a : b;
}

template <class T>
inline VectorOf<T> absolute(const VectorOf<T>& numbers) {
  const auto bits = reinterpret_cast<typename VectorsOf<T>::Bits>(numbers) & VectorsOf<T>::kMagnitude;
  return reinterpret_cast<VectorOf<T>>(bits);
}

// A bit for each lane in which d reaches the bound.
inline unsigned bits_reaching(FloatsFull d, FloatsFull bound) {
#if defined(__AVX512F__)
  return _mm512_cmp_ps_mask(d, bound, _CMP_GE_OQ);
#elif defined(__AVX2__)
  return static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(d, bound, _CMP_GE_OQ)));
#elif defined(__SSE2__)
  return static_cast<unsigned>(_mm_movemask_ps(_mm_cmpge_ps(d, bound)));
#else
  unsigned bits = 0;
  for (int lane = 0; lane < kFullLanes; ++lane) bits |= static_cast<unsigned>(d[lane] >= bound[lane]) << lane;
  return bits;
#endif
}
inline unsigned bits_reaching(Part d, Part bound) {
#if defined(__AVX512F__)
  return _mm512_cmp_pd_mask(d, bound, _CMP_GE_OQ);
#elif defined(__AVX2__)
  return static_cast<unsigned>(_mm256_movemask_pd(_mm256_cmp_pd(d, bound, _CMP_GE_OQ)));
#elif defined(__SSE2__)
  return static_cast<unsigned>(_mm_movemask_pd(_mm_cmpge_pd(d, bound)));
#else
  unsigned bits = 0;
  for (int lane = 0; lane < kPartLanes; ++lane) bits |= static_cast<unsigned>(d[lane] >= bound[lane]) << lane;
  return bits;
#endif
}

inline void split(const FloatsFull& numbers, FloatPart& low, FloatPart& high) {
#if defined(__AVX512F__)
  low = __builtin_shufflevector(numbers, numbers, 0, 1, 2, 3, 4, 5, 6, 7);
  high = __builtin_shufflevector(numbers, numbers, 8, 9, 10, 11, 12, 13, 14, 15);
#elif defined(__AVX2__)
  low = _mm256_castps256_ps128(numbers);
  high = _mm256_extractf128_ps(numbers, 1);
#else
  std::memcpy(&low, &numbers, sizeof low);
  std::memcpy(&high, reinterpret_cast<const float*>(&numbers) + kPartLanes, sizeof high);
#endif
}

// Two streams and this much work a group are more than the processor looks ahead by itself. Addresses past the end do
// no harm.
inline void fetch_ahead(const std::byte* source, size_t size) {
  constexpr size_t kAheadBytes = 1024, kLineBytes = 64;
  for (size_t offset = 0; offset < size; offset += kLineBytes) __builtin_prefetch(source + kAheadBytes + offset);
}

template <class T>
struct LaneSums {
  VectorOf<T> abs{}, dd{}, aa{}, bb{}, dp{};

  void add(const VectorOf<T>& x, const VectorOf<T>& y, const VectorOf<T>& difference, const VectorOf<T>& d) {
    abs += d;
    dd += d * d;
    aa += x * x;
    bb += y * y;
    dp += difference * (x + y);
  }
};

template <class T>
struct Counts {
  MaskOf<T> possible{}, certain{};
};

template <class Mask>
inline int64_t sum_of(const Mask& counts) {
  int64_t sum = 0;
  for (size_t lane = 0; lane < sizeof counts / sizeof counts[0]; ++lane) sum += counts[lane];
  return sum;
}

// Numbers of 0 to 127 as a byte each.
template <class Bytes, class Mask>
inline void store_bytes(uint8_t* target, const Mask& numbers) {
  const Bytes bytes = __builtin_convertvector(numbers, Bytes);
  std::memcpy(target, &bytes, sizeof bytes);
}
#if defined(__SSE2__) && !defined(__AVX512F__)
template <>
inline void store_bytes<VectorsOf<float>::Bytes>(uint8_t* target, const FloatsFullMask& numbers) {
#if defined(__AVX2__)
  const auto all = reinterpret_cast<__m256i>(numbers);
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
#else
  const __m128i words = _mm_packs_epi32(reinterpret_cast<__m128i>(numbers), _mm_setzero_si128());
#endif
  const __m128i bytes = _mm_packs_epi16(words, words);
  std::memcpy(target, &bytes, sizeof(VectorsOf<float>::Bytes));
}
#endif

template <class T>
inline void store_buckets(uint8_t* target, const VectorOf<T>& d) {
  using Mask = MaskOf<T>;
  const Mask exponent = reinterpret_cast<Mask>(d) >> VectorsOf<T>::kMantissaBits;  // d has no sign
  const Mask bucket = exponent - (VectorsOf<T>::kBias - kBucketExponent - 1);
  const Mask clamped = min_of(max_of(bucket, Mask{} + 1), Mask{} + 64) & (d != T{0});
  store_bytes<typename VectorsOf<T>::Bytes>(target, clamped);
}

// The state of a run over one block: sums in lanes of T, one vector a part of the lanes.
template <NumberFormat kFormat, bool kCount, bool kHistogram>
class Run {
 public:
  using T = std::conditional_t<kFormat == NumberFormat::float64, double, float>;
  using Vector = VectorOf<T>;
  static constexpr size_t kBytes = element_bytes(kFormat);

  explicit Run(const Filter<T>& filter) : filter_(filter) {}

  // Sixteen elements; returns their flags.
  unsigned add_group(const std::byte* a, const std::byte* b, uint8_t* buckets) {
    constexpr int kStep = kVectorLanes<T>;
    unsigned flags = 0;
#pragma GCC unroll 8
    for (int first = 0; first < kGroup; first += kStep) {
      const size_t offset = static_cast<size_t>(first) * kBytes;
      flags |= add_step(a + offset, b + offset, sums_[first / kStep % kParts], kHistogram ? buckets + first : nullptr)
               << first;
    }
    return flags;
  }

  // Float lanes flow into double ones, lane l before lane l + 8.
  void flush() {
    if constexpr (kFormat != NumberFormat::float64) {
#pragma GCC unroll 4
      for (int vector = 0; vector < kParts; ++vector) {
        flush_sum(&LaneSums<float>::abs, &LaneSums<double>::abs, vector);
        flush_sum(&LaneSums<float>::dd, &LaneSums<double>::dd, vector);
        flush_sum(&LaneSums<float>::aa, &LaneSums<double>::aa, vector);
        flush_sum(&LaneSums<float>::bb, &LaneSums<double>::bb, vector);
        flush_sum(&LaneSums<float>::dp, &LaneSums<double>::dp, vector);
      }
    }
  }

  void store(BlockResult& result) {
    flush();
    for (int part = 0; part < kParts; ++part) {
      const LaneSums<double>& sums = wide(part);
      const int lane = part * kPartLanes;
      std::memcpy(result.sum_abs + lane, &sums.abs, sizeof sums.abs);
      std::memcpy(result.sum_dd + lane, &sums.dd, sizeof sums.dd);
      std::memcpy(result.sum_aa + lane, &sums.aa, sizeof sums.aa);
      std::memcpy(result.sum_bb + lane, &sums.bb, sizeof sums.bb);
      std::memcpy(result.sum_dp + lane, &sums.dp, sizeof sums.dp);
    }
    result.possible = sum_of(counts_.possible);
    result.certain = sum_of(counts_.certain);
  }

 private:
  static Vector load(const std::byte* source) {
    Vector numbers;
    if constexpr (kFormat == NumberFormat::float64) {
      std::memcpy(&numbers, source, sizeof numbers);
    } else {
      load_floats<kFormat, FloatsFullBits>(source, numbers);
    }
    return numbers;
  }

  unsigned add_step(const std::byte* a, const std::byte* b, LaneSums<T>& sums, uint8_t* buckets) {
    const Vector x = load(a), y = load(b);
    const Vector difference = x - y;
    const Vector d = absolute<T>(difference), magnitude = absolute<T>(x);
    const Vector severity = filter_.severity_rtol * magnitude + filter_.severity_atol;
    const Vector relative = filter_.relative * magnitude;
    const Vector units = filter_.units * max_of(magnitude, absolute<T>(y));
    const Vector bound = min_of(min_of(severity, relative), min_of(units, absolute_bound_));
    if constexpr (kCount) {
      const Vector low = filter_.possible_rtol * magnitude + filter_.possible_atol;
      const Vector high = filter_.certain_rtol * magnitude + filter_.certain_atol;
      counts_.possible -= d >= max_of(low, smallest_);
      counts_.certain -= d > high;
    }
    if constexpr (kHistogram) store_buckets<T>(buckets, d);
    sums.add(x, y, difference, d);
    return bits_reaching(d, max_of(bound, smallest_));
  }

  LaneSums<double>& wide(int part) {
    if constexpr (kFormat == NumberFormat::float64) {
      return sums_[part];
    } else {
      return wide_[part];
    }
  }

  void flush_sum(FloatsFull LaneSums<float>::*narrow, Part LaneSums<double>::*wide, int vector) {
    constexpr int kVectorParts = kFullLanes / kPartLanes;
    FloatPart low, high;
    split(sums_[vector].*narrow, low, high);
    wide_[vector * kVectorParts % kParts].*wide += widened(low);
    wide_[(vector * kVectorParts + 1) % kParts].*wide += widened(high);
    sums_[vector].*narrow = FloatsFull{};
  }

  const Filter<T> filter_;
  const Vector absolute_bound_ = every(filter_.absolute), smallest_ = every(filter_.smallest);
  LaneSums<T> sums_[kParts];
  LaneSums<double> wide_[kParts];
  Counts<T> counts_;
};

// The rest of a block goes through copies filled up with zeros, which add nothing.
template <NumberFormat kFormat, bool kCount, bool kHistogram, class T>
inline void run_block(const std::byte* a, const std::byte* b, int64_t count, const Filter<T>& filter,
                      BlockResult& result, uint8_t* buckets) {
  constexpr size_t kBytes = element_bytes(kFormat), kGroupBytes = kBytes * kGroup;
  Run<kFormat, kCount, kHistogram> run(filter);
  unsigned any = 0;
  const int64_t groups = count / kGroup;
  for (int64_t group = 0; group < groups; ++group) {
    const size_t offset = static_cast<size_t>(group) * kGroupBytes;
    fetch_ahead(a + offset, kGroupBytes);
    fetch_ahead(b + offset, kGroupBytes);
    const unsigned flags = run.add_group(a + offset, b + offset, kHistogram ? buckets + group * kGroup : nullptr);
    result.flagged[group] = static_cast<uint16_t>(flags);
    any |= flags;
    if ((group + 1) % kFlushGroups == 0) run.flush();
  }
  const size_t rest = static_cast<size_t>(count % kGroup), whole = static_cast<size_t>(groups) * kGroupBytes;
  if (rest != 0) {
    std::byte rest_a[kGroupBytes] = {}, rest_b[kGroupBytes] = {};
    uint8_t rest_buckets[kGroup];
    std::memcpy(rest_a, a + whole, rest * kBytes);
    std::memcpy(rest_b, b + whole, rest * kBytes);
    const unsigned flags = run.add_group(rest_a, rest_b, rest_buckets);
    result.flagged[groups] = static_cast<uint16_t>(flags);
    if (kHistogram) std::memcpy(buckets + groups * kGroup, rest_buckets, rest);
    any |= flags;
  }
  run.store(result);
  result.any_flagged = any != 0;
}

template <NumberFormat kFormat, class T>
inline void run_format(const std::byte* a, const std::byte* b, int64_t count, const Filter<T>& filter,
                       BlockResult& result, uint8_t* buckets) {
  if (filter.count_mismatches) {
    if (buckets != nullptr) return run_block<kFormat, true, true>(a, b, count, filter, result, buckets);
    return run_block<kFormat, true, false>(a, b, count, filter, result, buckets);
  }
  if (buckets != nullptr) return run_block<kFormat, false, true>(a, b, count, filter, result, buckets);
  return run_block<kFormat, false, false>(a, b, count, filter, result, buckets);
}

}  // namespace

void PX_METRICS_FLOATS(NumberFormat format, const std::byte* a, const std::byte* b, int64_t count,
                       const Filter<float>& filter, BlockResult& result, uint8_t* buckets);
void PX_METRICS_FLOATS(NumberFormat format, const std::byte* a, const std::byte* b, int64_t count,
                       const Filter<float>& filter, BlockResult& result, uint8_t* buckets) {
  switch (format) {
    case NumberFormat::float16:
      return run_format<NumberFormat::float16>(a, b, count, filter, result, buckets);
    case NumberFormat::bfloat16:
      return run_format<NumberFormat::bfloat16>(a, b, count, filter, result, buckets);
    default:
      return run_format<NumberFormat::float32>(a, b, count, filter, result, buckets);
  }
}

void PX_METRICS_DOUBLES(const std::byte* a, const std::byte* b, int64_t count, const Filter<double>& filter,
                        BlockResult& result, uint8_t* buckets);
void PX_METRICS_DOUBLES(const std::byte* a, const std::byte* b, int64_t count, const Filter<double>& filter,
                        BlockResult& result, uint8_t* buckets) {
  run_format<NumberFormat::float64>(a, b, count, filter, result, buckets);
}

// Differences of one tensor are in few buckets: one comparison a bucket and vector is cheaper than an increment an
// element.
void PX_METRICS_BUCKETS(const uint8_t* buckets, int64_t count, int64_t* histogram);
void PX_METRICS_BUCKETS(const uint8_t* buckets, int64_t count, int64_t* histogram) {
  using Bytes = uint8_t __attribute__((vector_size(kVectorBytes)));
  static_assert(kBlock / kVectorBytes < 256);  // a byte counts the elements of its lane
  const int64_t whole = count / kVectorBytes * kVectorBytes;
  Bytes low = Bytes{} - 1, high{};  // low is that of the buckets less one: equal elements (0) wrap around
  for (int64_t index = 0; index < whole; index += kVectorBytes) {
    Bytes bytes;
    std::memcpy(&bytes, buckets + index, sizeof bytes);
    low = min_of(low, bytes - 1);
    high = max_of(high, bytes);
  }
  int first = 255, last = 0;
  for (int lane = 0; lane < kVectorBytes; ++lane) {
    first = low[lane] < first ? low[lane] : first;
    last = high[lane] > last ? high[lane] : last;
  }
  int64_t different = 0;
  for (int bucket = first + 1; bucket <= last; ++bucket) {
    Bytes lanes{};
    for (int64_t index = 0; index < whole; index += kVectorBytes) {
      Bytes bytes;
      std::memcpy(&bytes, buckets + index, sizeof bytes);
      lanes -= reinterpret_cast<Bytes>(bytes == static_cast<uint8_t>(bucket));
    }
    const int64_t total = sum_of(lanes);
    histogram[bucket] += total;
    different += total;
  }
  histogram[0] += whole - different;
  for (int64_t index = whole; index < count; ++index) ++histogram[buckets[index]];
}

}  // namespace parallax::diff
