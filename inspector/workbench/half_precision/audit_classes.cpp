// SPDX-License-Identifier: Apache-2.0
// Nodes with the value slots they read and give, and their classes set by set.
#include "inspector/workbench/half_precision/audit_classes.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "inspector/exec/value_path.h"
#include "inspector/transform/graph_building.h"
#include "inspector/transform/half_precision/precision_rules.h"

namespace parallax::audit {
namespace {

using transform::precision_rule_of;
using transform::PrecisionRule;

bool is_one_of(const Node& node, std::initializer_list<std::string_view> ops) {
  return node.function == nullptr && std::ranges::find(ops, node.op_type) != ops.end();
}

// The integers that the type counts without a gap: 2048 for float16, 256 for bfloat16.
double largest_count(DType to) { return 2.0 / float_limits(to).epsilon; }

// Follows a value within its graph: all its ways lead to a Softmax, Where or Max.
bool leads_to_mask(const Graph& graph, ValueId id, int depth = 0) {
  constexpr int kMostSteps = 64;
  const ValueDef& value = value_at(graph, id);
  if (value.readers.empty() || value.is_graph_output || depth > kMostSteps) return false;
  return std::ranges::all_of(value.readers, [&](NodeId reader) {
    const Node& node = graph.nodes[static_cast<size_t>(reader)];
    if (is_one_of(node, {"Softmax", "LogSoftmax", "Where", "Max"})) return true;
    const PrecisionRule rule = precision_rule_of(node);
    const bool passes = rule == PrecisionRule::moves || rule == PrecisionRule::casts || is_one_of(node, {"Add", "Min"});
    if (rule == PrecisionRule::reads_shape) return true;
    return passes && !node.outputs.empty() && node.outputs.front() != kNoValue &&
           leads_to_mask(graph, node.outputs.front(), depth + 1);
  });
}

// True where the value goes through copies alone to a Cast to an integer type.
bool becomes_index(const Graph& graph, ValueId id, int depth = 0) {
  constexpr int kMostSteps = 16;
  if (depth > kMostSteps) return false;
  return std::ranges::any_of(value_at(graph, id).readers, [&](NodeId reader) {
    const Node& node = graph.nodes[static_cast<size_t>(reader)];
    if (node.outputs.empty() || node.outputs.front() == kNoValue) return false;
    const ValueDef& made = value_at(graph, node.outputs.front());
    if (is_one_of(node, {"Cast"})) return is_integer(made.type.dtype);
    return precision_rule_of(node) == PrecisionRule::moves && becomes_index(graph, node.outputs.front(), depth + 1);
  });
}

}  // namespace

class AuditGraph::Builder {
 public:
  explicit Builder(AuditGraph& audit) : audit_(audit) {}

  void add(const GraphValues& value_infos) {
    const Graph& graph = *value_infos.graph;
    const ScopeTree scopes = build_scope_tree(graph);
    add_stored(value_infos);
    for (const NodeId id : graph.order) {
      add_node(value_infos, id, scopes);
      for (const GraphValues::Child& child : value_infos.children) {
        if (child.node == id) add(*child.value_infos);
      }
    }
  }

 private:
  static const ValueInfo* slot_of(const GraphValues& value_infos, ValueId id) {
    const auto outer = value_infos.outer.find(id);
    if (outer != value_infos.outer.end()) return outer->second;
    return value_infos.values[static_cast<size_t>(id)];
  }

  static bool is_float32(const Graph& graph, const ValueInfo* slot, ValueId id) {
    const ValueDef& value =
        slot != nullptr && slot->graph != nullptr ? value_at(*slot->graph, slot->value) : value_at(graph, id);
    // The types in bodies of functions are known only at a call: they are taken for float32 until a tensor is seen.
    return value.type.kind == TypeInfo::Kind::unknown ||
           (value.type.kind == TypeInfo::Kind::tensor && value.type.dtype == DType::float32);
  }

  NodeValue value_of(const GraphValues& value_infos, ValueId id) const {
    const ValueInfo* slot = slot_of(value_infos, id);
    return {slot == nullptr ? -1 : slot->id, value_at(*value_infos.graph, id).name,
            leads_to_mask(*value_infos.graph, id)};
  }

  void want(int32_t slot, uint8_t what) {
    if (slot >= 0) audit_.wanted_[static_cast<size_t>(slot)] |= what;
  }

