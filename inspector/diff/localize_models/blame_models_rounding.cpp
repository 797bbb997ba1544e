// SPDX-License-Identifier: Apache-2.0
// Judging the nodes of two models side by side, each by the oracle on what it was given.
#include "inspector/diff/localize_models/blame_models_rounding.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "inspector/diff/compare/apply_diagnosis.h"
#include "inspector/diff/localize/accumulated_rounding.h"
#include "inspector/diff/localize/captured_side.h"
#include "inspector/diff/localize/explanation.h"
#include "inspector/diff/localize/node_judge.h"
#include "inspector/diff/localize_models/blame_models_vanished.h"
#include "inspector/diff/matching/definition_distance.h"
#include "inspector/diff/tolerance/paths.h"
#include "inspector/diff/tolerance/quantization.h"
#include "inspector/diff/tolerance/thresholds.h"
#include "inspector/exec/value_path.h"
#include "inspector/tensor/elements.h"

namespace parallax::diff {
namespace {

// One side's nodes, found by the paths of what they make.
class JudgedSide {
 public:
  JudgedSide(const BlameSide& side, const ModelSide& model, std::shared_ptr<Executor> oracle, Side letter)
      : captured_(side, model.model(), std::move(oracle)), letter_(letter) {
    add_locations(model.value_infos().main());
  }

  // The cause where the node that makes the value is wrong; nothing where it is right, or has been judged before.
  Result<std::optional<Cause>> judge(const std::string& path, const ValueComparison& value) {
    const std::string prefix(prefix_of(path));
    const auto location = locations_.find(static_path(prefix));
    const ValueId id = location == locations_.end()
                           ? kNoValue
                           : location->second->find_value(unescape_name(std::string_view(path).substr(prefix.size())));
    if (id == kNoValue) {
      unjudged_ = fmt::format("the graph at hand has no value '{}'", path);
      return std::optional<Cause>();
    }
    const ValueDef& definition = location->second->graph->values[static_cast<size_t>(id)];
    if (definition.producer == kNoNode) return std::optional<Cause>();
    const NodeInstance instance{location->second, definition.producer, prefix};
    const Node& node = instance.definition();
    if (!judged_.insert(fmt::format("{}\n{}", prefix, definition.producer)).second || wrong_.contains(&node))
      return std::optional<Cause>();
    std::vector<std::optional<Limit>> carried(node.outputs.size());
    if (has_body(node)) carried[static_cast<size_t>(definition.output_index)] = value.limit;
    const NodeJudgement judgement = PX_TRY(judge_node(captured_, instance, carried));
    if (!judgement.is_judged)
      unjudged_ = fmt::format("'{}' ({}): {}", node.display_name, node.op_type, judgement.reason);
    if (!judgement.is_judged || !(judgement.introduced > 1)) return std::optional<Cause>();
    wrong_.insert(&node);
    return std::optional<Cause>(cause_of(instance, judgement, value));
  }

  const std::string& unjudged() const { return unjudged_; }

 private:
  void add_locations(const GraphValues& location) {
    locations_.emplace(location.scope, &location);
    for (const GraphValues::Child& child : location.children) add_locations(*child.value_infos);
  }

  Cause cause_of(const NodeInstance& instance, const NodeJudgement& judgement, const ValueComparison& value) const {
    Cause cause;
    cause.node = value.node.empty() ? instance.definition().display_name : value.node;
    cause.op = instance.definition().op_type;
    cause.path = value.path;
    cause.introduced = judgement.introduced;
    cause.side = letter_;
    set_source(instance.definition(), cause);
    const ExplanationEvidence evidence(captured_, instance, judgement, letter_ == Side::a ? "A" : "B", {},
                                       Alone::unknown);
    cause.why = "both models define it alike, but it is computed wrongly: " + explain(evidence).sentence;
    return cause;
  }

