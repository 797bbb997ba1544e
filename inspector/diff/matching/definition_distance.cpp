// SPDX-License-Identifier: Apache-2.0
// The largest difference in relation to the size of the elements.
#include "inspector/diff/matching/definition_distance.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "inspector/diff/tolerance/thresholds.h"
#include "inspector/diff/tolerance/value_compare.h"
#include "inspector/tensor/elements.h"

namespace parallax::diff {
namespace {

// Among the elements of `a` that are no mask; 0 where there are none.
double relative_without_masks(const Tensor& a, const Tensor& b) {
  double largest = 0, squares = 0;
  int64_t count = 0;
  for (int64_t index = 0; index < a.element_count(); ++index) {
    const double x = element_as_double(a, index);
    if (!(std::abs(x) <= thresholds::kMaskedSize)) continue;
    largest = std::max(largest, std::abs(x - element_as_double(b, index)));
    squares += x * x;
    ++count;
  }
  return largest == 0 ? 0 : largest / std::sqrt(squares / static_cast<double>(count));
}

// Equal conditions or counts in two types without fractions, as a mask that one program casts to int32.
bool are_equal_integers(const Value& a, const Value& b) {
  const auto is_exact = [](const Value& value) {
    return value.is_tensor() && (is_integer(value.tensor().dtype()) || value.tensor().dtype() == DType::bool_);
  };
  if (!is_exact(a) || !is_exact(b) || a.tensor().dtype() == b.tensor().dtype()) return false;
  if (!(a.tensor().shape() == b.tensor().shape())) return false;
  for (int64_t index = 0; index < a.tensor().element_count(); ++index) {
    if (element_as_double(a.tensor(), index) != element_as_double(b.tensor(), index)) return false;
  }
  return true;
}

bool is_within_rounding(double a, double b, const FloatLimits& limits) {
  return std::abs(a - b) <= limits.epsilon * std::max(std::abs(a), limits.min_normal);
}

}  // namespace

RelativeDistance relative_distance(const Value& a, const Value& b, const Limit& limit) {
  if (are_equal_integers(a, b)) return {0, 0};
  ValueComparison result;
  judge_values(a, b, {limit, true, true}, result);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (result.verdict == Verdict::not_compared || !result.metrics.has_value()) return {kInfinity, kInfinity};
  const Metrics& metrics = *result.metrics;
  if (metrics.severity == 0) return {0, 0};
  const bool is_float = !a.is_tensor() || is_floating(a.tensor().dtype()) || is_complex(a.tensor().dtype());
  const bool same_class = metrics.nan_a == metrics.nan_b && metrics.inf_a == metrics.inf_b;
  if (!is_float || !same_class || metrics.rms_a == 0) return {metrics.severity, kInfinity};
  double relative = metrics.max_abs / metrics.rms_a;
  const bool is_masked = metrics.rms_a > thresholds::kMaskedSize && a.is_tensor() && is_floating(a.tensor().dtype());
  if (is_masked) relative = std::max(relative, relative_without_masks(a.tensor(), b.tensor()));
  return {metrics.severity, relative};
}

bool differ_by_rounding(const Tensor& a, const Tensor& b) {
  if (!is_floating(a.dtype()) || a.dtype() != b.dtype() || !(a.shape() == b.shape())) return false;
  const RelativeDistance distance = relative_distance(a, b, {thresholds::kFoldedAlike, 0, LimitSource::table});
  return distance.relative_rms <= thresholds::kFoldedAlike || distance.severity <= 1;
}

DType narrower(DType a, DType b) { return float_limits(a).epsilon > float_limits(b).epsilon ? a : b; }

bool differ_by_storing(const Tensor& a, const Tensor& b, DType narrow) {
  if (!is_floating(a.dtype()) || !is_floating(b.dtype()) || a.element_count() != b.element_count()) return false;
  const FloatLimits limits = float_limits(narrow);
  for (int64_t index = 0; index < a.element_count(); ++index) {
    const double x = element_as_double(a, index), y = element_as_double(b, index);
    if (x != y && !(std::isnan(x) && std::isnan(y)) && !is_within_rounding(x, y, limits)) return false;
  }
  return true;
}

bool differ_by_storing(double a, double b, DType narrow) { return is_within_rounding(a, b, float_limits(narrow)); }

}  // namespace parallax::diff
