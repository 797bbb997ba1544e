// SPDX-License-Identifier: Apache-2.0
// The kernels in plain C++: what every machine can run, and what the vectorized ones are held against.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "inspector/diff/metrics/metrics_kernel.h"
#include "inspector/tensor/float_formats.h"

namespace parallax::diff {
namespace {

template <class T>
struct Bits;
template <>
struct Bits<float> {
  using Word = uint32_t;
  static constexpr Word kExponent = 0x7F800000U;
  static constexpr int kMantissa = 23;
  static constexpr int kBias = 127;
};
template <>
struct Bits<double> {
  using Word = uint64_t;
  static constexpr Word kExponent = 0x7FF0000000000000U;
  static constexpr int kMantissa = 52;
  static constexpr int kBias = 1023;
};

template <class T>
uint8_t bucket_of(T difference) {
  if (difference == 0) return 0;
  const int exponent =
      static_cast<int>((std::bit_cast<typename Bits<T>::Word>(difference) & Bits<T>::kExponent) >> Bits<T>::kMantissa);
  const int bucket = exponent - Bits<T>::kBias + kBucketExponent + 1;
  return static_cast<uint8_t>(bucket < 1 ? 1 : bucket > 64 ? 64 : bucket);
}

template <class T>
bool is_flagged(T d, T magnitude, T larger, const Filter<T>& filter) {
  const bool is_below = d < filter.severity_rtol * magnitude + filter.severity_atol &&
                        d < filter.relative * magnitude && d < filter.units * larger && d < filter.absolute;
  return d != 0 && !is_below;
}

// Five sums in kCount lanes of T.
template <class T, size_t kCount>
struct Sums {
  std::array<T, kCount> abs{}, dd{}, aa{}, bb{}, dp{};

  void add(size_t lane, T x, T y) {
    const T d = x - y;
    abs[lane] += std::abs(d);
    dd[lane] += d * d;
    aa[lane] += x * x;
    bb[lane] += y * y;
    dp[lane] += d * (x + y);
  }
};

using Wide = Sums<double, kLanes>;

void flush(std::array<float, kGroup>& narrow, std::array<double, kLanes>& wide) {
  for (size_t lane = 0; lane < kLanes; ++lane) wide[lane] += static_cast<double>(narrow[lane]);
  for (size_t lane = 0; lane < kLanes; ++lane) wide[lane] += static_cast<double>(narrow[lane + kLanes]);
  narrow = {};
}

// The sums of a block: doubles straight into the wide lanes, floats through narrow ones.
template <class T>
struct BlockSums {
  Wide wide;
  Sums<float, kGroup> narrow;

  void add(int64_t index, T x, T y) {
    if constexpr (std::is_same_v<T, float>) {
      narrow.add(static_cast<size_t>(index % kGroup), x, y);
    } else {
      wide.add(static_cast<size_t>(index % kLanes), x, y);
    }
  }
  void end_group(int64_t group) {
    if (std::is_same_v<T, float> && (group + 1) % kFlushGroups == 0) flush_all();
  }
  void flush_all() {
    flush(narrow.abs, wide.abs);
    flush(narrow.dd, wide.dd);
    flush(narrow.aa, wide.aa);
    flush(narrow.bb, wide.bb);
    flush(narrow.dp, wide.dp);
  }
  void store(BlockResult& result) {
    if (std::is_same_v<T, float>) flush_all();
    result.sum_abs = wide.abs;
    result.sum_dd = wide.dd;
    result.sum_aa = wide.aa;
    result.sum_bb = wide.bb;
    result.sum_dp = wide.dp;
  }
};

// `load` turns a stored element into T, exactly.
template <class T, class Stored, class Load>
void run(const Stored* a, const Stored* b, int64_t count, const Filter<T>& filter, BlockResult& result,
         uint8_t* buckets, Load load) {
  BlockSums<T> sums;
  result.possible = result.certain = 0;
  result.any_flagged = false;
  for (int64_t group = 0; group * kGroup < count; ++group) {
    unsigned flags = 0;
    const int64_t begin = group * kGroup;
    const int64_t end = begin + kGroup < count ? begin + kGroup : count;
    for (int64_t index = begin; index < end; ++index) {
      const T x = load(a[index]), y = load(b[index]);
      const T d = std::abs(x - y), magnitude = std::abs(x), larger = std::max(magnitude, std::abs(y));
      flags |= static_cast<unsigned>(is_flagged(d, magnitude, larger, filter)) << (index - begin);
      if (filter.count_mismatches) {
        result.possible += d != 0 && !(d < filter.possible_rtol * magnitude + filter.possible_atol);
        result.certain += d > filter.certain_rtol * magnitude + filter.certain_atol;
      }
      if (buckets != nullptr) buckets[index] = bucket_of(d);
      sums.add(index, x, y);
    }
    sums.end_group(group);
    result.flagged[static_cast<size_t>(group)] = static_cast<uint16_t>(flags);
    result.any_flagged = result.any_flagged || flags != 0;
  }
  sums.store(result);
}

void run_float32(const float* a, const float* b, int64_t count, const Filter<float>& filter, BlockResult& result,
                 uint8_t* buckets) {
  run<float>(a, b, count, filter, result, buckets, [](float value) { return value; });
}

void run_float64(const double* a, const double* b, int64_t count, const Filter<double>& filter, BlockResult& result,
                 uint8_t* buckets) {
  run<double>(a, b, count, filter, result, buckets, [](double value) { return value; });
}

void run_float16(const uint16_t* a, const uint16_t* b, int64_t count, const Filter<float>& filter, BlockResult& result,
                 uint8_t* buckets) {
  run<float>(a, b, count, filter, result, buckets, [](uint16_t bits) { return float16_to_float(bits); });
}

void run_bfloat16(const uint16_t* a, const uint16_t* b, int64_t count, const Filter<float>& filter, BlockResult& result,
                  uint8_t* buckets) {
  run<float>(a, b, count, filter, result, buckets, [](uint16_t bits) { return bfloat16_to_float(bits); });
}

void count_buckets(const uint8_t* buckets, int64_t count, int64_t* histogram) {
  for (int64_t index = 0; index < count; ++index) ++histogram[buckets[index]];
}

}  // namespace

const Kernels kPortableKernels = {"portable",  VectorLevel::baseline, run_float32,  run_float64,
                                  run_float16, run_bfloat16,          count_buckets};

}  // namespace parallax::diff