  CapturedSide captured_;
  Side letter_;
  std::unordered_map<std::string, const GraphValues*> locations_;  // by static prefix
  std::unordered_set<std::string> judged_;                         // instances
  std::unordered_set<const Node*> wrong_;
  std::string unjudged_;
};

// The first value that differs and that no available node explains.
Cause first_divergence(const Comparison& comparison, const std::string& unjudged) {
  const ValueComparison* const first = first_diverged(comparison);
  Cause cause = cause_at(*first, "the first value that differs; both models define it alike");
  cause.inherited = first->severity;
  if (!unjudged.empty()) cause.why += ", and not every node could be judged: " + unjudged;
  return cause;
}

// Inputs that the two executions were not given alike: nothing that follows can be laid to a node.
std::vector<Cause> other_inputs(const ModelSide& a, const Comparison& comparison) {
  std::vector<Cause> causes;
  const Graph& graph = *a.value_infos().main().graph;
  for (const ValueComparison& value : comparison.values) {
    if (value.verdict != Verdict::diverged) continue;
    const bool is_input = std::ranges::any_of(graph.inputs, [&](ValueId input) {
      return escape_name(graph.values[static_cast<size_t>(input)].name) == value.path;
    });
    if (!is_input) continue;
    Cause cause = cause_at(value, "the two were given different values for this input; both models define the same");
    cause.rank = static_cast<int32_t>(causes.size()) + 1;
    cause.node = value.path;
    cause.op = "input";
    cause.introduced = value.severity;
    causes.push_back(std::move(cause));
  }
  return causes;
}

// Into `most`: how far each element of the two definitions has moved, where that is more.
void add_movement(const Region& region, const Region& moved, std::vector<double>& most) {
  for (const auto& [before, after] : {std::pair(&region.expected, &moved.expected), {&region.found, &moved.found}}) {
    if (!after->is_tensor() || !(after->tensor().shape() == before->tensor().shape())) continue;
    for (size_t index = 0; index < most.size(); ++index) {
      const auto location = static_cast<int64_t>(index);
      const double by =
          std::abs(element_as_double(before->tensor(), location) - element_as_double(after->tensor(), location));
      most[index] = std::max(most[index], by);
    }
  }
}

bool is_exact(const ValueComparison& value) {
  const auto dtype = dtype_from_name(value.dtype);
  return dtype.has_value() && !is_floating(*dtype) && !is_complex(*dtype);
}

// The reasons of values that diverged where one model quantizes, and every node is right on its own inputs.
class QuantizedAcceptance {
 public:
  QuantizedAcceptance(const ModelSide& a, const Effects& effects, const Comparison& comparison) : a_(a) {
    for (const ValueInfo& value_info : a.value_infos().value_infos())
      ids_.emplace(value_info.scope + value_info.escaped_name, value_info.id);
    for (const ValueComparison& value : comparison.values)
      if (!value.a.empty()) by_path_.emplace(value.a, &value);
    for (const ValueComparison& value : comparison.values) {
      if (value.verdict != Verdict::diverged || !is_choice(value)) continue;
      choices_.insert(value.a);
      effects.is_any_made_of(id_of(value.a), [&](int32_t made) { return after_choices_.insert(made), false; });
    }
  }

  // Nothing where it has none.
  std::optional<Acceptance> reason_of(const ValueComparison& value) const {
    if (!value.shape_a.empty()) return std::nullopt;
    if (choices_.contains(value.a))
      return Acceptance{"near tie", "the numbers that decide differ by less than their quantization explains"};
    if (after_choices_.contains(id_of(value.a)))
      return Acceptance{"near tie upstream", "every node is right on its own inputs"};
    if (is_exact(value) || !(value.severity <= thresholds::kNearQuantization)) return std::nullopt;
    return Acceptance{
        "quantization steps",
        fmt::format("each is within its limit, and together they exceed it {:.3g} times", value.severity)};
  }

 private:
  int32_t id_of(const std::string& path) const {
    const auto found = ids_.find(static_path(path));
    return found == ids_.end() ? -1 : found->second;
  }

  // An exact value that is decided by floats, all of which are within their limits.
  bool is_choice(const ValueComparison& value) const {
    const int32_t id = id_of(value.a);
    const LocatedNode made_by = id < 0 ? LocatedNode{} : a_.producer(id);
    if (!is_exact(value) || made_by.id == kNoNode) return false;
    bool is_any_different = false;
    for (const ValueId input : made_by.node().inputs) {
      const int32_t read = ModelSide::value_info_read(*made_by.location, input);
      if (read < 0) continue;
      const auto found = by_path_.find(std::string(prefix_of(value.a)) + a_.value_info(read).escaped_name);
      if (found == by_path_.end()) continue;
      if (found->second->verdict == Verdict::diverged) return false;
      is_any_different = is_any_different || (!is_exact(*found->second) && found->second->severity > 0);
    }
    return is_any_different;
  }

