// SPDX-License-Identifier: Apache-2.0
// How the values of a comparison make its whole, and the spelling of every word of the document.
#include "inspector/diff/comparison.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "inspector/exec/path_parts.h"
#include "inspector/exec/value_path.h"

namespace parallax {
namespace {

void count(const ValueComparison& value, ComparisonSummary& summary) {
  ++summary.values;
  switch (value.verdict) {
    case Verdict::pass:
      ++summary.passed;
      break;
    case Verdict::diverged:
      ++summary.diverged;
      break;
    case Verdict::mistrusted:
      ++summary.mistrusted;
      break;
    case Verdict::not_compared:
      ++summary.not_compared;
      return;
  }
  ++summary.compared;
}

const ValueComparison* missed_output(const std::vector<ValueComparison>& values) {
  for (const ValueComparison& value : values) {
    if (value.is_graph_output && value.verdict == Verdict::not_compared) return &value;
  }
  return nullptr;
}

// A tensor's shape says it; of sequences, optionals and maps, what was compared in them.
bool has_elements(const ValueComparison& value) {
  const bool is_tensor = value.dtype.find('(') == std::string::npos;
  if (!is_tensor && value.metrics.has_value()) return value.metrics->count > 0;
  return std::ranges::find(value.shape, 0) == value.shape.end();
}

bool is_of_floats(const ValueComparison& value) {
  return value.dtype.find("float") != std::string::npos || value.dtype.find("complex") != std::string::npos;
}

struct Compared {
  int64_t all = 0, empty = 0;
  void add(const ValueComparison& value) {
    ++all;
    empty += has_elements(value) ? 0 : 1;
  }
};

// An empty batch: whatever is computed from it has no elements, and equal shapes are all that was seen. Integers decide
// where there are no floats: next to them they mostly count and index. Where all inputs have elements, what is empty
// was found to be so (NonZero of zeros), which says something.
// So do elements that a data set expects.
bool are_all_empty(const Comparison& comparison) {
  const auto was_compared = [](const ValueComparison& value) { return value.verdict != Verdict::not_compared; };
  for (const ValueComparison& value : comparison.expected) {
    if (was_compared(value) && has_elements(value)) return false;
  }
  Compared inputs, floats, others;
  for (const ValueComparison& value : comparison.values) {
    if (!was_compared(value) || value.origin == Origin::constant) continue;
    Compared& kind = value.origin == Origin::input ? inputs : is_of_floats(value) ? floats : others;
    kind.add(value);
  }
  const Compared& decisive = floats.all > 0 ? floats : others.all > 0 ? others : inputs;
  return decisive.all > 0 && decisive.empty == decisive.all && (inputs.all == 0 || inputs.empty > 0);
}

// Two runs of inputs of different shapes: that is why there is nothing to compare. Empty where there are none.
std::string other_input_shape(const Comparison& comparison) {
  const ValueComparison* const found = input_of_other_shape(comparison);
  if (found == nullptr) return {};
  return fmt::format("; the two runs were given input '{}' of shape {} in A and {} in B", found->path, found->shape_a,
                     found->shape_b);
}

// Why nothing can be said of the whole, though nothing diverged; empty where it passes.
std::string explain_inconclusive(const Comparison& comparison) {
  const bool nothing_compared =
      comparison.summary.compared == 0 && std::ranges::all_of(comparison.expected, [](const ValueComparison& value) {
        return value.verdict == Verdict::not_compared;
      });
  if (nothing_compared) return "nothing was compared" + other_input_shape(comparison);
  if (are_all_empty(comparison))
    return "nothing was compared but types and shapes: no value that is computed from the inputs has elements";
  if (!comparison.damages.empty()) {
    const DamagedValue& damage = comparison.damages.front();
    return fmt::format("value '{}' is damaged in {}", damage.path, name_of(damage.side));
  }
  for (const auto* values : {&comparison.values, &comparison.expected}) {
    if (const ValueComparison* output = missed_output(*values))
      return fmt::format("graph output '{}' was not compared: {}{}", output->path, reason_text(*output),
                         other_input_shape(comparison));
  }
  return {};
}

bool is_of_other_shape(const ValueComparison& value) {
  return value.reason == "shape differs" && value.verdict != Verdict::pass;
}

// Outputs of different shapes are not equal, although no element of one has a counterpart in the other. Where the two
// runs were given inputs of different shapes, nothing is known of them. True where there is such an output.
bool judge_outputs_of_other_shape(Comparison& comparison) {
  if (input_of_other_shape(comparison) != nullptr) return false;
  bool is_any = false;
  for (auto* values : {&comparison.values, &comparison.expected}) {
    for (ValueComparison& value : *values) {
      if (!value.is_graph_output || !is_of_other_shape(value)) continue;
      value.verdict = Verdict::diverged;
      value.severity = std::numeric_limits<double>::infinity();
      is_any = is_any || values == &comparison.values;
    }
  }
  return is_any;
}

bool is_control_flow(std::string_view op) { return op == "If" || op == "Loop" || op == "Scan"; }

// An input of a body has no producer in it: the node that has the body passes it.
FirstDivergence at_node_with_body(const std::vector<ValueComparison>& values, const ValueComparison& given) {
  const auto path = parse_value_path(given.path);
  if (!path.ok() || path->frames.empty()) return {given.path, "", ""};
  const std::string& node = path->frames.back().node;
  std::string outside = given.path.substr(0, name_begin(given.path));
  outside.resize(outside.size() - to_string(path->frames.back()).size() - 2);
  const auto is_of_node = [&](const ValueComparison& value) {
    return value.node == node && !value.node_reads_it && value.path.substr(0, name_begin(value.path)) == outside;
  };
  const auto made = std::ranges::find_if(values, is_of_node);
  return {given.path, node, made == values.end() ? "" : made->op};
}

// A constant is named with the node of its own graph that reads it. Where that is a control-flow node whose bodies read
// it, it shows at the first of their nodes that went wrong, in the branch that was taken; not where it is handed in.
FirstDivergence first_divergence_at(const std::vector<ValueComparison>& values, size_t first) {
  const ValueComparison& value = values[first];
  if (value.node.empty()) return at_node_with_body(values, value);
  const std::string prefix = value.path.substr(0, name_begin(value.path));
  const std::string body = prefix + escape_name(value.node) + ".";
  for (size_t index = first + 1; index < values.size() && is_control_flow(value.op); ++index) {
    const ValueComparison& later = values[index];
    const bool is_in_body = later.path.starts_with(body) && !is_control_flow(later.op);
    if (later.verdict != Verdict::diverged || !is_in_body) continue;
    if (later.node.empty()) break;
    return {value.path, later.node, later.op};
  }
  return {value.path, value.node, value.op};
}

void name_reader(ValueComparison& value) {
  if (value.reader.empty()) return;
  value.node = value.reader;
  value.op = value.reader_op;
  value.node_reads_it = true;
}

}  // namespace

void conclude(Comparison& comparison) {
  comparison.summary = {};
  comparison.first_divergence.reset();
  const bool is_output_of_other_shape = judge_outputs_of_other_shape(comparison);
  // An equal count of elements may be another layout of the same.
  const auto differs = [&](const ValueComparison& value) {
    return value.verdict == Verdict::diverged ||
           (is_output_of_other_shape && is_of_other_shape(value) && !value.is_same_count);
  };
  for (size_t index = 0; index < comparison.values.size(); ++index) {
    ValueComparison& value = comparison.values[index];
    count(value, comparison.summary);
    if (comparison.first_divergence.has_value() || !differs(value)) continue;
    name_reader(value);
    comparison.first_divergence = first_divergence_at(comparison.values, index);
    value.node = comparison.first_divergence->node;
    value.op = comparison.first_divergence->op;
  }
  const auto missed = std::ranges::find(comparison.expected, Verdict::diverged, &ValueComparison::verdict);
  if (missed != comparison.expected.end() && !comparison.first_divergence.has_value())
    comparison.first_divergence = {missed->path, missed->node, missed->op, true};
  const bool diverged = comparison.first_divergence.has_value();
  comparison.reason = diverged ? "" : explain_inconclusive(comparison);
  comparison.verdict = diverged                    ? OverallVerdict::diverged
                       : comparison.reason.empty() ? OverallVerdict::pass
                                                   : OverallVerdict::inconclusive;
}

void conclude_sum(Comparison& sum) {
  if (sum.first_divergence.has_value()) {
    sum.verdict = OverallVerdict::diverged;
    return;
  }
  if (sum.reason.empty() && sum.summary.compared == 0) sum.reason = "nothing was compared";
  sum.verdict = sum.reason.empty() ? OverallVerdict::pass : OverallVerdict::inconclusive;
}

std::optional<Error> damage_of(const Comparison& comparison) {
  if (comparison.damages.empty()) return std::nullopt;
  std::string message = comparison.damages.front().message;
  const size_t more = comparison.damages.size() - 1;
  if (more > 0) message += fmt::format("; {} more {} damaged, too", more, more == 1 ? "value is" : "values are");
  return corrupt_file(std::move(message));
}

const ValueComparison* first_diverged(const Comparison& comparison) {
  const auto first = std::ranges::find(comparison.values, Verdict::diverged, &ValueComparison::verdict);
  return first == comparison.values.end() ? nullptr : &*first;
}

bool is_any_output_diverged(const Comparison& comparison) {
  return std::ranges::any_of(comparison.values, [](const ValueComparison& value) {
    return value.is_graph_output && value.verdict != Verdict::pass;
  });
}

const ValueComparison* input_of_other_shape(const Comparison& comparison) {
  const auto found = std::ranges::find_if(comparison.values, [](const ValueComparison& value) {
    return value.origin == Origin::input && !value.shape_a.empty();
  });
  return found == comparison.values.end() ? nullptr : &*found;
}

Cause cause_at(const ValueComparison& value, std::string why) {
  Cause cause;
  cause.node = value.node;
  cause.op = value.op;
  cause.path = value.path;
  cause.why = std::move(why);
  return cause;
}

bool are_mismatched(const ValueComparison& value) {
  return value.verdict == Verdict::diverged || value.reason == "shape differs" || value.reason == "dtype differs";
}

bool are_mismatched(const Comparison& comparison) {
  return std::ranges::any_of(comparison.values, [](const ValueComparison& value) { return are_mismatched(value); });
}

double judged_severity(const ValueComparison& value) {
  return value.accepted.has_value() ? std::min(value.severity, 1.0) : value.severity;
}

double shown_average(const Metrics& metrics, double average) {
  return metrics.finite_pairs == 0 && metrics.count > 0 ? std::numeric_limits<double>::quiet_NaN() : average;
}

std::string non_finite_text(const Metrics& metrics) {
  if (metrics.nan_a + metrics.nan_b + metrics.inf_a + metrics.inf_b == 0) return {};
  std::string text;
  const auto add = [&](std::string_view what, int64_t a, int64_t b) {
    if (a + b > 0) text += fmt::format("{}{}: {} in A, {} in B", text.empty() ? "" : "; ", what, a, b);
  };
  add("NaN", metrics.nan_a, metrics.nan_b);
  add("Inf", metrics.inf_a, metrics.inf_b);
  return text + (metrics.finite_pairs == 0
                     ? "; there is no finite pair"
                     : fmt::format("; averages are over {} of {} pairs", metrics.finite_pairs, metrics.count));
}

std::string reason_text(const ValueComparison& value) {
  if (value.accepted.has_value())
    return fmt::format("accepted as {}: {}", value.accepted->reason, value.accepted->evidence);
  if (!value.note.empty()) return value.note;
  if (value.shape_a.empty()) return value.reason;
  const bool is_expected = value.a == "expected";
  return is_expected ? fmt::format("{}: {} instead of {}", value.reason, value.shape_b, value.shape_a)
                     : fmt::format("{}: {} in A and {} in B", value.reason, value.shape_a, value.shape_b);
}

bool is_damaged(const ValueComparison& value) { return value.note.starts_with("damaged in "); }

std::string_view name_of(Verdict verdict) {
  constexpr std::array<std::string_view, 4> kNames = {"pass", "diverged", "mistrusted", "not_compared"};
  return kNames[static_cast<size_t>(verdict)];
}

std::string_view name_of(OverallVerdict verdict) {
  constexpr std::array<std::string_view, 3> kNames = {"pass", "diverged", "inconclusive"};
  return kNames[static_cast<size_t>(verdict)];
}

std::string_view name_of(MatchedBy matched_by) {
  constexpr std::array<std::string_view, 4> kNames = {"path", "name", "structure", "content"};
  return kNames[static_cast<size_t>(matched_by)];
}

std::string_view name_of(LimitSource source) {
  constexpr std::array<std::string_view, 3> kNames = {"table", "noise", "user"};
  return kNames[static_cast<size_t>(source)];
}

std::string_view name_of(Side side) {
  constexpr std::array<std::string_view, 4> kNames = {"A", "B", "both", "unknown"};
  return kNames[static_cast<size_t>(side)];
}

}  // namespace parallax
