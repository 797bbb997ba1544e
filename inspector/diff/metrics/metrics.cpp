// SPDX-License-Identifier: Apache-2.0
// compare_views: the kind of element decides who sums; here sums become metrics.
#include "inspector/diff/metrics/metrics.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "inspector/diff/metrics/metrics_internal.h"
#include "inspector/tensor/elements.h"
#include "inspector/tensor/float_formats.h"

namespace parallax {
namespace diff {
namespace {

// 0/0 = 0, x/0 = infinity.
double ratio(long double numerator, long double denominator) {
  if (numerator == 0) return 0;
  return denominator == 0 ? std::numeric_limits<double>::infinity() : static_cast<double>(numerator / denominator);
}

// a.b / (|a||b|) by way of |a-b|, which keeps the digits of 1 - cosine where a and b are nearly equal.
double cosine_of(const Sums& sums) {
  if (sums.dd == 0 || (sums.aa == 0 && sums.bb == 0)) return 1;
  if (sums.aa == 0 || sums.bb == 0) return 0;
  const long double norm_a = std::sqrt(sums.aa), norm_b = std::sqrt(sums.bb);
  const long double norm_difference = sums.dp / (norm_a + norm_b);
  const long double cosine = 1 - (sums.dd - norm_difference * norm_difference) / (2 * norm_a * norm_b);
  return static_cast<double>(std::fmin(1.0L, std::fmax(-1.0L, cosine)));  // rounding alone can lead beyond 1
}

double snr_db_of(long double norm_a, long double norm_d) {
  if (norm_d == 0) return std::numeric_limits<double>::infinity();
  return static_cast<double>(20 * std::log10(norm_a / norm_d));  // -infinity where a is zero
}

void fill(Metrics& metrics, const Totals& totals) {
  const Sums& sums = totals.sums;
  const auto pairs = static_cast<long double>(sums.pairs == 0 ? 1 : sums.pairs);
  const long double norm_a = std::sqrt(sums.aa), norm_d = std::sqrt(sums.dd);
  metrics.finite_pairs = sums.pairs;
  metrics.max_abs = totals.extremes.max_abs;
  metrics.max_rel = totals.extremes.max_rel;
  metrics.max_ulp = totals.extremes.max_ulp;
  metrics.mean_abs = static_cast<double>(sums.abs / pairs);
  metrics.rmse = static_cast<double>(std::sqrt(sums.dd / pairs));
  metrics.rms_a = static_cast<double>(std::sqrt(sums.aa / pairs));
  metrics.rel_l2 = ratio(norm_d, norm_a);
  metrics.cosine = cosine_of(sums);
  metrics.snr_db = snr_db_of(norm_a, norm_d);
  metrics.mismatches = totals.extremes.mismatches;
  metrics.nan_a = sums.nan_a;
  metrics.nan_b = sums.nan_b;
  metrics.inf_a = sums.inf_a;
  metrics.inf_b = sums.inf_b;
  metrics.severity = totals.extremes.severity;
}

// NaN without the sign that processors give it.
double shown(double value) { return std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value; }

// The first element of largest severity: element 0 where none differs.
void fill_worst(Metrics& metrics, const TensorView& a, const TensorView& b, const Extremes& extremes) {
  if (metrics.count == 0) return;
  const int64_t parts = is_complex(a.dtype) ? 2 : 1;
  metrics.worst_index = a.shape.index_of(extremes.worst < 0 ? 0 : extremes.worst / parts);
  metrics.worst_a = shown(extremes.worst < 0 ? element_as_double(a, 0) : extremes.worst_a);
  metrics.worst_b = shown(extremes.worst < 0 ? element_as_double(b, 0) : extremes.worst_b);
  const DTypeKind kind = info_of(a.dtype).kind;
  if (kind != DTypeKind::signed_integer && kind != DTypeKind::unsigned_integer) return;
  const int64_t worst = std::max<int64_t>(extremes.worst, 0);
  metrics.worst_integers = {element_as_int64(a, worst), element_as_int64(b, worst),
                            kind == DTypeKind::unsigned_integer};
}

// Bytes against bytes one element further; only where these differ (NaN payloads, -0, packed types) element by element.
bool all_equal(const TensorView& view) {
  const int64_t count = view.element_count();
  if (count == 0) return false;
  if (!is_sub_byte(view.dtype)) {
    const size_t size = view.size_bytes(), element = size / static_cast<size_t>(count);
    if (std::memcmp(view.data, view.data + element, size - element) == 0) return true;
  }
  if (is_complex(view.dtype)) return false;
  const double first = element_as_double(view, 0);
  for (int64_t index = 1; index < count; ++index) {
    const double value = element_as_double(view, index);
    if (value != first && !(std::isnan(value) && std::isnan(first))) return false;
  }
  return true;
}

bool is_zero(const TensorView& view) { return element_as_complex(view, 0) == 0.0; }

Metrics compare_strings(const TensorView& a, const TensorView& b) {
  Metrics metrics;
  metrics.count = metrics.finite_pairs = a.element_count();
  const auto left = a.as<std::string>(), right = b.as<std::string>();
  int64_t worst = 0;
  for (size_t index = 0; index < left.size(); ++index) {
    if (left[index] == right[index]) continue;
    if (metrics.mismatches == 0) worst = static_cast<int64_t>(index);
    ++metrics.mismatches;
  }
  if (metrics.count > 0) metrics.worst_index = a.shape.index_of(worst);
  metrics.snr_db = std::numeric_limits<double>::infinity();
  if (metrics.mismatches == 0) return metrics;
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();  // texts have no distance
  metrics.severity = std::numeric_limits<double>::infinity();
  metrics.max_abs = metrics.max_rel = metrics.mean_abs = metrics.rmse = metrics.rel_l2 = kNone;
  metrics.cosine = metrics.snr_db = metrics.max_ulp = metrics.worst_a = metrics.worst_b = kNone;
  return metrics;
}

}  // namespace

void Sums::merge(const Sums& other) {
  abs += other.abs;
  dd += other.dd;
  aa += other.aa;
  bb += other.bb;
  dp += other.dp;
  pairs += other.pairs;
  nan_a += other.nan_a;
  nan_b += other.nan_b;
  inf_a += other.inf_a;
  inf_b += other.inf_b;
}

void Totals::merge(const Totals& other) {
  sums.merge(other.sums);
  extremes.merge(other.extremes);
  for (size_t bucket = 0; bucket < histogram.size(); ++bucket) histogram[bucket] += other.histogram[bucket];
}

}  // namespace diff

Metrics compare_views(const TensorView& a, const TensorView& b, const Tolerance& tolerance,
                      DifferenceHistogram* histogram, DType held) {
  PX_CHECK(a.device.is_host() && b.device.is_host() && a.dtype == b.dtype && a.shape == b.shape);
  if (histogram != nullptr) histogram->fill(0);
  if (a.dtype == DType::string) return diff::compare_strings(a, b);
  Metrics metrics;
  metrics.count = a.element_count() * (is_complex(a.dtype) ? 2 : 1);
  const bool is_real = is_floating(a.dtype) || is_complex(a.dtype);
  const DType units = is_floating(held) ? held : a.dtype;
  const diff::Totals totals = is_real ? diff::total_floats(a, b, tolerance, units, histogram != nullptr)
                                      : diff::total_integers(a, b, histogram != nullptr);
  diff::fill(metrics, totals);
  diff::fill_worst(metrics, a, b, totals.extremes);
  if (histogram != nullptr) *histogram = totals.histogram;
  metrics.all_equal_a = diff::all_equal(a);
  metrics.all_equal_b = diff::all_equal(b);
  metrics.all_zero_a = metrics.all_equal_a && diff::is_zero(a);
  metrics.all_zero_b = metrics.all_equal_b && diff::is_zero(b);
  return metrics;
}

DType narrower_of(DType a, DType b) { return float_limits(a).epsilon > float_limits(b).epsilon ? a : b; }

}  // namespace parallax