  const ModelSide& a_;
  std::unordered_map<std::string, int32_t> ids_;  // of A's values, by static path
  std::unordered_map<std::string, const ValueComparison*> by_path_;
  std::unordered_set<std::string> choices_;
  std::unordered_set<int32_t> after_choices_;
};

// One of the two quantizes: accepts what its steps explain, and reports the first value that they do not.
void accept_quantized(const ModelSide& a, const Effects& effects, const Comparison& comparison, Diagnosis& diagnosis) {
  const QuantizedAcceptance acceptance(a, effects, comparison);
  std::vector<AcceptedRounding> accepted;
  for (const ValueComparison& value : comparison.values) {
    if (value.verdict != Verdict::diverged) continue;
    auto reason = acceptance.reason_of(value);
    if (reason.has_value()) {
      accepted.push_back({value.path, *std::move(reason)});
      continue;
    }
    Cause cause = cause_at(
        value,
        "the first value that differs by more than its quantization explains, though each step alone is within its "
        "limit");
    cause.inherited = value.severity;
    diagnosis.causes.push_back(std::move(cause));
    return;
  }
  diagnosis.accepted_as_rounding = std::move(accepted);
}

}  // namespace

double diverged_in_some_elements(const RegionRunner& regions, const ValueMatch& match, const Instance& instance,
                                 const Region& region, const Limit& limit) {
  constexpr uint32_t kRounds = 3;
  const auto is_float = [](const Value& value) { return value.is_tensor() && is_floating(value.tensor().dtype()); };
  if (!is_float(region.expected) || !is_float(region.found)) return 0;
  const Tensor &a = region.expected.tensor(), &b = region.found.tensor();
  if (!(a.shape() == b.shape())) return 0;
  std::vector<double> moved(static_cast<size_t>(a.element_count()));
  for (uint32_t round = 1; round <= kRounds; ++round) {
    const auto nudged = regions.run_nudged(match.a, match.b, instance, 0x9E3779B9U * round);
    if (nudged.ok()) add_movement(region, *nudged, moved);
  }
  double largest = 0;
  for (size_t index = 0; index < moved.size(); ++index) {
    const double x = element_as_double(a, static_cast<int64_t>(index));
    const double y = element_as_double(b, static_cast<int64_t>(index));
    const double distance = std::abs(x - y), size = std::max(std::abs(x), std::abs(y));
    if (!(distance > limit.atol + limit.rtol * std::abs(x)) || !(distance > thresholds::kNudgedMargin * moved[index]))
      continue;
    if (distance > thresholds::kSameDefinition * size) largest = std::max(largest, distance / size);
  }
  return largest;
}

Status judge_same_models(const BlameRequest& request, const ModelSide& a, const ModelSide& b,
                         const ModelMatching& matching, const Effects& effects, const Comparison& comparison,
                         Diagnosis& diagnosis) {
  std::vector<Cause>& causes = diagnosis.causes;
  if (first_diverged(comparison) == nullptr) return {};
  if (causes = other_inputs(a, comparison); !causes.empty()) return {};
  JudgedSide side_a(request.a, a, request.oracle, Side::a), side_b(request.b, b, request.oracle, Side::b);
  for (const ValueComparison& value : comparison.values) {
    if (value.verdict != Verdict::diverged) continue;
    if (request.cancel.is_cancelled()) return make_error(ErrorCode::cancelled, "the search for causes was cancelled");
    if (auto wrong = PX_TRY(side_a.judge(value.a, value))) causes.push_back(std::move(*wrong));
    if (auto wrong = PX_TRY(side_b.judge(value.b, value))) causes.push_back(std::move(*wrong));
  }
  if (!causes.empty()) {
    std::ranges::stable_sort(causes, [](const Cause& x, const Cause& y) { return x.introduced > y.introduced; });
    return {};
  }
  const std::string& unjudged = side_a.unjudged().empty() ? side_b.unjudged() : side_a.unjudged();
  if (!unjudged.empty() || !may_accept(comparison)) {
    causes.push_back(first_divergence(comparison, unjudged));
    return {};
  }
  if (std::optional<Cause> left = find_left_range(comparison); left.has_value()) {
    name_vanished_constant(a, b, matching, *left);
    causes.push_back(*std::move(left));
    return {};
  }
  // Quantized values leave limits so wide that nothing far beyond them is rounding.
  if (is_quantized(a.value_infos()) != is_quantized(b.value_infos())) {
    accept_quantized(a, effects, comparison, diagnosis);
    return {};
  }
  accept_diverged(comparison,
                  {"accumulated rounding", "both models define the same, and every node is right on its own inputs"},
                  diagnosis);
  return {};
}

}  // namespace parallax::diff
