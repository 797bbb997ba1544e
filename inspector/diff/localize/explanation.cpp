// SPDX-License-Identifier: Apache-2.0
// The list of rules, and what they ask of the evidence.
#include "inspector/diff/localize/explanation.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "inspector/diff/tolerance/thresholds.h"
#include "inspector/exec/executor_names.h"
#include "inspector/tensor/elements.h"

namespace parallax::diff {
namespace {

// From what proves most to what only describes.
constexpr ExplanationRule kRules[] = {
    {"hand-over", explain_handed_on},
    {"shape", explain_shape},
    {"half precision overflow", explain_overflow},
    {"not a number", explain_not_finite},
    {"flushed to zero", explain_flushed},
    {"subnormal inputs taken as zero", explain_inputs_flushed},
    {"never written", explain_unwritten},
    {"an input unchanged", explain_is_an_input},
    {"stored in half precision", explain_stored_narrow},
    {"attribute", explain_attribute, RuleKind::definition},
    {"order among equals", explain_order_among_equals},
    {"quantized activations", explain_quantized_activations, RuleKind::definition},
    {"operands", explain_operands, RuleKind::definition},
    {"operator", explain_operator, RuleKind::definition},
    {"unbiased variance", explain_unbiased_variance, RuleKind::definition},
    {"constant factor", explain_scaled},
    {"constant offset", explain_offset},
    {"moved elements", explain_moved},
    {"another number", explain_by_number, RuleKind::definition},
    {"other integers", explain_by_integers, RuleKind::definition},
    {"missing operand", explain_by_missing_operand, RuleKind::definition},
    {"stale input", explain_stale_input},
    {"stale output", explain_stale_output},
    {"computed in half precision", explain_computed_narrow},
    {"accumulation", explain_accumulation},
    {"region", explain_region},
};

std::vector<double> doubles_of(const Value& value) {
  if (!value.is_tensor() || value.tensor().dtype() == DType::string || is_complex(value.tensor().dtype())) return {};
  std::vector<double> elements(static_cast<size_t>(value.tensor().element_count()));
  load_doubles(value.tensor(), 0, elements);
  return elements;
}

// How large the error is, where no rule knows its making.
std::string describe(const ExplanationEvidence& evidence) {
  const Distance distance =
      distance_between(evidence.expected(), evidence.actual(),
                       {evidence.judgement().limit.rtol, evidence.judgement().limit.atol, LimitSource::table});
  if (!distance.metrics.has_value()) return "its result has another type or shape than it should";
  const Metrics& metrics = *distance.metrics;
  if (std::isnan(metrics.max_abs)) {  // texts
    return fmt::format("its result holds other texts for a reason no rule knows: {} of {}, the first at [{}]",
                       metrics.mismatches, metrics.count, fmt::join(metrics.worst_index, ","));
  }
  return fmt::format(
      "its result is off for a reason no rule knows: {} of {} elements, relative error {:.2g}, worst at "
      "[{}]: {:.9g} instead of {:.9g}",
      metrics.mismatches, metrics.count, metrics.rel_l2, fmt::join(metrics.worst_index, ","), metrics.worst_b,
      metrics.worst_a);
}

std::string context_of(const ExplanationEvidence& evidence) {
  switch (evidence.alone()) {
    case Alone::right:
      return fmt::format(
          "wrong only in context (memory planning, aliasing, layout, fusion or a race; {}'s executor "
          "gets it right when it runs the node alone on the same inputs): ",
          evidence.letter());
    case Alone::varies:
      return "results vary between two runs of the same executor on the same inputs (uninitialized memory or a race): ";
    default:
      return {};
  }
}

// The first answer among the rules that `is_asked` admits.
template <class IsAsked>
std::string answer_of(const ExplanationEvidence& evidence, const IsAsked& is_asked) {
  for (const ExplanationRule& rule : kRules) {
    if (!is_asked(rule)) continue;
    if (auto answer = rule.explain(evidence)) return *std::move(answer);
  }
  return {};
}

std::string answer_of_definition(const ExplanationEvidence& evidence) {
  return answer_of(evidence, [](const ExplanationRule& rule) { return rule.kind == RuleKind::definition; });
}

// The group's result if the node returned its input.
std::string bypassed(const ExplanationEvidence& member) {
  for (size_t index = 0; index < member.inputs().size(); ++index) {
    const auto candidate = member.result_of(member.inputs()[index].value);
    if (candidate.has_value() && member.is_reproduced_by(*candidate))
      return fmt::format("its result is what '{}' gives without this node", member.input_name(index));
  }
  return {};
}

// The explanation of another node of the group by itself, the latest node first.
template <class Answer>
NodeExplanation answer_of_members(const ExplanationEvidence& evidence, const Answer& answer_for) {
  if (evidence.group() == nullptr) return {};
  constexpr std::string_view kOwn = "its result";
  double left_ms = thresholds::kGroupExplanationMs;
  for (size_t member = evidence.group()->members().size() - 1; member-- > 0 && left_ms > 0;) {
    const ExplanationEvidence inner(evidence, member, std::min(left_ms, thresholds::kExplanationMs));
    const Node& node = inner.node();
    if (node.op_type == "Constant") continue;
    std::string answer = answer_for(inner);
    left_ms -= inner.spent_ms();
    if (answer.empty()) continue;
    if (answer.starts_with(kOwn)) answer = "the group's result" + answer.substr(kOwn.size());
    return {fmt::format("by its node '{}' ({}): {}", node.display_name, node.op_type, answer), &node};
  }
  return {};
}

std::string stale_input_of(const ExplanationEvidence& member) { return explain_stale_input(member).value_or(""); }

// A node's definition, those of the other nodes of its group, and whether a node should not be there.
NodeExplanation explain_by_definition(const ExplanationEvidence& evidence) {
  if (std::string own = answer_of_definition(evidence); !own.empty()) return {std::move(own), &evidence.node()};
  NodeExplanation found = answer_of_members(evidence, answer_of_definition);
  return found.sentence.empty() ? answer_of_members(evidence, bypassed) : found;
}

NodeExplanation sentence_for(const ExplanationEvidence& evidence) {
  NodeExplanation found;
  if (evidence.is_foreign()) found = explain_by_definition(evidence);
  if (found.sentence.empty() && evidence.is_foreign()) {
    if (auto other = explain_stale_input(evidence)) found = {*std::move(other), &evidence.node()};
    if (found.sentence.empty()) found = answer_of_members(evidence, stale_input_of);
  }
  if (found.sentence.empty())
    found = {answer_of(evidence, [](const ExplanationRule&) { return true; }), &evidence.node()};
  if (found.sentence.empty() && !evidence.is_foreign()) found = answer_of_members(evidence, answer_of_definition);
  return found.sentence.empty() ? NodeExplanation{describe(evidence), &evidence.node()} : found;
}

bool is_fused(const ExplanationEvidence& evidence) {
  return std::ranges::any_of(evidence.dump().entries(), [](const DumpEntry& entry) {
    return entry.absence.has_value() && entry.absence->kind == Absence::Kind::fused;
  });
}

// The nodes whose results were not captured, and were computed by the oracle on the way.
std::string judged_with(const ExplanationEvidence& evidence) {
  if (evidence.group() != nullptr && !is_fused(evidence)) {
    const auto members = evidence.group()->members();
    return fmt::format("; judged as one group of {} nodes from '{}' on, whose values in between were not captured",
                       members.size(), members.front().instance.definition().display_name);
  }
  std::vector<std::string> names;
  for (const FoundValue& input : evidence.inputs()) {
    for (const Node* node : input.computed_by)
      names.push_back(fmt::format("'{}' ({})", node->display_name, node->op_type));
  }
  if (names.empty()) return {};
  if (names.size() > 4) names.resize(4);
  return fmt::format("; judged together with {}, whose results do not exist on their own", fmt::join(names, ", "));
}

}  // namespace

std::span<const ExplanationRule> explain_rules() { return kRules; }

ExplanationEvidence::ExplanationEvidence(const CapturedSide& side, const NodeInstance& instance,
                                         const NodeJudgement& judgement, std::string_view letter,
                                         std::span<const std::string> earlier, Alone alone)
    : side_(side),
      instance_(&instance),
      judgement_(judgement),
      reads_(&judgement.computed.reads),
      inputs_(&judgement.computed.inputs),
      letter_(letter),
      earlier_(earlier),
      alone_(alone),
      budget_ms_(thresholds::kExplanationMs) {
  const Value& expected = judgement.expected;
  const Value& actual = judgement.actual;
  if (!expected.is_tensor() || !actual.is_tensor() || !(expected.tensor().shape() == actual.tensor().shape())) return;
  expected_doubles_ = doubles_of(expected);
  actual_doubles_ = doubles_of(actual);
}

ExplanationEvidence::ExplanationEvidence(const ExplanationEvidence& whole, size_t member, double budget_ms)
    : side_(whole.side_),
      instance_(&whole.group()->members()[member].instance),
      judgement_(whole.judgement_),
      reads_(&whole.group()->members()[member].reads),
      inputs_(&whole.group()->members()[member].inputs),
      member_(member),
      letter_(whole.letter_),
      earlier_(whole.earlier_),
      alone_(whole.alone_),
      expected_doubles_(whole.expected_doubles_),
      actual_doubles_(whole.actual_doubles_),
      budget_ms_(budget_ms) {}

bool ExplanationEvidence::is_foreign() const {
  const auto executions = side_.dump().executions();
  if (executions.empty() || side_.side().executor != nullptr) return executions.empty();
  return is_foreign_executor(executions.front().executor);
}

std::vector<Value> ExplanationEvidence::input_values() const {
  std::vector<Value> values;
  for (const FoundValue& input : inputs()) values.push_back(input.value);
  return values;
}

std::string ExplanationEvidence::input_name(size_t read) const {
  return value_at(*instance_->location->graph, (*reads_)[read]).name;
}

Value ExplanationEvidence::captured(const std::string& path) const {
  auto value = side_.captured(path);
  return value.ok() ? value.take() : Value();
}

double ExplanationEvidence::distance_to(const Value& candidate) const {
  if (candidate.is_absent()) return std::numeric_limits<double>::infinity();
  return distance_between(rounded_like(candidate, actual()), actual(), judgement_.limit).severity;
}

bool ExplanationEvidence::is_reproduced_by(const Value& candidate) const {
  const double distance = distance_to(candidate);
  return distance <= thresholds::kNearRounding && 2 * distance < judgement_.introduced;
}

bool ExplanationEvidence::is_reproduced_by(std::span<const double> elements) const {
  if (!actual().is_tensor() || elements.size() != actual_doubles_.size()) return false;
  auto candidate = Tensor::allocate(DType::float64, actual().tensor().shape());
  if (!candidate.ok()) return false;
  std::copy(elements.begin(), elements.end(), candidate->mutable_as<double>().begin());
  return is_reproduced_by(candidate.take());
}

template <class Run>
std::optional<Value> ExplanationEvidence::timed(Run&& run) const {
  if (spent_ms_ > budget_ms_) return std::nullopt;
  const auto start = std::chrono::steady_clock::now();
  Result<std::vector<Value>> outputs = run();
  spent_ms_ += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  if (!outputs.ok() || judgement_.output >= outputs->size()) return std::nullopt;
  return std::move((*outputs)[judgement_.output]);
}

std::optional<Value> ExplanationEvidence::rerun(const Node& node, std::span<const Value> inputs) const {
  return timed([&]() -> Result<std::vector<Value>> {
    if (!member_.has_value()) return side_.replay(*instance_, node, inputs);
    auto outputs = PX_TRY(side_.make_replay(*instance_, node)->run(inputs));
    return group()->run_from(*member_, std::move(outputs));
  });
}

std::optional<Value> ExplanationEvidence::rerun_with(size_t read, const Value& value) const {
  if (group() != nullptr) return timed([&] { return group()->run_with((*reads_)[read], value); });
  std::vector<Value> values = input_values();
  values[read] = value;
  return rerun(node(), values);
}

std::optional<Value> ExplanationEvidence::result_of(const Value& result) const {
  if (!member_.has_value() || node().outputs.size() != 1 || result.is_absent()) return std::nullopt;
  return timed([&] { return group()->run_from(*member_, {result}); });
}

NodeExplanation explain(const ExplanationEvidence& evidence) {
  NodeExplanation found = sentence_for(evidence);
  found.sentence = context_of(evidence) + found.sentence + judged_with(evidence);
  return found;
}

}  // namespace parallax::diff
