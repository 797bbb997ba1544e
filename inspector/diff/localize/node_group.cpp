// SPDX-License-Identifier: Apache-2.0
// Collecting a group from a node backwards, and running it with something changed.
#include "inspector/diff/localize/node_group.h"

#include <algorithm>

#include "inspector/diff/localize/node_judge.h"
#include "inspector/diff/tolerance/thresholds.h"

namespace parallax::diff {
namespace {

// A result between the nodes of one graph that nobody captured; what an enclosing graph computed is taken as given.
bool is_inner(const Graph& graph, ValueId id, const FoundValue& found) {
  return !found.computed_by.empty() && value_at(graph, id).producer != kNoNode;
}

void keep_outputs(const Node& node, const std::vector<Value>& made, std::unordered_map<ValueId, Value>& values) {
  for (size_t output = 0; output < std::min(made.size(), node.outputs.size()); ++output) {
    if (node.outputs[output] != kNoValue) values[node.outputs[output]] = made[output];
  }
}

}  // namespace

Result<std::shared_ptr<NodeGroup>> NodeGroup::around(const CapturedSide& side, const NodeInstance& root,
                                                     const CapturedSide::Computed& computed) {
  const bool is_single =
      std::ranges::all_of(computed.inputs, [](const FoundValue& input) { return input.computed_by.empty(); });
  if (is_single) return std::shared_ptr<NodeGroup>();
  std::shared_ptr<NodeGroup> group(new NodeGroup(side, root));
  PX_TRY(group->collect(root, computed));
  return group->members_.size() > 1 ? std::move(group) : std::shared_ptr<NodeGroup>();
}

Status NodeGroup::collect(const NodeInstance& root, const CapturedSide::Computed& computed) {
  std::unordered_map<NodeId, Member> found;
  const Graph& graph = *root.location->graph;
  for (size_t read = 0; read < computed.reads.size(); ++read) {
    if (!is_inner(graph, computed.reads[read], computed.inputs[read])) continue;
    PX_TRY(add(value_at(graph, computed.reads[read]).producer, found));
    if (found.size() >= thresholds::kLargestGroup) return {};
  }
  for (const auto& [node, member] : found) {
    const bool is_known = std::ranges::none_of(member.inputs, [](const FoundValue& i) { return i.value.is_absent(); });
    if (!is_known) return {};
  }
  for (const NodeId node : graph.order) {
    if (const auto member = found.find(node); member != found.end()) members_.push_back(std::move(member->second));
  }
  members_.push_back({root, computed.reads, computed.inputs});
  replays_.resize(members_.size());
  return {};
}

Status NodeGroup::add(NodeId start, std::unordered_map<NodeId, Member>& found) const {
  const Graph& graph = *root_.location->graph;
  std::vector<NodeId> waiting{start};
  while (!waiting.empty() && found.size() < thresholds::kLargestGroup) {
    const NodeId node = waiting.back();
    waiting.pop_back();
    if (found.contains(node)) continue;
    Member member{{root_.location, node, root_.prefix}, {}, {}};
    CapturedSide::Computed gathered = PX_TRY(side_.gather_neighbors(member.instance));
    member.reads = std::move(gathered.reads);
    member.inputs = std::move(gathered.inputs);
    for (size_t read = 0; read < member.reads.size(); ++read) {
      if (is_inner(graph, member.reads[read], member.inputs[read]))
        waiting.push_back(value_at(graph, member.reads[read]).producer);
    }
    found.emplace(node, std::move(member));
  }
  return {};
}

Result<std::vector<Value>> NodeGroup::run_member(size_t index, const Values& changed) const {
  const Member& member = members_[index];
  std::vector<Value> values;
  for (size_t read = 0; read < member.reads.size(); ++read) {
    const auto other = changed.find(member.reads[read]);
    values.push_back(other != changed.end() ? other->second : member.inputs[read].value);
  }
  if (replays_[index] == nullptr) replays_[index] = side_.make_replay(member.instance, member.instance.definition());
  return replays_[index]->run(values);
}

Result<std::vector<Value>> NodeGroup::run_changed(size_t first, Values changed, std::vector<Value> outputs) const {
  for (size_t index = first; index < members_.size(); ++index) {
    const Member& member = members_[index];
    const bool is_affected = std::ranges::any_of(member.reads, [&](ValueId id) { return changed.contains(id); });
    if (!is_affected) continue;
    outputs = PX_TRY(run_member(index, changed));
    keep_outputs(member.instance.definition(), outputs, changed);
  }
  return outputs;
}

Result<std::vector<Value>> NodeGroup::run_from(size_t index, std::vector<Value> outputs) const {
  Values changed;
  keep_outputs(members_[index].instance.definition(), outputs, changed);
  return run_changed(index + 1, std::move(changed), std::move(outputs));
}

Result<std::vector<Value>> NodeGroup::run_with(ValueId id, const Value& value) const {
  return run_changed(0, {{id, value}}, {});
}

// The unit in the last place of a value's declared type, in those of float32.
double NodeGroup::units_of(ValueId id) const {
  const TypeInfo& type = value_at(*root_.location->graph, id).type;
  if (type.kind != TypeInfo::Kind::tensor || !is_floating(type.dtype)) return 1;
  return std::max(1.0, float_limits(type.dtype).epsilon / float_limits(DType::float32).epsilon);
}

Result<std::vector<Value>> NodeGroup::run_nudged(uint32_t seed, double ulps) const {
  Values changed;
  std::vector<Value> outputs;
  const auto nudge = [&](ValueId id, const Value& value, double units) {
    changed[id] = nudged_value(value, seed + static_cast<uint32_t>(id) * 0x632BE5ABU, units);
  };
  for (size_t index = 0; index < members_.size(); ++index) {
    const Member& member = members_[index];
    for (size_t read = 0; read < member.reads.size(); ++read) {
      if (!changed.contains(member.reads[read])) nudge(member.reads[read], member.inputs[read].value, ulps);
    }
    outputs = PX_TRY(run_member(index, changed));
    if (index + 1 == members_.size()) break;
    const Node& node = member.instance.definition();
    for (size_t output = 0; output < node.outputs.size(); ++output) {
      const ValueId id = node.outputs[output];
      if (id != kNoValue) nudge(id, outputs[output], ulps * units_of(id) / 2);
    }
  }
  return outputs;
}

}  // namespace parallax::diff