  void add_node(const GraphValues& value_infos, NodeId id, const ScopeTree& scopes) {
    const Graph& graph = *value_infos.graph;
    const Node& node = graph.nodes[static_cast<size_t>(id)];
    AuditNode entry;
    entry.node = &node;
    entry.graph = &graph;
    const PrecisionRule rule = precision_rule_of(node);
    const bool computes = rule != PrecisionRule::casts && rule != PrecisionRule::reads_shape;
    for (size_t index = 0; index < node.inputs.size(); ++index) {
      const ValueId input = node.inputs[index];
      if (input == kNoValue || !is_float32(graph, slot_of(value_infos, input), input)) {
        entry.inputs.emplace_back();  // keeps the position
        continue;
      }
      entry.reads_float = true;
      entry.inputs.push_back(computes ? value_of(value_infos, input) : NodeValue{});
      if (node.function == nullptr) want(entry.inputs.back().slot, wanted_for_sums(node, index));
    }
    for (const ValueId output : node.outputs) {
      if (output == kNoValue || !is_float32(graph, slot_of(value_infos, output), output)) continue;
      entry.outputs.push_back(value_of(value_infos, output));
      entry.counts = entry.counts || is_one_of(node, {"Range", "CumSum"}) || casts_integers(graph, node) ||
                     becomes_index(graph, output);
    }
    if (entry.counts) {
      for (const NodeValue& output : entry.outputs) want(output.slot, kIntegers);
    }
    NodeAudit result;
    result.path = value_infos.scope + escape_name(node.display_name);
    result.op = node.op_type;
    result.source = source_of(node);
    result.scope = scopes.scopes[static_cast<size_t>(scopes.scope_of_node[static_cast<size_t>(id)])].path;
    audit_.nodes_.push_back(std::move(entry));
    audit_.results_.push_back(std::move(result));
  }

  static bool casts_integers(const Graph& graph, const Node& node) {
    if (!is_one_of(node, {"Cast"}) || node.inputs.empty() || node.inputs.front() == kNoValue) return false;
    return is_integer(value_at(graph, node.inputs.front()).type.dtype);
  }

  // Initializers and Constants, whose ranges no run has to take.
  void add_stored(const GraphValues& value_infos) {
    const Graph& graph = *value_infos.graph;
    const auto add = [&](ValueId id, const Tensor& tensor) {
      const ValueInfo* slot = value_infos.values[static_cast<size_t>(id)];
      if (slot == nullptr || tensor.dtype() != DType::float32) return;
      audit_.stored_tensors_.emplace_back(static_cast<size_t>(slot->id), tensor);
    };
    for (size_t index = 0; index < graph.initializers.size(); ++index)
      add(graph.initializer_values[index], graph.initializers[index].tensor);
    for (const Node& node : graph.nodes) {
      const Attribute* value = is_one_of(node, {"Constant"}) ? find_attribute(node, "value") : nullptr;
      const auto* stored = value == nullptr ? nullptr : std::get_if<StoredTensor>(&value->value);
      if (stored != nullptr && !node.outputs.empty()) add(node.outputs.front(), stored->tensor);
    }
  }

