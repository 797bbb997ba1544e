// SPDX-License-Identifier: Apache-2.0
// Compares outputs with a data set's, and measures what rounding alone does to them where they are not as expected.
#include "inspector/workbench/expected_outputs.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>

#include <fmt/format.h>

#include "inspector/diff/compare/apply_diagnosis.h"
#include "inspector/diff/compare/stream_compare.h"
#include "inspector/diff/tolerance/noise_foreign.h"
#include "inspector/diff/tolerance/quantization.h"
#include "inspector/diff/tolerance/thresholds.h"
#include "inspector/exec/value_path.h"
#include "inspector/workbench/measured_noise.h"
#include "inspector/workbench/reordered_outputs.h"
#include "inspector/workbench/side_by_side.h"

namespace parallax {
namespace {

// The graph output of that path; no value where there is none.
ValueId find_output(const Graph& graph, const std::string& path) {
  const auto found =
      std::ranges::find_if(graph.outputs, [&](ValueId id) { return escape_name(value_at(graph, id).name) == path; });
  return found == graph.outputs.end() ? kNoValue : *found;
}

void name_producer(const Graph& graph, ValueComparison& output) {
  const ValueId made = find_output(graph, output.path);
  const NodeId producer = made == kNoValue ? kNoNode : value_at(graph, made).producer;
  if (producer == kNoNode) return;
  const Node& node = graph.nodes[static_cast<size_t>(producer)];
  output.node = node.display_name;
  output.op = node.op_type;
}

const RunSide& side_of(const ValueComparison& value, const std::vector<const RunSide*>& sides) {
  return value.held == Side::b ? *sides.back() : *sides.front();
}

// The step of the quantized values that an output was dequantized from, moved since or not; 0 where it was not.
double quantization_step_of(const Graph& graph, const std::string& path) {
  ValueId id = find_output(graph, path);
  for (size_t moved = 0; id != kNoValue && moved < graph.nodes.size(); ++moved) {
    const NodeId producer = value_at(graph, id).producer;
    if (producer == kNoNode) return 0;
    const Node& node = graph.nodes[static_cast<size_t>(producer)];
    if (diff::is_dequantize(node)) {
      const auto range = diff::quantized_range_of(graph, node);
      return range.has_value() ? range->step : 0;
    }
    if (!diff::moves_elements(node) || node.inputs.empty()) return 0;
    id = node.inputs.front();
  }
  return 0;
}

bool is_quantized(const Graph& graph) {
  return std::ranges::any_of(graph.nodes,
                             [](const Node& node) { return diff::is_quantize(node) || diff::is_dequantize(node); });
}

// An output of B that is A's, or accepted as that, where A's is as expected, or accepted as that.
std::optional<Acceptance> accepted_with_a(const ValueComparison& value, const Comparison& comparison) {
  if (value.held != Side::b) return std::nullopt;
  for (const ValueComparison& pair : comparison.values) {
    if (!pair.is_graph_output || pair.b != value.path || pair.verdict != Verdict::pass) continue;
    const auto is_of_a = [&](const ValueComparison& other) { return other.held == Side::a && other.path == pair.a; };
    const auto in_a = std::ranges::find_if(comparison.expected, is_of_a);
    if (in_a == comparison.expected.end() || in_a->verdict != Verdict::pass) continue;
    return in_a->accepted.has_value() ? in_a->accepted : pair.accepted;
  }
  return std::nullopt;
}

std::optional<Acceptance> accepted_as_step(const ValueComparison& value, const RunSide& side) {
  const double step = quantization_step_of(side.model->graph, value.path);
  const bool is_within = step > 0 && value.metrics->max_abs <= step * (1 + thresholds::kStepRounding);
  if (!is_within) return std::nullopt;
  return Acceptance{"quantization step", fmt::format("no element is more than one step of {:.6g} off, {} of {} are",
                                                     step, value.metrics->mismatches, value.metrics->count)};
}

// `how`: what differs by as much.
std::optional<Acceptance> accepted_as_measured(const ValueComparison& value,
                                               const std::vector<ValueComparison>& measured, std::string_view how) {
  for (const ValueComparison& other : measured) {
    if (!other.is_graph_output || other.path != value.path || !other.metrics.has_value()) continue;
    const double found = value.metrics->rel_l2, rounding = other.metrics->rel_l2;
    if (!std::isfinite(found) || !(found <= thresholds::kMeasuredRoom * rounding)) return std::nullopt;
    return Acceptance{"quantization steps",
                      fmt::format("{} by as much, rel l2 {:.3g}, and this is {:.3g}", how, rounding, found)};
  }
  return std::nullopt;
}

// The side's executor once more, next to another on the same inputs. Nothing where one fails.
std::optional<Comparison> run_next_to(const std::string& other, const RunRequest& request, const RunSide& side,
                                      const ExecutorFactory& make_executor, StreamOptions options) {
  auto first = prepare_side(request, other, side.model, side.inputs, make_executor);
  auto again = prepare_side(request, std::string(side.executor->name()), side.model, side.inputs, make_executor);
  if (!first.ok() || !again.ok()) return std::nullopt;
  StreamComparer comparer({}, std::move(options));
  comparer.count_foreign_kernels();  // the expected outputs are another program's
  if (!run_side_by_side(*first, *again, comparer, {}).ok()) return std::nullopt;
  return comparer.finish();
}

// Compared with an executor that rounds in its own way.
std::optional<Comparison> measure_rounding(const RunRequest& request, const RunSide& side,
                                           const ExecutorFactory& make_executor) {
  const std::string other = side.executor->name() == "reference" ? "cpu" : "reference";
  return run_next_to(other, request, side, make_executor, {});
}

// How far rounding takes the outputs where nothing is known of the values before them, as of another program's: the
// limits of a comparison of outputs alone. Empty where the executor fails.
LimitsByPath limits_of_outputs_alone(const RunRequest& request, const RunSide& side,
                                     const ExecutorFactory& make_executor) {
  StreamOptions options;
  options.only = {""};  // outputs are always compared
  options.follows_rest = false;
  const std::string itself(side.executor->name());
  const auto compared = run_next_to(itself, request, side, make_executor, std::move(options));
  return compared.has_value() ? output_limits(*compared) : LimitsByPath{};
}

void widen(LimitsByPath& limits, const LimitsByPath& others) {
  for (const auto& [path, limit] : others) {
    Limit& known = limits.try_emplace(path, limit).first->second;
    known.rtol = std::max(known.rtol, limit.rtol);
    known.atol = std::max(known.atol, limit.atol);
  }
}

// True where any node computes in half precision, since programs differ in where they round to it, or may be computed
// with less precision by another program.
bool may_differ_elsewhere(const Graph& graph) {
  const bool computes_in_half = std::ranges::any_of(graph.values, [](const ValueDef& value) {
    return value.producer != kNoNode && (value.type.dtype == DType::float16 || value.type.dtype == DType::bfloat16);
  });
  return computes_in_half || std::ranges::any_of(graph.nodes, diff::may_differ_in_foreign_kernels);
}

// Diverged by limits of the table, in numbers.
bool may_be_accepted(const ValueComparison& value) {
  return value.verdict == Verdict::diverged && value.limit.from != LimitSource::user && value.metrics.has_value();
}

bool is_any_left(const Comparison& comparison) { return std::ranges::any_of(comparison.expected, may_be_accepted); }

}  // namespace

LimitsByPath output_limits(const Comparison& comparison) {
  LimitsByPath limits;
  if (comparison.verdict == OverallVerdict::diverged) return limits;
  for (const ValueComparison& value : comparison.values) {
    if (value.is_graph_output && value.verdict != Verdict::not_compared) limits[value.path] = value.limit;
  }
  return limits;
}

void add_expected(const Policy& policy, const std::vector<NamedValue>& expected,
                  const std::vector<const RunSide*>& sides, const LimitsByPath& carried, Comparison& comparison) {
  if (expected.empty()) return;
  comparison.has_expected = true;
  comparison.expected.clear();
  for (const RunSide* side : sides) {
    const std::string_view letter = side == sides.front() ? "A" : "B";
    const std::string title = sides.size() > 1 ? fmt::format("{} {}", letter, side->executor->name()) : "";
    auto values =
        compare_expected(expected, named_outputs(side->model->graph, side->outputs, carries_doubles(*side->executor)),
                         title, policy, carried);
    for (ValueComparison& value : values) {
      value.held = side == sides.front() ? Side::a : Side::b;
      name_producer(side->model->graph, value);
    }
    std::move(values.begin(), values.end(), std::back_inserter(comparison.expected));
  }
  conclude(comparison);
}

void look_into_expected(const RunRequest& request, const std::vector<NamedValue>& expected,
                        const std::vector<const RunSide*>& sides, LimitsByPath carried,
                        const ExecutorFactory& make_executor, Comparison& comparison) {
  const auto has_diverged = [](const ValueComparison& value) { return value.verdict == Verdict::diverged; };
  if (!is_any_left(comparison) || std::ranges::any_of(comparison.values, has_diverged)) return;
  Diagnosis diagnosis;
  const auto accept_where = [&](auto&& acceptance_of) {
    for (const ValueComparison& value : comparison.expected) {
      std::optional<Acceptance> found = may_be_accepted(value) ? acceptance_of(value) : std::nullopt;
      if (found.has_value()) diagnosis.expected.push_back({value.path, value.held, *std::move(found)});
    }
    diagnosis.causes = comparison.causes;
    apply(diagnosis, comparison);
  };
  const auto accept_reordered = [&](const RunSide& side, const Comparison* measured) {
    const auto count = static_cast<std::ptrdiff_t>(expected.size());
    const bool is_first = &side == sides.front();
    const std::span<const ValueComparison> compared =
        std::span(comparison.expected).subspan(static_cast<size_t>(is_first ? 0 : count), expected.size());
    const std::vector<NamedValue> actual =
        named_outputs(side.model->graph, side.outputs, carries_doubles(*side.executor));
    const std::vector<ExpectedOutput> outputs = pair_expected(expected, actual, compared);
    std::vector<AcceptedExpected> accepted;
    if (const auto reordered = find_reordered(outputs); reordered.has_value()) {
      for (const std::string& path : reordered->paths)
        accepted.push_back({path, compared.front().held, {"near tie", reordered->evidence}});
    }
    for (const ExpectedOutput& output : outputs) {
      if (measured == nullptr || !may_be_accepted(*output.comparison)) continue;
      auto tie = accepted_as_near_tie(output, side, request, make_executor, *measured);
      if (tie.has_value()) accepted.push_back({output.comparison->path, compared.front().held, *std::move(tie)});
    }
    std::ranges::move(accepted, std::back_inserter(diagnosis.expected));
    diagnosis.causes = comparison.causes;
    apply(diagnosis, comparison);
  };
  const auto accept_as_a = [&] {
    accept_where([&](const ValueComparison& value) { return accepted_with_a(value, comparison); });
  };
  accept_as_a();
  accept_where([&](const ValueComparison& value) { return accepted_as_step(value, side_of(value, sides)); });
  for (const RunSide* side : sides) accept_reordered(*side, nullptr);
  for (const RunSide* side : sides) {
    if (!is_any_left(comparison)) break;
    const std::optional<Comparison> measured = measure_rounding(request, *side, make_executor);
    if (measured.has_value() && sides.size() == 1) widen(carried, output_limits(*measured));
    if (may_differ_elsewhere(side->model->graph))
      widen(carried, limits_of_outputs_alone(request, *side, make_executor));
    add_expected(request.policy, expected, sides, carried, comparison);
    apply(diagnosis, comparison);
    accept_reordered(*side, measured.has_value() ? &*measured : nullptr);
    if (!measured.has_value() || !is_quantized(side->model->graph)) continue;
    const auto accept_measured = [&](const std::vector<ValueComparison>& others, std::string_view how) {
      accept_where([&](const ValueComparison& value) {
        return &side_of(value, sides) == side ? accepted_as_measured(value, others, how) : std::nullopt;
      });
    };
    accept_measured(measured->values, "two executors of this model differ");
    for (const double ulps : thresholds::kNudgedNearTies) {
      if (!is_any_left(comparison)) break;
      accept_measured(measure_nudged(request, *side, make_executor, ulps),
                      fmt::format("inputs and stored floats moved by {} ULP move this output", ulps));
    }
    accept_as_a();
  }
}

}  // namespace parallax
