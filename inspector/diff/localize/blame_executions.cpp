// SPDX-License-Identifier: Apache-2.0
// Causes where both sides run one model: what they were given, then every node on its own inputs.
#include <algorithm>

#include <fmt/format.h>

#include "inspector/diff/compare/apply_diagnosis.h"
#include "inspector/diff/localize/accumulated_rounding.h"
#include "inspector/diff/localize/blame.h"
#include "inspector/diff/localize/blame_roots.h"
#include "inspector/diff/localize/explanation.h"
#include "inspector/diff/tolerance/paths.h"
#include "inspector/diff/tolerance/thresholds.h"
#include "inspector/exec/value_path.h"
#include "inspector/model/link.h"

namespace parallax {
namespace {

using diff::CapturedSide;
using diff::NodeInstance;
using diff::NodeJudgement;
using diff::Root;
using diff::RootFinder;

void fill_node(const Node& node, Cause& cause) {
  cause.node = node.display_name;
  cause.op = node.op_type;
  set_source(node, cause);
}

// The first node that computes with a value: where a node's bodies read it, one of theirs.
const Node* reader_of(const GraphValues& location, ValueId id, int depth = 0) {
  const ValueDef& definition = location.graph->values[static_cast<size_t>(id)];
  if (definition.readers.empty() || depth > 16) return nullptr;
  const NodeId reader = definition.readers.front();
  const Node& node = location.graph->nodes[static_cast<size_t>(reader)];
  if (std::ranges::find(node.inputs, id) != node.inputs.end()) return &node;
  for (const auto& child : location.children) {
    if (child.node != reader) continue;
    const ValueId inner = child.value_infos->find_value(definition.name);
    const Node* found = inner == kNoValue ? nullptr : reader_of(*child.value_infos, inner, depth + 1);
    if (found != nullptr) return found;
  }
  return &node;
}

class ExecutionBlame {
 public:
  ExecutionBlame(const BlameRequest& request, const Comparison& comparison, std::shared_ptr<const Model> model,
                 const ValueTable& value_infos)
      : request_(request),
        comparison_(comparison),
        model_(model),
        finder_(request, comparison, std::move(model), value_infos) {}

  Status run(Diagnosis& diagnosis) {
    add_what_was_given();
    PX_TRY(finder_.run());
    const bool may_be_rounding =
        causes_.empty() && may_accept(comparison_) && run_one_model(request_) && !finder_.found_roots();
    if (may_be_rounding) PX_TRY(finder_.judge_both_sides());
    const std::vector<Root> roots = finder_.take_roots();
    for (size_t index = 0; index < std::min(roots.size(), thresholds::kMostCauses); ++index) {
      causes_.push_back(PX_TRY(cause_of(roots[index], causes_.size() < thresholds::kExplainedCauses)));
    }
    const bool all_right = finder_.unjudged().empty() && finder_.judged() > 0;
    if (causes_.empty() && may_be_rounding && all_right) {
      if (std::optional<Cause> left = diff::find_left_range(comparison_); left.has_value()) {
        causes_.push_back(*std::move(left));
      } else {
        PX_TRY(diff::accept_accumulated_rounding(finder_, comparison_, diagnosis));
      }
    }
    if (causes_.empty() && diagnosis.accepted_as_rounding.empty()) add_what_is_known();
    for (size_t index = 0; index < causes_.size(); ++index) causes_[index].rank = static_cast<int32_t>(index) + 1;
    diagnosis.causes = std::move(causes_);
    return {};
  }

 private:
  void add_what_was_given();
  void add_constant(const ValueComparison& value, const GraphValues& location, ValueId id);
  Side side_of_constant(const ValueComparison& value, const GraphValues& location, const ValueDef& definition) const;
  Result<Cause> cause_of(const Root& root, bool with_explanation);
  std::string extent_of(const Root& root) const;
  diff::Alone run_alone(const CapturedSide& side, const NodeInstance& instance, const NodeJudgement& judgement) const;
  void add_what_is_known();

