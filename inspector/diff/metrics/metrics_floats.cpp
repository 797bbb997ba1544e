// SPDX-License-Identifier: Apache-2.0
// Metrics of floating-point tensors: blocks through the kernels, what they flag judged exactly, special values by
// class.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "inspector/base/thread_pool.h"
#include "inspector/diff/metrics/metrics_internal.h"
#include "inspector/diff/metrics/metrics_kernel.h"
#include "inspector/tensor/elements.h"

namespace parallax::diff {
namespace {

constexpr int64_t kChunk =
    int64_t{1} << 20;  // elements whose sums are kept apart, so that any number of threads sums alike

// Covers the roundings of the bounds that a kernel makes of a filter.
template <class T>
constexpr double kRoundingMargin = double{std::numeric_limits<T>::epsilon()} * (std::is_same_v<T, float> ? 8 : 4096);
// Below it products could round up: subnormal numbers have few digits.
template <class T>
constexpr double kTiny = double{std::numeric_limits<T>::min()} * (std::is_same_v<T, float> ? 0x1p26 : 0x1p62);

// A little lower than `value`, in T, whatever the rounding. Beyond the range of T: its largest number (still lower). A
// value that is tiny in T becomes 0.
template <class T>
T lowered(double value) {
  const double low = value * (1 - kRoundingMargin<T>);
  if (!(low > kTiny<T>)) return 0;
  return low > static_cast<double>(std::numeric_limits<T>::max()) ? std::numeric_limits<T>::max() : static_cast<T>(low);
}

template <class T>
T raised(double value) {
  return static_cast<T>(std::max(value * (1 + kRoundingMargin<T>), kTiny<T>));  // overflow to infinity: none is certain
}

// Below 1 every mismatch would raise the maximum, and so be flagged.
bool counts_mismatches(const Extremes& extremes) { return extremes.severity >= 1; }

template <class T>
Filter<T> filter_of(const Extremes& extremes, const Measure& measure) {
  Filter<T> filter;
  filter.severity_rtol = lowered<T>(extremes.severity * measure.rtol);
  filter.severity_atol = lowered<T>(extremes.severity * measure.atol);
  filter.relative = lowered<T>(extremes.max_rel);
  // A unit in the last place of a number is more than half of epsilon times it.
  filter.units = lowered<T>(extremes.max_ulp * measure.epsilon / 2);
  filter.absolute = lowered<T>(extremes.max_abs);
  filter.possible_rtol = lowered<T>(measure.rtol);
  filter.possible_atol = lowered<T>(measure.atol);
  filter.certain_rtol = raised<T>(measure.rtol);
  filter.certain_atol = raised<T>(measure.atol);
  filter.smallest = std::numeric_limits<T>::denorm_min();
  filter.count_mismatches = counts_mismatches(extremes);
  return filter;
}

double sum_of(const BlockResult::Lanes& lanes) {
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

// Tensors up to this size, where speed counts less than the last digits, are summed in double throughout.
constexpr int64_t kSmall = int64_t{1} << 14;

class FloatRange {
 public:
  // Without a format, elements are decoded to double block by block.
  FloatRange(const TensorView& a, const TensorView& b, std::optional<NumberFormat> format, const Measure& measure,
             bool with_histogram)
      : a_(a),
        b_(b),
        is_decoded_(!format.has_value()),
        format_(format.value_or(NumberFormat::float64)),
        measure_(measure),
        with_histogram_(with_histogram),
        kernels_(kernels_in_use()) {}

  void run(int64_t begin, int64_t end, Totals& totals) {
    for (int64_t block = begin; block < end; block += kBlock) run_block(block, std::min(kBlock, end - block), totals);
  }

 private:
  bool is_double() const { return format_ == NumberFormat::float64; }

  void run_block(int64_t begin, int64_t count, Totals& totals) {
    call_kernel(is_decoded_, begin, count, totals.extremes);
    if (!std::isfinite(sum_of(result_.sum_abs))) return scan_block(begin, count, totals);
    if (squares_left_range()) {
      if (is_double()) return scan_block(begin, count, totals);
      call_kernel(true, begin, count, totals.extremes);
    }
    totals.sums.abs += sum_of(result_.sum_abs);
    totals.sums.dd += sum_of(result_.sum_dd);
    totals.sums.aa += sum_of(result_.sum_aa);
    totals.sums.bb += sum_of(result_.sum_bb);
    totals.sums.dp += sum_of(result_.sum_dp);
    totals.sums.pairs += count;
    if (with_histogram_) kernels_.count_buckets(buckets_.data(), count, totals.histogram.data());
    if (result_.any_flagged) judge_flagged(begin, count, totals.extremes);
    if (counted_) totals.extremes.mismatches += mismatches_of(begin, count);
  }

  // Squares that overflowed, or so small that they may have lost digits to underflow. Exact zeros have not.
  bool squares_left_range() const {
    const double smallest = is_double() ? 0x1p-900 : 0x1p-100;
    const double dd = sum_of(result_.sum_dd), aa = sum_of(result_.sum_aa), bb = sum_of(result_.sum_bb);
    if (!std::isfinite(dd) || !std::isfinite(aa) || !std::isfinite(bb) || !std::isfinite(sum_of(result_.sum_dp)))
      return true;
    return (dd < smallest && sum_of(result_.sum_abs) != 0) || aa < smallest || bb < smallest;
  }

  void call_kernel(bool decoded, int64_t begin, int64_t count, const Extremes& extremes) {
    uint8_t* buckets = with_histogram_ ? buckets_.data() : nullptr;
    counted_ = counts_mismatches(extremes);
    if (decoded) decode(begin, count);
    const std::byte* a = decoded ? std::as_bytes(std::span(wide_a_)).data() : bytes_at(a_, begin);
    const std::byte* b = decoded ? std::as_bytes(std::span(wide_b_)).data() : bytes_at(b_, begin);
    if (decoded || is_double())
      return kernels_.doubles(a, b, count, filter_of<double>(extremes, measure_), result_, buckets);
    kernels_.floats(format_, a, b, count, filter_of<float>(extremes, measure_), result_, buckets);
  }

  const std::byte* bytes_at(const TensorView& view, int64_t index) const {
    return view.data + static_cast<size_t>(index) * element_bytes(format_);
  }

  void decode(int64_t begin, int64_t count) {
    load_doubles(a_, begin, {wide_a_.data(), static_cast<size_t>(count)});
    load_doubles(b_, begin, {wide_b_.data(), static_cast<size_t>(count)});
  }

  template <class T>
  std::pair<double, double> loaded_pair(int64_t index) const {
    return {reinterpret_cast<const T*>(a_.data)[index], reinterpret_cast<const T*>(b_.data)[index]};
  }

  std::pair<double, double> pair_at(int64_t index) const {
    if (!is_decoded_ && format_ == NumberFormat::float32) return loaded_pair<float>(index);
    if (!is_decoded_ && is_double()) return loaded_pair<double>(index);
    return {element_as_double(a_, index), element_as_double(b_, index)};
  }

  void judge_flagged(int64_t begin, int64_t count, Extremes& extremes) {
    for (int64_t group = 0; group * kGroup < count; ++group) {
      unsigned flags = result_.flagged[static_cast<size_t>(group)];
      for (; flags != 0; flags &= flags - 1) {
        const int64_t index = begin + group * kGroup + std::countr_zero(flags);
        const auto [x, y] = pair_at(index);
        extremes.offer(x, y, index, measure_, !counted_);
      }
    }
  }

  int64_t mismatches_of(int64_t begin, int64_t count) {
    if (result_.possible == result_.certain) return result_.certain;
    if (!is_decoded_) decode(begin, count);
    int64_t mismatches = 0;
    for (size_t index = 0; index < static_cast<size_t>(count); ++index) {
      const double bound = measure_.atol + measure_.rtol * std::abs(wide_a_[index]);
      mismatches += std::abs(wide_a_[index] - wide_b_[index]) > bound;
    }
    return mismatches;
  }

  // A block with special values, or with squares beyond double, element by element.
  void scan_block(int64_t begin, int64_t count, Totals& totals) {
    if (!is_decoded_) decode(begin, count);
    for (int64_t offset = 0; offset < count; ++offset) {
      const double x = wide_a_[static_cast<size_t>(offset)], y = wide_b_[static_cast<size_t>(offset)];
      if (std::isfinite(x) && std::isfinite(y)) {
        totals.sums.add(x, y);
        totals.extremes.offer(x, y, begin + offset, measure_, true);
        if (with_histogram_) ++totals.histogram[static_cast<size_t>(bucket_of(x - y, is_double()))];
        continue;
      }
      totals.sums.nan_a += std::isnan(x);
      totals.sums.nan_b += std::isnan(y);
      totals.sums.inf_a += std::isinf(x);
      totals.sums.inf_b += std::isinf(y);
      ++totals.histogram[kBuckets - 1];
      const bool same = x == y || (std::isnan(x) && std::isnan(y));
      if (!same) totals.extremes.offer_classes(x, y, begin + offset);
    }
  }

  const TensorView& a_;
  const TensorView& b_;
  bool is_decoded_;
  NumberFormat format_;
  Measure measure_;
  bool with_histogram_;
  const Kernels& kernels_;
  bool counted_ = false;
  BlockResult result_;
  std::array<double, kBlock> wide_a_, wide_b_;
  std::array<uint8_t, kBlock> buckets_;
};

std::optional<NumberFormat> format_of(DType dtype, int64_t count) {
  if (dtype == DType::float64) return NumberFormat::float64;
  if (count <= kSmall) return std::nullopt;
  if (dtype == DType::float32) return NumberFormat::float32;
  if (dtype == DType::float16) return NumberFormat::float16;
  if (dtype == DType::bfloat16) return NumberFormat::bfloat16;
  return std::nullopt;
}

// Complex numbers as pairs of real ones.
TensorView as_real(const TensorView& view) {
  if (!is_complex(view.dtype)) return view;
  const DType part = view.dtype == DType::complex64 ? DType::float32 : DType::float64;
  return {part, Shape{view.element_count() * 2}, view.data, view.device};
}

}  // namespace

int bucket_of(double difference, bool is_float64) {
  const double rounded = is_float64 ? difference : static_cast<double>(static_cast<float>(difference));
  if (rounded == 0) return 0;
  if (std::isinf(rounded)) return 64;
  return std::clamp(std::ilogb(rounded) + kBucketExponent + 1, 1, 64);
}

Totals total_floats(const TensorView& given_a, const TensorView& given_b, const Tolerance& tolerance, DType units,
                    bool with_histogram) {
  const TensorView a = as_real(given_a), b = as_real(given_b);
  const FloatLimits limits = float_limits(is_complex(units) ? a.dtype : units);
  const Measure measure = {tolerance.rtol, tolerance.atol, limits.min_normal, limits.epsilon};
  const int64_t count = a.element_count();
  const int64_t chunks = (count + kChunk - 1) / kChunk;
  std::vector<Sums> sums(static_cast<size_t>(chunks));
  Totals merged;
  std::mutex mutex;
  parallel_for(chunks, kChunk / 2, [&](int64_t first, int64_t last) {
    FloatRange range(a, b, format_of(a.dtype, count), measure, with_histogram);
    Totals totals;  // maxima go on from chunk to chunk: the higher they stand, the less is flagged
    for (int64_t chunk = first; chunk < last; ++chunk) {
      totals.sums = {};
      range.run(chunk * kChunk, std::min(count, (chunk + 1) * kChunk), totals);
      sums[static_cast<size_t>(chunk)] = totals.sums;
    }
    const std::lock_guard lock(mutex);
    totals.sums = {};
    merged.merge(totals);
  });
  for (const Sums& part : sums) merged.sums.merge(part);
  return merged;
}

}  // namespace parallax::diff
