// SPDX-License-Identifier: Apache-2.0
// Follows constants of A to what is made of them, by paths, and judges by what was compared there.
#include "inspector/diff/compare/equivalent_constants.h"

#include <algorithm>
#include <cmath>

#include "inspector/diff/matching/definition_distance.h"
#include "inspector/diff/matching/unmatch.h"
#include "inspector/diff/tolerance/judge.h"
#include "inspector/diff/tolerance/paths.h"
#include "inspector/diff/tolerance/thresholds.h"
#include "inspector/diff/tolerance/value_compare.h"
#include "inspector/exec/value_path.h"
#include "inspector/model/link.h"
#include "inspector/model/random_operators.h"

namespace parallax::diff {
namespace {

bool holds_data(const ValueInfo& value_info) {
  return value_info.role == ValueInfo::Role::initializer || (value_info.op == "Constant" && value_info.domain.empty());
}

// True where the worst element is one that half precision cannot represent, and its replacement: converters write a
// small number for one that would be lost (1e-7 for 1e-12), a large one for one beyond the range (-10000 for -3.4e38).
bool cannot_be_half(const Metrics& metrics) {
  const FloatLimits limits = float_limits(DType::float16);
  const double a = std::abs(metrics.worst_a), b = std::abs(metrics.worst_b);
  if (a <= limits.min_normal) return b <= limits.min_normal;
  return a > limits.max_finite && b >= limits.max_finite / 8;
}

// The length of a Gather's axis where `value` is its indices: the length of the axis that it gathers along. 0: not
// known.
int64_t length_indexed(const Graph& graph, const Node& node, ValueId value) {
  const bool is_index = (node.op_type == "Gather" || node.op_type == "GatherElements") && node.domain.empty() &&
                        node.inputs.size() == 2 && node.inputs[1] == value && node.inputs[0] != kNoValue;
  if (!is_index) return 0;
  const TypeInfo& type = value_at(graph, node.inputs[0]).type;
  if (!type.dims.has_value()) return 0;
  const Attribute* const attribute = find_attribute(node, "axis");
  const auto* const given = attribute == nullptr ? nullptr : std::get_if<int64_t>(&attribute->value);
  const auto rank = static_cast<int64_t>(type.dims->size());
  int64_t axis = given == nullptr ? 0 : *given;
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank || !(*type.dims)[static_cast<size_t>(axis)].is_known()) return 0;
  return (*type.dims)[static_cast<size_t>(axis)].value;
}

std::string path_of(const ValueInfo& value_info) { return value_info.scope + value_info.escaped_name; }

}  // namespace

void EquivalentConstants::add(bool is_a, const ValueInfo& value_info) {
  const ValueDef& definition = value_at(*value_info.graph, value_info.value);
  const std::string path = path_of(value_info);
  if (value_info.role == ValueInfo::Role::node_output)
    (is_a ? operators_in_a_ : operators_in_b_).emplace(path, value_info.op);
  // A value that a loop computes is no constant, even from its counter alone.
  const bool goes_round = value_info.scope.find(".body[") != std::string::npos;
  const bool is_constant = holds_data(value_info) || (value_info.is_constant_like && !goes_round);
  if (!is_a) {
    const DType dtype = definition.type.dtype;
    if (dtype == DType::float16 || dtype == DType::bfloat16) half_in_b_.insert(path);
    if (is_constant) describe_producer(value_info, in_b_[path]);
    return;
  }
  if (is_constant) constants_.insert(path);
  if (follows_from_data_alone(value_info, path)) held_.insert(path);
  if (value_info.role == ValueInfo::Role::node_output)
    made_with_[value_info.scope + escape_name(std::string(value_info.node)) + "."].push_back({path});
  std::vector<Effect>& effects = made_with_[path];
  // The output of a body is the output of its node.
  if (definition.is_graph_output && !value_info.scope.empty())
    effects.push_back({value_info.scope.substr(0, value_info.scope.rfind('.') + 1), Placing::none, true});
  for (const NodeId reader : definition.readers) {
    const Node& node = value_info.graph->nodes[static_cast<size_t>(reader)];
    const Placing placing = placing_of(*value_info.graph, node, value_info.value);
    if (node.function != nullptr || !bodies_of(node).empty())
      effects.push_back({value_info.scope + escape_name(node.display_name) + ".", placing, true});
    for (const ValueId output : node.outputs) {
      if (output == kNoValue) continue;
      effects.push_back({value_info.scope + escape_name(value_at(*value_info.graph, output).name), placing, false,
                         length_indexed(*value_info.graph, node, value_info.value)});
    }
  }
}

bool EquivalentConstants::follows_from_data_alone(const ValueInfo& value_info, const std::string& path) const {
  if (holds_data(value_info)) return true;
  const NodeId producer = value_at(*value_info.graph, value_info.value).producer;
  if (producer == kNoNode) return false;
  const Node& node = value_info.graph->nodes[static_cast<size_t>(producer)];
  const std::string_view scope = std::string_view(path).substr(0, value_info.scope.size());
  const auto is_held = [&](ValueId input) {
    return input == kNoValue ||
           held_.contains(std::string(scope) + escape_name(value_at(*value_info.graph, input).name));
  };
  return !node.inputs.empty() && !draws_at_random(node.op_type) && node.function == nullptr &&
         bodies_of(node).empty() && std::ranges::all_of(node.inputs, is_held);
}

