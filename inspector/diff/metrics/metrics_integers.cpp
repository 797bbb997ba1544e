// SPDX-License-Identifier: Apache-2.0
// Metrics of integers and bool: differences are exact, whatever the width.
#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "inspector/diff/metrics/metrics_internal.h"
#include "inspector/diff/metrics/metrics_kernel.h"
#include "inspector/tensor/elements.h"

namespace parallax::diff {
namespace {

constexpr int64_t kDecodedBlock = 4096;

template <class T>
double distance(T a, T b) {
  const auto difference =
      a > b ? static_cast<uint64_t>(a) - static_cast<uint64_t>(b) : static_cast<uint64_t>(b) - static_cast<uint64_t>(a);
  return static_cast<double>(difference);
}

template <class T>
void add_pair(T a, T b, int64_t index, bool with_histogram, Totals& totals) {
  const double x = static_cast<double>(a), y = static_cast<double>(b);
  if (a == b) {
    totals.sums.add(x, x);
    if (with_histogram) ++totals.histogram[0];
    return;
  }
  const double d = distance(a, b);
  const double signed_d = a > b ? d : -d;
  totals.sums.abs += d;
  totals.sums.dd += static_cast<long double>(d) * static_cast<long double>(d);
  totals.sums.aa += static_cast<long double>(x) * static_cast<long double>(x);
  totals.sums.bb += static_cast<long double>(y) * static_cast<long double>(y);
  totals.sums.dp += static_cast<long double>(signed_d) * (static_cast<long double>(x) + static_cast<long double>(y));
  ++totals.sums.pairs;
  Extremes& extremes = totals.extremes;
  constexpr double kBoundless = std::numeric_limits<double>::infinity();
  ++extremes.mismatches;
  extremes.max_abs = std::max(extremes.max_abs, d);
  extremes.max_ulp = extremes.max_abs;
  extremes.max_rel = std::max(extremes.max_rel, x == 0 ? kBoundless : d / std::abs(x));
  if (with_histogram) ++totals.histogram[static_cast<size_t>(bucket_of(d, true))];
  if (extremes.worst >= 0) return;
  extremes.severity = kBoundless;
  extremes.worst = index;
  extremes.worst_a = x;
  extremes.worst_b = y;
}

template <class T>
Totals total_as(const TensorView& a, const TensorView& b, bool with_histogram) {
  Totals totals;
  const auto* x = reinterpret_cast<const T*>(a.data);
  const auto* y = reinterpret_cast<const T*>(b.data);
  const int64_t count = a.element_count();
  for (int64_t index = 0; index < count; ++index) add_pair(x[index], y[index], index, with_histogram, totals);
  return totals;
}

Totals total_decoded(const TensorView& a, const TensorView& b, bool with_histogram) {
  Totals totals;
  std::vector<int64_t> x(kDecodedBlock), y(kDecodedBlock);
  const int64_t count = a.element_count();
  for (int64_t begin = 0; begin < count; begin += kDecodedBlock) {
    const auto size = static_cast<size_t>(std::min(kDecodedBlock, count - begin));
    load_int64s(a, begin, {x.data(), size});
    load_int64s(b, begin, {y.data(), size});
    for (size_t index = 0; index < size; ++index) {
      int64_t left = x[index], right = y[index];
      if (a.dtype == DType::bool_) left = left != 0, right = right != 0;
      add_pair(left, right, begin + static_cast<int64_t>(index), with_histogram, totals);
    }
  }
  return totals;
}

}  // namespace

Totals total_integers(const TensorView& a, const TensorView& b, bool with_histogram) {
  switch (a.dtype) {
    case DType::int64:
      return total_as<int64_t>(a, b, with_histogram);
    case DType::uint64:
      return total_as<uint64_t>(a, b, with_histogram);
    case DType::int32:
      return total_as<int32_t>(a, b, with_histogram);
    case DType::int8:
      return total_as<int8_t>(a, b, with_histogram);
    case DType::uint8:
      return total_as<uint8_t>(a, b, with_histogram);
    default:
      return total_decoded(a, b, with_histogram);
  }
}

}  // namespace parallax::diff
