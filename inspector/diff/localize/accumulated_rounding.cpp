// SPDX-License-Identifier: Apache-2.0
// Reasons for values that differ by rounding alone.
#include "inspector/diff/localize/accumulated_rounding.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "inspector/diff/tolerance/paths.h"
#include "inspector/exec/value_path.h"
#include "inspector/model/stored_int.h"
#include "inspector/tensor/elements.h"

namespace parallax::diff {
namespace {

bool is_float(const Value& value) { return value.is_tensor() && is_floating(value.tensor().dtype()); }

// Integers, bool, and floats that only take whole values.
bool is_exact(const ValueComparison& value) {
  constexpr std::array<std::string_view, 4> kSteps = {"Round", "Floor", "Ceil", "Sign"};
  if (std::ranges::find(kSteps, value.op) != kSteps.end()) return true;

  const auto dtype = dtype_from_name(value.dtype);
  return dtype.has_value() && !is_floating(*dtype) && !is_complex(*dtype);
}

std::string ulps(double count) { return count == 1 ? "1 ULP" : fmt::format("{:.3g} ULP", count); }

double ulps_between(double a, double b, DType dtype) {
  const FloatLimits limits = float_limits(dtype);
  const double magnitude = std::max({std::abs(a), std::abs(b), limits.min_normal});
  return std::abs(a - b) / (std::exp2(std::floor(std::log2(magnitude))) * limits.epsilon);
}

bool is_worst_finite(const Metrics& metrics) {
  return std::isfinite(metrics.worst_a) && std::isfinite(metrics.worst_b);
}

// With a limit of 0, a finite element may be as bad as any later NaN.
bool holds_others(const Metrics& metrics) { return metrics.nan_a != metrics.nan_b || metrics.inf_a != metrics.inf_b; }

constexpr std::string_view kAllRight = "every node is right on its own inputs";

Acceptance accumulated() { return {"accumulated rounding", std::string(kAllRight)}; }
Acceptance near_tie(std::string evidence) { return {"near tie", std::move(evidence)}; }
Acceptance near_tie_upstream() { return {"near tie upstream", std::string(kAllRight)}; }

// The largest distance in ULP between the two sides' floating inputs of a node; 0 where there is none.
double input_distance(const CapturedSide::Computed& a, const CapturedSide::Computed& b) {
  double largest = 0;
  for (size_t index = 0; index < a.inputs.size(); ++index) {
    if (!is_float(a.inputs[index].value)) continue;
    const Distance distance = distance_between(a.inputs[index].value, b.inputs[index].value, {});
    if (distance.metrics.has_value()) largest = std::max(largest, distance.metrics->max_ulp);
  }
  return largest;
}

// Why a value that diverged is rounding: a near tie where its node chooses between numbers that are next to each other.
Result<Acceptance> acceptance_of(const RootFinder& finder, const ValueComparison& value) {
  const GraphValues* location = finder.location_of(value.path);
  const std::string prefix(prefix_of(value.path));
  const ValueId id = location == nullptr
                         ? kNoValue
                         : location->find_value(unescape_name(std::string_view(value.path).substr(prefix.size())));
  if (!value.shape_a.empty()) return near_tie_upstream();
  if (id == kNoValue || !is_exact(value)) return accumulated();
  const ValueDef& definition = location->graph->values[static_cast<size_t>(id)];
  if (definition.producer == kNoNode) return near_tie_upstream();
  const NodeInstance instance{location, definition.producer, prefix};
  const auto a = PX_TRY(finder.a().gather(instance)), b = PX_TRY(finder.b().gather(instance));
  const Node& node = instance.definition();
  if (is_chooser(node) && is_float(a.inputs[0].value) && is_float(b.inputs[0].value)) {
    const Value in_a = PX_TRY(finder.a().captured(value.a)), in_b = PX_TRY(finder.b().captured(value.b));
    if (!in_a.is_tensor() || !in_b.is_tensor()) return accumulated();
    const auto gap_a = score_gap(node, a.inputs[0].value.tensor(), in_a.tensor(), in_b.tensor());
    const auto gap_b = score_gap(node, b.inputs[0].value.tensor(), in_a.tensor(), in_b.tensor());
    if (gap_a.has_value() && gap_b.has_value())
      return near_tie(std::max(*gap_a, *gap_b) > 0 ? fmt::format("scores differ by {}", ulps(std::max(*gap_a, *gap_b)))
                                                   : "the scores are equal, and the two take them in another order");
  }
  const double distance = input_distance(a, b);
  if (distance == 0) return near_tie_upstream();
  return near_tie(fmt::format("the inputs differ by up to {}, and rounding decides", ulps(distance)));
}

}  // namespace

bool is_chooser(const Node& node) {
  constexpr std::array<std::string_view, 3> kChoosers = {"ArgMax", "ArgMin", "TopK"};
  return std::ranges::find(kChoosers, node.op_type) != kChoosers.end();
}

std::optional<double> score_gap(const Node& node, const Tensor& scores, const Tensor& a, const Tensor& b) {
  const auto rank = static_cast<int64_t>(scores.shape().rank());
  int64_t axis = stored_int(node, "axis", node.op_type == "TopK" ? -1 : 0);
  axis = axis < 0 ? axis + rank : axis;
  if (axis < 0 || axis >= rank || !(a.shape() == b.shape())) return std::nullopt;
  int64_t inner = 1, outer = 1;
  for (int64_t k = 0; k < rank; ++k)
    (k < axis ? outer : inner) *= k == axis ? 1 : scores.shape()[static_cast<size_t>(k)];
  const int64_t size = scores.shape()[static_cast<size_t>(axis)];
  if (outer * inner == 0 || a.element_count() % (outer * inner) != 0) return std::nullopt;
  const int64_t chosen = a.element_count() / (outer * inner);
  double largest = 0;
  for (int64_t linear = 0; linear < a.element_count(); ++linear) {
    const int64_t in_a = element_as_int64(a, linear), in_b = element_as_int64(b, linear);
    if (in_a == in_b) continue;
    if (std::min(in_a, in_b) < 0 || std::max(in_a, in_b) >= size) return std::nullopt;
    const int64_t base = linear / (chosen * inner) * size * inner + linear % inner;
    largest = std::max(largest, ulps_between(element_as_double(scores, base + in_a * inner),
                                             element_as_double(scores, base + in_b * inner), scores.dtype()));
  }
  return largest;
}

std::optional<Cause> find_left_range(const Comparison& comparison, bool with_constants) {
  const auto is_left = [&](const ValueComparison& value) {
    if (!with_constants && value.origin == Origin::constant) return false;
    const bool has_location = value.metrics.has_value() && !value.metrics->worst_index.empty();
    return value.verdict == Verdict::diverged && has_location &&
           (!is_worst_finite(*value.metrics) || holds_others(*value.metrics));
  };
  const auto first = std::ranges::find_if(comparison.values, is_left);
  if (first == comparison.values.end()) return std::nullopt;
  Cause cause = cause_at(*first, {});
  cause.introduced = first->severity;
  const Metrics& metrics = *first->metrics;
  if (is_worst_finite(metrics)) {
    const bool more_in_a = metrics.nan_a + metrics.inf_a > metrics.nan_b + metrics.inf_b;
    cause.side = more_in_a ? Side::a : Side::b;
    cause.why = fmt::format(
        "it holds {} NaN and {} infinities in A, {} and {} in B: right on its own inputs, but it has left the range of "
        "numbers, and what follows cannot be told from a fault",
        metrics.nan_a, metrics.inf_a, metrics.nan_b, metrics.inf_b);
    return cause;
  }
  const bool in_a = !std::isfinite(metrics.worst_a);
  cause.side = in_a ? Side::a : Side::b;
  cause.why = fmt::format(
      "element [{}] is {:.9g} in {} and {:.9g} in {}: right on its own inputs, but it has left the range of numbers "
      "there, and what follows cannot be told from a fault",
      fmt::join(metrics.worst_index, ","), in_a ? metrics.worst_a : metrics.worst_b, in_a ? "A" : "B",
      in_a ? metrics.worst_b : metrics.worst_a, in_a ? "B" : "A");
  return cause;
}

Status accept_accumulated_rounding(const RootFinder& finder, const Comparison& comparison, Diagnosis& diagnosis) {
  for (const ValueComparison& value : comparison.values) {
    if (value.verdict != Verdict::diverged) continue;
    auto acceptance = PX_TRY(acceptance_of(finder, value));
    diagnosis.accepted_as_rounding.push_back({value.path, std::move(acceptance)});
  }
  return {};
}

}  // namespace parallax::diff