void EquivalentConstants::add_seen(const ValueComparison& value, bool is_constant, Seen& seen) {
  const std::string path = static_path(value.path);
  if (value.reason.starts_with(kFusedInto)) seen.fused.insert(path);
  if (value.verdict != Verdict::not_compared) seen.compared.insert(path);
  const bool has_other_shape = value.verdict == Verdict::not_compared && value.reason == "shape differs";
  // Elements moved before or after a node: the next values computed from them may agree.
  const bool is_moved = has_other_shape && value.is_same_count;
  const bool is_on_the_way = is_moved && !value.is_graph_output && path.find("//") == std::string::npos;
  if ((value.verdict != Verdict::diverged && !has_other_shape) || is_on_the_way) return;
  seen.wrong.insert(path);
  if (is_constant) return;  // a constant in a body says nothing of the body
  for (size_t at = path.find("//"); at != std::string::npos; at = path.find("//", at + 2)) {
    const size_t dot = path.rfind('.', at);
    if (dot != std::string::npos) seen.wrong.insert(path.substr(0, dot + 1));
  }
}

bool EquivalentConstants::has_right_effects(const ValueComparison& constant, const Seen& seen) const {
  bool any_made = false, any_compared = false;
  Paths known;
  std::vector<std::string> waiting{static_path(constant.path)};
  while (!waiting.empty()) {
    const bool is_constant = !any_made;
    const auto effects = made_with_.find(waiting.back());
    waiting.pop_back();
    if (effects == made_with_.end()) continue;
    for (const Effect& effect : effects->second) {
      const bool is_compared = seen.compared.contains(effect.path);
      // The value has one shape in both, or one index: any other error comes from its other inputs.
      const bool is_settled = effect.placing == Placing::by_shape || (is_constant && is_one_index(constant, effect));
      const bool may_inherit = is_compared && is_settled;
      if (!may_inherit && seen.wrong.contains(effect.path)) return false;
      any_made = true;
      any_compared = any_compared || is_compared;
      if (!is_compared && known.insert(effect.path).second) waiting.push_back(effect.path);
    }
  }
  return any_compared || !any_made;
}

// A single number in each model, whose difference is the length of the axis.
bool EquivalentConstants::is_one_index(const ValueComparison& constant, const Effect& effect) {
  const auto& metrics = constant.metrics;
  if (effect.indexed == 0 || !metrics.has_value() || metrics->count != 1) return false;
  return std::abs(metrics->worst_a - metrics->worst_b) == static_cast<double>(effect.indexed);
}

bool EquivalentConstants::leads_to_the_same(const ValueComparison& constant, const Seen& seen) const {
  const std::optional<DType> dtype = dtype_from_name(constant.dtype);
  const bool may_index = dtype.has_value() && is_integer(*dtype);
  return std::ranges::all_of(made_with_.at(static_path(constant.path)), [&](const Effect& effect) {
    if (effect.is_of_bodies || (may_index && effect.placing != Placing::none)) return true;
    if (may_index && is_one_index(constant, effect)) return true;
    if (seen.excused.contains(effect.path)) return true;
    return held_.contains(effect.path) && seen.compared.contains(effect.path) && !seen.wrong.contains(effect.path);
  });
}

bool EquivalentConstants::has_no_counterparts(const std::string& constant, const Seen& seen) const {
  return std::ranges::none_of(made_with_.at(constant), [&](const Effect& effect) {
    return seen.compared.contains(effect.path) || (seen.fused.contains(effect.path) && is_made_alike(effect.path));
  });
}

bool EquivalentConstants::may_be_written_so(const ValueComparison& constant, const Seen& seen) const {
  const std::string path = static_path(constant.path);
  const std::optional<DType> dtype = dtype_from_name(constant.dtype);
  if (leads_to_the_same(constant, seen) || has_no_counterparts(path, seen)) return true;
  const auto& metrics = constant.metrics;
  if (!dtype.has_value() || !is_floating(*dtype) || !metrics.has_value()) return false;
  // Computed by different programs: folded by an exporter, or by an optimizer.
  if (metrics->max_abs <= thresholds::kFoldedAlike * metrics->rms_a || metrics->max_rel <= thresholds::kFoldedAlike)
    return true;
  return half_in_b_.contains(static_path(constant.b)) && dtype == DType::float32 && cannot_be_half(*metrics);
}

bool EquivalentConstants::is_made_alike(const std::string& path) const {
  const auto in_a = operators_in_a_.find(path), in_b = operators_in_b_.find(path);
  return in_a != operators_in_a_.end() && in_b != operators_in_b_.end() && in_a->second == in_b->second;
}

void EquivalentConstants::excuse(std::vector<ValueComparison>& values) const {
  Seen seen;
  for (const ValueComparison& value : values) add_seen(value, constants_.contains(static_path(value.path)), seen);
  // From the last to the first: a constant made of constants is excused before those are looked at.
  for (size_t index = values.size(); index-- > 0;) {
    ValueComparison& value = values[index];
    const std::string path = static_path(value.path);
    if (value.verdict != Verdict::diverged || !constants_.contains(path) || value.is_graph_output) continue;
    if (!has_right_effects(value, seen) || !may_be_written_so(value, seen)) continue;
    unmatch(value, kEquivalentConstant);
    seen.wrong.erase(path);
    seen.excused.insert(path);
  }
  split_unmatched(values, [&](const std::string& path, ValueComparison& value) {
    if (const auto found = in_b_.find(static_path(path)); found != in_b_.end()) {
      value.node = found->second.node;
      value.op = found->second.op;
      value.node_reads_it = found->second.node_reads_it;
    }
  });
}

}  // namespace parallax::diff
