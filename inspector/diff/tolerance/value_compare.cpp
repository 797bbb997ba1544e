// SPDX-License-Identifier: Apache-2.0
// Judging one pair of values.
#include "inspector/diff/tolerance/value_compare.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "inspector/diff/tolerance/thresholds.h"
#include "inspector/tensor/elements.h"

namespace parallax::diff {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool is_exact(DType dtype) { return !is_floating(dtype) && !is_complex(dtype); }

Tensor as_float64(const Tensor& tensor) {
  if (tensor.dtype() == DType::float64) return tensor;
  Result<Tensor> wide = Tensor::allocate(DType::float64, tensor.shape());
  if (!wide.ok()) return {};
  load_doubles(tensor, 0, wide->mutable_as<double>());
  return wide.take();
}

// Keeps the metrics of the worse of two elements, and sums what is counted.
void merge(std::optional<Metrics>& into, const Metrics& metrics) {
  if (!into.has_value()) {
    into = metrics;
    return;
  }
  Metrics merged = metrics.severity > into->severity ? metrics : *into;
  merged.count = into->count + metrics.count;
  merged.mismatches = into->mismatches + metrics.mismatches;
  merged.nan_a = into->nan_a + metrics.nan_a;
  merged.nan_b = into->nan_b + metrics.nan_b;
  merged.inf_a = into->inf_a + metrics.inf_a;
  merged.inf_b = into->inf_b + metrics.inf_b;
  into = merged;
}

// Walks two values side by side; stops at the first element where they cannot be compared.
class PairWalk {
 public:
  PairWalk(const CompareContext& context, ValueComparison& result) : context_(context), result_(result) {}

  bool walk(const Value& a, const Value& b) {
    if (a.is_absent() && b.is_absent()) return true;
    if (a.is_tensor() && b.is_tensor()) return walk_tensors(a.tensor(), b.tensor(), a.tensor().dtype());
    if (a.is_sequence() && b.is_sequence()) return walk_lists(a.sequence().items, b.sequence().items);
    if (a.is_optional() && b.is_optional()) return walk_lists(a.optional().item, b.optional().item);
    if (a.is_map() && b.is_map()) {
      return walk_tensors(a.map().keys, b.map().keys, a.map().keys.dtype()) &&
             walk_lists(a.map().values, b.map().values);
    }
    set_not_compared(result_, "dtype differs");
    return false;
  }

  bool is_suspicious() const { return is_suspicious_; }
  // "A" or "B": that side holds zeros where the other holds subnormal numbers, and nothing else differs.
  std::string_view flushed_side() const { return flushed_side_; }

 private:
  bool walk_lists(const std::vector<Value>& a, const std::vector<Value>& b) {
    if (a.size() != b.size()) {
      set_shapes_differ(result_, fmt::format("{} items", a.size()), fmt::format("{} items", b.size()));
      return false;
    }
    for (size_t index = 0; index < a.size(); ++index) {
      if (!walk(a[index], b[index])) return false;
    }
    return true;
  }

  // `held`: the narrower of the types the sides hold, of which one may have been widened.
  bool walk_tensors(const Tensor& a, const Tensor& b, DType held) {
    if (a.dtype() != b.dtype()) {
      const bool both_float = is_floating(a.dtype()) && is_floating(b.dtype());
      if (!context_.widen_floats || !both_float) return set_not_compared(result_, "dtype differs"), false;
      const Tensor wide_a = as_float64(a), wide_b = as_float64(b);
      if (!wide_a.defined() || !wide_b.defined()) return set_not_compared(result_, "not captured"), false;
      return walk_tensors(wide_a, wide_b, narrower_of(a.dtype(), b.dtype()));
    }
    if (!(a.shape() == b.shape())) {
      result_.is_same_count = a.element_count() == b.element_count();
      return set_shapes_differ(result_, a.shape().to_string(), b.shape().to_string()), false;
    }
    const Metrics metrics = compare_views(a, b, {result_.limit.rtol, result_.limit.atol}, nullptr, held);
    const bool is_uniform = metrics.all_equal_a && metrics.all_equal_b;
    if (is_uniform && !is_exact(a.dtype()) && metrics.count >= thresholds::kSuspiciouslyEqual) is_suspicious_ = true;
    note_flush(metrics, held);
    merge(result_.metrics, metrics);
    return true;
  }