  const BlameRequest& request_;
  const Comparison& comparison_;
  std::shared_ptr<const Model> model_;
  RootFinder finder_;
  std::vector<Cause> causes_;
};

// Inputs and constants come first: where these differ, in shape or value, nothing is wrong with the node that reads
// them.
void ExecutionBlame::add_what_was_given() {
  if (first_diverged(comparison_) == nullptr) return;
  for (const ValueComparison& value : comparison_.values) {
    if (value.verdict != Verdict::diverged && value.shape_a.empty()) continue;
    const GraphValues* location = finder_.location_of(value.path);
    if (location == nullptr) continue;
    const std::string_view name = std::string_view(value.path).substr(diff::prefix_of(value.path).size());
    const ValueId id = location->find_value(unescape_name(name));
    if (id == kNoValue) continue;
    const ValueDef& definition = location->graph->values[static_cast<size_t>(id)];
    const bool is_given = definition.input_index >= 0 && location->parent == nullptr;
    if (is_given || definition.initializer_index >= 0) add_constant(value, *location, id);
  }
}

Side ExecutionBlame::side_of_constant(const ValueComparison& value, const GraphValues& location,
                                      const ValueDef& definition) const {
  if (definition.initializer_index < 0) return Side::unknown;
  const StoredTensor& stored = location.graph->initializers[static_cast<size_t>(definition.initializer_index)];
  if (!stored.absence.empty()) return Side::unknown;
  const auto a = finder_.a().captured(value.a), b = finder_.b().captured(value.b);
  if (!a.ok() || !b.ok()) return Side::unknown;
  const bool a_is_right = diff::distance_between(stored.tensor, *a, {}).severity == 0;
  const bool b_is_right = diff::distance_between(stored.tensor, *b, {}).severity == 0;
  if (a_is_right == b_is_right) return a_is_right ? Side::unknown : Side::both;
  return a_is_right ? Side::b : Side::a;
}

void ExecutionBlame::add_constant(const ValueComparison& value, const GraphValues& location, ValueId id) {
  const ValueDef& definition = location.graph->values[static_cast<size_t>(id)];
  Cause cause;
  cause.path = value.path;
  cause.introduced = value.severity;
  cause.side = side_of_constant(value, location, definition);
  if (const Node* reader = reader_of(location, id)) fill_node(*reader, cause);
  const bool is_constant = definition.initializer_index >= 0;
  cause.why = is_constant
                  ? fmt::format("the constant '{}' that it reads is not the same on both sides", definition.name)
                  : fmt::format("the two runs were given different values of input '{}'", definition.name);
  if (!value.shape_a.empty()) {
    cause.why += fmt::format(": shape {} in A and {} in B", value.shape_a, value.shape_b);
  } else if (value.metrics.has_value() && !value.metrics->worst_index.empty()) {
    cause.why +=
        fmt::format(": element [{}] is {:.9g} in A and {:.9g} in B", fmt::join(value.metrics->worst_index, ","),
                    value.metrics->worst_a, value.metrics->worst_b);
  }
  causes_.push_back(std::move(cause));
}

// The iterations in which a node of a body is wrong: every one that was judged, one, or all from one on.
std::string ExecutionBlame::extent_of(const Root& root) const {
  const auto path = parse_value_path(root.instance.prefix + "x");
  if (!path.ok() || path->frames.empty()) return {};
  int64_t iteration = -1;
  for (const Frame& frame : path->frames) {
    if (frame.index >= 0) iteration = frame.index;
  }
  if (iteration < 0) return {};
  const bool is_always = root.wrong == root.judged;
  if (root.wrong == 1 && is_always && root.judged == 1) return fmt::format(" (first wrong in iteration {})", iteration);
  if (is_always) return fmt::format(" (from iteration {} on)", iteration);
  return fmt::format(" (first in iteration {}; wrong in {} of the {} that were judged from there)", iteration,
                     root.wrong, root.judged);
}

// Second evidence: the node in the side's own executor, on the inputs of the run, twice.
diff::Alone ExecutionBlame::run_alone(const CapturedSide& side, const NodeInstance& instance,
                                      const NodeJudgement& judgement) const {
  if (side.side().executor == nullptr) return diff::Alone::unknown;
  std::vector<Value> values;
  std::vector<bool> constants;
  for (const diff::FoundValue& input : judgement.computed.inputs) {
    if (!input.computed_by.empty()) return diff::Alone::unknown;
    values.push_back(input.value);
    constants.push_back(input.is_constant);
  }
  std::vector<Value> results;
  for (int round = 0; round < 2; ++round) {
    diff::NodeReplay replay(model_, *instance.location->graph, instance.definition(), side.side().executor,
                            side.side().options);
    auto outputs = replay.run(values, constants);
    if (!outputs.ok() || !diff::is_on_host((*outputs)[judgement.output])) return diff::Alone::unknown;
    results.push_back(std::move((*outputs)[judgement.output]));
  }
  if (diff::distance_between(results[0], results[1], {}).severity > 0) return diff::Alone::varies;
  if (diff::distance_between(judgement.expected, results[0], judgement.limit).severity <= 1) return diff::Alone::right;
  const bool is_same = diff::distance_between(judgement.actual, results[0], judgement.limit).severity <= 1;
  return is_same ? diff::Alone::same : diff::Alone::differs;
}

Result<Cause> ExecutionBlame::cause_of(const Root& root, bool with_explanation) {
  const NodeInstance& instance = root.instance;
  const Node& node = instance.definition();
  Cause cause;
  fill_node(node, cause);
  cause.path = instance.prefix +
               escape_name(instance.location->graph->values[static_cast<size_t>(node.outputs[root.output])].name);
  cause.introduced = root.introduced;
  cause.inherited = root.inherited;
  cause.side = root.side;
  const bool in_a = root.side == Side::a;
  if (!with_explanation) {
    cause.why = fmt::format("on its own inputs its result in {} is beyond what rounding can do{}", name_of(root.side),
                            extent_of(root));
    return cause;
  }
  const CapturedSide& side = in_a ? finder_.a() : finder_.b();
  const NodeJudgement judgement = PX_TRY(diff::judge_node(side, instance, {}));
  if (!judgement.is_judged) {
    cause.why = "its result is wrong, and could not be looked at again: " + judgement.reason;
    return cause;
  }
  if (judgement.group != nullptr) {
    for (const auto& member : judgement.group->members())
      cause.group.push_back(member.instance.definition().display_name);
  }
  std::vector<std::string> earlier;
  for (int64_t index = 0; index < root.order; ++index) {
    const ValueComparison& value = comparison_.values[static_cast<size_t>(index)];
    const std::string& path = in_a ? value.a : value.b;
    if (!path.empty() && side.has(path)) earlier.push_back(path);
  }
  const diff::ExplanationEvidence evidence(side, instance, judgement, in_a ? "A" : "B", earlier,
                                           run_alone(side, instance, judgement));
  const diff::NodeExplanation explanation = diff::explain(evidence);
  cause.why = explanation.sentence + extent_of(root);
  if (explanation.sentence_of != &node) fill_node(*explanation.sentence_of, cause);  // the one of the group
  if (root.side == Side::both) cause.why += "; both sides are wrong, each in its own way";
  return cause;
}

// No node is wrong by itself: the first position that differs, and the facts about it.
void ExecutionBlame::add_what_is_known() {
  const ValueComparison* const first = first_diverged(comparison_);
  if (first == nullptr) return;
  Cause cause = cause_at(*first, {});
  cause.inherited = first->severity;
  if (finder_.judged() == 0) {
    cause.why = fmt::format("the first value that differs; no node could be judged: {}",
                            finder_.unjudged().empty() ? "the values were not captured in full" : finder_.unjudged());
  } else if (!finder_.unjudged().empty()) {
    cause.why = fmt::format(
        "the first value that differs; all nodes that could be judged are right on their own inputs, "
        "but not all could: {}",
        finder_.unjudged());
  } else {
    cause.why =
        "the first value that differs by more than its limit; on both sides every node is right on its own "
        "inputs within rounding, so that the difference has grown from rounding on the way here";
  }
  causes_.push_back(std::move(cause));
}

// Nothing can be judged: the first value that differs, as it stands.
std::vector<Cause> without_graph(const Comparison& comparison) {
  const ValueComparison* const first = first_diverged(comparison);
  if (first == nullptr) return {};
  Cause cause =
      cause_at(*first, "the first value that differs; the dumps hold no graph, so that no node could be judged");
  cause.inherited = first->severity;
  return {cause};
}

}  // namespace

Status blame_executions(const BlameRequest& request, const Comparison& comparison, Diagnosis& diagnosis) {
  std::shared_ptr<const Model> model = request.a.model != nullptr ? request.a.model : request.b.model;
  for (const BlameSide* side : {&request.a, &request.b}) {
    for (size_t graph = 0; graph < side->dump->graphs().size() && model == nullptr; ++graph) {
      if (!side->dump->graphs()[graph].is_executed) model = PX_TRY(side->dump->model(static_cast<int32_t>(graph)));
    }
  }
  if (model == nullptr) {
    diagnosis.causes = without_graph(comparison);
    return {};
  }
  const ValueTable value_infos = PX_TRY(ValueTable::build(model));
  return ExecutionBlame(request, comparison, model, value_infos).run(diagnosis);
}

}  // namespace parallax