  AuditGraph& audit_;
};

Result<AuditGraph> AuditGraph::build(const std::shared_ptr<const Model>& model, DType to) {
  AuditGraph audit;
  audit.model_ = model;
  audit.to_ = to;
  audit.value_infos_ = std::make_unique<ValueTable>(PX_TRY(ValueTable::build(model)));
  audit.wanted_.assign(audit.value_infos_->value_infos().size(), kNothingElse);
  Builder(audit).add(audit.value_infos_->main());
  audit.stored_.resize(audit.wanted_.size());
  for (const auto& [slot, tensor] : audit.stored_tensors_)
    add_tensor(tensor.view(), limits_of(to), audit.wanted_[slot], audit.stored_[slot]);
  audit.figures_.resize(audit.nodes_.size());
  const GraphValues& main = audit.value_infos_->main();
  for (const auto* ids : {&main.graph->inputs, &main.graph->outputs}) {
    for (const ValueId id : *ids) {
      const ValueInfo* slot = main.values[static_cast<size_t>(id)];
      if (slot != nullptr) audit.edges_.push_back(slot->id);
    }
  }
  return audit;
}

namespace {

std::string reaches(std::string_view role, const std::string& name, double value, int64_t set) {
  return fmt::format("{} '{}' reaches {:.2g} at input set {}", role, name, value, set);
}

}  // namespace

void AuditGraph::judge_value(const AuditNode& node, const NodeValue& value, bool is_output, int64_t set,
                             const std::vector<ValueRange>& ranges, Verdict& verdict) const {
  if (value.slot < 0) return;
  const auto slot = static_cast<size_t>(value.slot);
  const ValueRange& range = stored_[slot].is_seen ? stored_[slot] : ranges[slot];
  if (!range.is_seen) return;
  const std::string_view role = is_output ? "output" : "input";
  const auto propose = [&](HalfClass half_class, std::string why) {
    if (half_class >= verdict.half_class) return;
    verdict.half_class = half_class;
    verdict.why = std::move(why);
  };
  const auto largest = static_cast<double>(range.largest);
  const bool is_mask = range.beyond > 0 && range.beyond == range.lowest && (value.is_mask || !is_output);
  const bool ends_mask = !is_output && is_one_of(*node.node, {"Softmax", "LogSoftmax", "Where", "Max"});
  if (range.beyond > 0 && !(is_mask && (value.is_mask || ends_mask)))
    propose(HalfClass::must, reaches(role, value.name, largest, set));
  if (range.beyond > 0)
    propose(HalfClass::mask, fmt::format("{} '{}' holds the lowest float32 as a mask", role, value.name));
  if (range.has_integers && largest > largest_count(to_))
    propose(HalfClass::must, fmt::format("{} '{}' counts to {:.6g} at input set {}, and {} counts to {:.0f} without a "
                                         "gap",
                                         role, value.name, largest, set, name_of(to_), largest_count(to_)));
  if (range.below > 0)
    propose(HalfClass::inexact, fmt::format("{} '{}' has magnitudes down to {:.2g}, and the smallest {} with all its "
                                            "bits is {:.2g}",
                                            role, value.name, static_cast<double>(range.smallest), name_of(to_),
                                            float_limits(to_).min_normal));
  if (range.not_finite > 0)
    propose(HalfClass::infinite, fmt::format("{} '{}' is infinite or NaN in float32 already", role, value.name));
}

AuditGraph::Verdict AuditGraph::judge(const AuditNode& node, int64_t set, const std::vector<ValueRange>& ranges) const {
  Verdict verdict;
  const auto range_of = [&](const NodeValue& value) -> const ValueRange* {
    if (value.slot < 0) return nullptr;
    const auto slot = static_cast<size_t>(value.slot);
    const ValueRange& range = stored_[slot].is_seen ? stored_[slot] : ranges[slot];
    return range.is_seen ? &range : nullptr;
  };
  bool is_float = node.reads_float && node.outputs.empty();
  std::vector<const ValueRange*> inputs;
  for (const NodeValue& value : node.inputs) inputs.push_back(range_of(value));
  for (const NodeValue& value : node.inputs) is_float = is_float || range_of(value) != nullptr;
  for (const NodeValue& value : node.outputs) is_float = is_float || range_of(value) != nullptr;
  if (!is_float) {
    verdict.half_class = HalfClass::not_float;
    return verdict;
  }
  for (const NodeValue& value : node.outputs) judge_value(node, value, true, set, ranges, verdict);
  for (const NodeValue& value : node.inputs) judge_value(node, value, false, set, ranges, verdict);
  if (node.node->function != nullptr) return verdict;
  verdict.accumulated = accumulated_bound(*node.node, *node.graph, inputs,
                                          node.outputs.empty() ? nullptr : range_of(node.outputs.front()));
  const double limit = float_limits(to_).max_finite;
  if (verdict.accumulated.value_or(0) > limit && verdict.half_class > HalfClass::wide_sum) {
    verdict.half_class = HalfClass::wide_sum;
    verdict.why = fmt::format("its running sum may reach {:.2g} at input set {}", *verdict.accumulated, set);
  }
  return verdict;
}

void AuditGraph::add_figures(size_t index, const std::vector<ValueRange>& ranges) {
  NodeAudit& result = results_[index];
  for (const NodeValue& output : nodes_[index].outputs) {
    if (output.slot < 0) continue;
    const auto slot = static_cast<size_t>(output.slot);
    const ValueRange& range = stored_[slot].is_seen ? stored_[slot] : ranges[slot];
    if (!range.is_seen) continue;
    if (range.largest > 0) result.max_abs = std::max(result.max_abs.value_or(0), static_cast<double>(range.largest));
    if (range.smallest > 0) {
      const auto smallest = static_cast<double>(range.smallest);
      result.min_abs = std::min(result.min_abs.value_or(smallest), smallest);
    }
    figures_[index].count += range.count;
    figures_[index].below += range.below;
    if (figures_[index].count > 0)
      result.flushed_share = static_cast<double>(figures_[index].below) / static_cast<double>(figures_[index].count);
  }
}

bool AuditGraph::add_set(int64_t set, std::vector<ValueRange> ranges, bool half_sums) {
  ranges.resize(wanted_.size());
  for (const int32_t edge : edges_) edge_overflows_ = edge_overflows_ || ranges[static_cast<size_t>(edge)].beyond > 0;
  const HalfClass last_kept = half_sums ? HalfClass::wide_sum : HalfClass::must;
  bool keeps_more = false;
  for (size_t index = 0; index < nodes_.size(); ++index) {
    Verdict verdict = judge(nodes_[index], set, ranges);
    NodeAudit& result = results_[index];
    add_figures(index, ranges);
    if (verdict.accumulated.has_value())
      result.accumulated_max = std::max(result.accumulated_max.value_or(0), *verdict.accumulated);
    if (verdict.half_class >= result.half_class && result.first_input >= 0) continue;
    keeps_more =
        keeps_more || (verdict.half_class <= last_kept && (result.first_input < 0 || result.half_class > last_kept));
    result.half_class = verdict.half_class;
    result.why = std::move(verdict.why);
    result.first_input = set;
  }
  return keeps_more;
}

}  // namespace parallax::audit