  void note_flush(const Metrics& metrics, DType held) {
    if (metrics.max_abs == 0 && metrics.severity == 0) return;
    const bool is_tiny = is_floating(held) && metrics.max_abs < float_limits(held).min_normal &&
                         metrics.nan_a + metrics.nan_b + metrics.inf_a + metrics.inf_b == 0;
    const std::string_view side = is_tiny && metrics.all_zero_b ? "B" : is_tiny && metrics.all_zero_a ? "A" : "";
    flushed_side_ = has_difference_ && side != flushed_side_ ? "" : side;
    has_difference_ = true;
  }

  const CompareContext& context_;
  ValueComparison& result_;
  bool is_suspicious_ = false;
  bool has_difference_ = false;
  std::string_view flushed_side_;
};

void conclude_value(double severity, bool is_suspicious, ValueComparison& result) {
  result.severity = severity;
  result.verdict = severity > 1 ? Verdict::diverged : Verdict::pass;
  if (result.verdict == Verdict::pass && is_suspicious) {
    result.verdict = Verdict::mistrusted;
    result.reason = "all elements are equal";
  }
}

// The limit of a quantized value leaves room for its farthest element. Where that is near the limit, and the root mean
// square of the differences is beyond what the steps explain, the limit is lowered until the farthest element is as far
// beyond it. True where it was.
bool lower_limit(ValueComparison& result) {
  const Limit& limit = result.limit;
  const bool is_quantized = limit.from == LimitSource::table && limit.rtol > float_limits(DType::float16).epsilon;
  const auto count = result.metrics.has_value() ? static_cast<size_t>(result.metrics->count) : 0;
  if (!is_quantized || count < thresholds::kFewestTellingElements) return false;
  const double severity = result.metrics->severity, rmse = result.metrics->rmse;
  const double most = thresholds::kQuantizedRms * limit.atol / thresholds::kQuantizedMargin;
  if (!(rmse > most) || !(severity <= thresholds::kNearQuantization) || !(severity * most < rmse)) return false;
  const double factor = severity * most / rmse;
  result.limit = {factor * limit.rtol, factor * limit.atol, limit.from};
  return true;
}

// |a-b| against `bound`, 0/0 = 0.
double severity_of(double a, double b, double bound) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double difference = std::abs(a - b);
  if (!std::isfinite(difference)) return kInfinity;
  return bound == 0 ? kInfinity : difference / bound;
}

}  // namespace

bool is_exact_type(const TypeInfo& type) {
  if (type.kind == TypeInfo::Kind::tensor) return is_exact(type.dtype);
  return !type.inner.empty() && is_exact_type(type.inner.front());
}

void judge_values(const Value& a, const Value& b, const CompareContext& context, ValueComparison& result) {
  const TypeInfo type = type_of(a);
  describe_type(type, result);
  result.limit = context.limit;
  if (is_exact_type(type)) result.limit = Limit{0, 0, context.limit.from};
  PairWalk walk(context, result);
  if (!walk.walk(a, b)) {
    result.metrics.reset();
    return;
  }
  if (context.bounds_rms && lower_limit(result)) {
    result.metrics.reset();
    PairWalk(context, result).walk(a, b);
  }
  if (!result.metrics.has_value()) result.metrics = Metrics{};  // two empty sequences: equal
  if (result.metrics->count == 0) result.metrics->snr_db = kInfinity;
  conclude_value(result.metrics->severity, walk.is_suspicious() && !context.is_constant_like, result);
  if (result.reason.empty() && !walk.flushed_side().empty())
    result.reason = fmt::format("flushed to zero in {}", walk.flushed_side());
}

void judge_statistics(const TensorStatistics& a, const TensorStatistics& b, bool is_exact,
                      const CompareContext& context, ValueComparison& result) {
  result.limit = is_exact ? Limit{0, 0, context.limit.from} : context.limit;
  const auto count = static_cast<double>(a.count);
  const double rms = a.count == 0 ? 0 : a.l2 / std::sqrt(count);
  const double element = result.limit.atol + result.limit.rtol * rms;  // what a typical element may be off
  const double root = std::sqrt(std::max(1.0, count));
  const bool same_classes = a.nan == b.nan && a.positive_inf == b.positive_inf && a.negative_inf == b.negative_inf;
  const bool is_other_order = a.order != b.order;
  const double rounding = is_other_order ? kSumsInDouble * a.l2 : 0;
  double severity = same_classes ? 0 : kInfinity;
  severity = std::max(severity, severity_of(a.min, b.min, result.limit.atol + result.limit.rtol * std::abs(a.min)));
  severity = std::max(severity, severity_of(a.max, b.max, result.limit.atol + result.limit.rtol * std::abs(a.max)));
  severity = std::max(severity, severity_of(a.mean, b.mean, element + rounding / root));
  severity = std::max(severity, severity_of(a.l2, b.l2, element * root + rounding));
  for (size_t k = 0; k < kProjectionCount && have_comparable_projections(a, b); ++k) {
    severity = std::max(severity, severity_of(a.projections[k], b.projections[k], element * root));
  }
  const bool is_uniform = a.min == a.max && b.min == b.max && a.nan == 0 && b.nan == 0;
  conclude_value(severity,
                 is_uniform && !is_exact && a.count >= thresholds::kSuspiciouslyEqual && !context.is_constant_like,
                 result);
  if (result.verdict == Verdict::pass && is_other_order && !is_uniform) {
    result.verdict = Verdict::mistrusted;
    result.reason = "compared by statistics that count elements in different orders: a permutation would not show";
  }
  if (result.verdict != Verdict::mistrusted) result.reason = "compared by statistics";
}

void keep_worse(const ValueComparison& other, ValueComparison& result) {
  if (other.severity <= result.severity || other.verdict != Verdict::diverged) return;
  result.verdict = other.verdict;
  result.severity = other.severity;
  result.reason = other.reason;
}

bool is_on_host(const Value& value) {
  if (value.is_tensor()) return !value.tensor().defined() || value.tensor().device().is_host();
  const std::vector<Value>* items = value.is_sequence()   ? &value.sequence().items
                                    : value.is_optional() ? &value.optional().item
                                                          : nullptr;
  if (value.is_map()) items = &value.map().values;
  return items == nullptr || std::all_of(items->begin(), items->end(), is_on_host);
}

void set_not_compared(ValueComparison& result, std::string reason) {
  result.verdict = Verdict::not_compared;
  result.severity = 0;
  result.metrics.reset();
  result.reason = std::move(reason);
}

void set_shapes_differ(ValueComparison& result, std::string a, std::string b) {
  set_not_compared(result, "shape differs");
  result.shape_a = std::move(a);
  result.shape_b = std::move(b);
}

std::string reason_of(const Absence& absence) {
  const bool has_target = !absence.into.empty();
  if (absence.kind == Absence::Kind::fused || absence.kind == Absence::Kind::aliased) {
    return has_target ? std::string(kFusedInto) + absence.into : "folded";
  }
  return "folded";
}

double inherited_error(const Metrics& of_copied) {
  return std::max(thresholds::kInheritedRoom * of_copied.rmse, of_copied.max_abs / thresholds::kInheritedFarthest);
}

std::string shape_text(const TypeInfo& type) {
  if (!type.dims.has_value()) return "?";
  std::vector<int64_t> dims;
  for (const Dim& dim : *type.dims) dims.push_back(dim.value);
  return fmt::format("[{}]", fmt::join(dims, ","));
}

void describe_type(const TypeInfo& type, ValueComparison& result) {
  result.shape.clear();
  if (type.kind != TypeInfo::Kind::tensor) {
    result.dtype = to_string(type);
    return;
  }
  result.dtype = name_of(type.dtype);
  if (!type.dims.has_value()) return;
  for (const Dim& dim : *type.dims) result.shape.push_back(dim.value);
}

}  // namespace parallax::diff
