// SPDX-License-Identifier: Apache-2.0
// The walk over the value table.
#include "inspector/executors/foreign/replay.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "inspector/dump/tensor_files/declared_type.h"
#include "inspector/model/sparse.h"

namespace parallax::foreign {
namespace {

bool fits(std::string_view attribute, Frame::Kind kind) {
  if (kind == Frame::Kind::call) return attribute.empty();
  if (kind == Frame::Kind::then_branch) return attribute == "then_branch";
  if (kind == Frame::Kind::else_branch) return attribute == "else_branch";
  return kind == Frame::Kind::body && !attribute.empty() && attribute != "then_branch" && attribute != "else_branch";
}

const Node& node_at(const Graph& graph, NodeId id) { return graph.nodes[static_cast<size_t>(id)]; }

// Converts to bfloat16 alone, a type that numpy lacks: any other type is what the program computed with.
Result<Value> typed(Value value, const ValueDef& definition) {
  if (definition.type.dtype != DType::bfloat16 || !value.is_tensor()) return value;
  std::vector<std::string> notes;  // none: it says nothing that the report does not
  return in_declared_type(value, definition.type, definition.name, notes);
}

}  // namespace

NodeLocation location_of(const Graph& graph, NodeId id) {
  const Node& node = node_at(graph, id);
  return {node.display_name, versioned_op_name(node), &graph, id};
}

Result<Value> Replay::computed(ValueId id) const {
  const ValueDef& definition = value_at(*main_.graph, id);
  Value value = PX_TRY(run_.answer.value(definition.name));
  return typed(std::move(value), definition);
}

// An input, or a weight of the model.
Result<Value> Replay::source(ValueId id) const {
  const Graph& graph = *main_.graph;
  const ValueDef& value = value_at(graph, id);
  const auto input = static_cast<size_t>(value.input_index);
  if (value.input_index >= 0 && input < run_.inputs.size() && !run_.inputs[input].is_absent())
    return run_.inputs[input];
  if (value.initializer_index >= 0)
    return Value(graph.initializers[static_cast<size_t>(value.initializer_index)].tensor);
  if (value.sparse_initializer_index < 0) return Value();
  return Value(PX_TRY(to_dense(graph.sparse_initializers[static_cast<size_t>(value.sparse_initializer_index)])));
}

Status Replay::announce_absent() {
  const Graph& graph = *main_.graph;
  for (size_t position = 0; position < std::min(run_.node_count, graph.order.size()); ++position) {
    const Node& node = node_at(graph, graph.order[position]);
    for (const ValueId output : node.outputs) {
      if (output == kNoValue) continue;
      const ValueInfo& value_info = *main_.values[static_cast<size_t>(output)];
      if (run_.levels[static_cast<size_t>(value_info.id)] == CaptureLevel::none) continue;
      if (run_.answer.has(value_info.name)) continue;
      const auto known = run_.answer.absence(std::string(value_info.name), node.display_name);
      const auto otherwise = value_info.follows_from_constants ? Absence::Kind::folded : Absence::Kind::removed;
      PX_TRY(observer_.absent(value_info, known.value_or(Absence{otherwise, ""})));
    }
  }
  return {};
}

Status Replay::show() {
  if (observer_.wants_node_times()) PX_TRY(note_times());
  PX_TRY(show_sources());
  const Graph& graph = *main_.graph;
  for (size_t position = 0; position < std::min(run_.node_count, graph.order.size()); ++position)
    PX_TRY(show_node(graph.order[position]));
  return {};
}

Status Replay::show_sources() {
  const Graph& graph = *main_.graph;
  const auto show_all = [&](const std::vector<ValueId>& ids, bool is_input) -> Status {
    for (const ValueId id : ids) {
      if (is_input == (value_at(graph, id).input_index < 0)) continue;  // an input's default is the input
      const Value value = PX_TRY(source(id));
      PX_TRY(observe(*main_.values[static_cast<size_t>(id)], value));
    }
    return {};
  };
  PX_TRY(show_all(graph.inputs, true));
  PX_TRY(show_all(graph.initializer_values, false));
  return show_all(graph.sparse_initializer_values, false);
}

Status Replay::observe(const ValueInfo& value_info, const Value& value) {
  if (value.is_absent() || run_.levels[static_cast<size_t>(value_info.id)] == CaptureLevel::none) return {};
  return observer_.observe({value_info, frames_, value, nullptr, nullptr});
}

Status Replay::show_node(NodeId id) {
  PX_TRY(show_bodies(id));
  for (const ValueId output : node_at(*main_.graph, id).outputs) {
    if (output == kNoValue) continue;
    const ValueInfo& value_info = *main_.values[static_cast<size_t>(output)];
    if (run_.levels[static_cast<size_t>(value_info.id)] == CaptureLevel::none) continue;
    const Value value = PX_TRY(computed(output));
    PX_TRY(observe(value_info, value));
  }
  return report_times(id);
}

// ---- Bodies ----

const GraphValues* Replay::graph_within(const GraphValues& around, const Frame& frame, NodeId& node) const {
  for (const GraphValues::Child& child : around.children) {
    if (!fits(child.attribute, frame.kind) || node_at(*around.graph, child.node).display_name != frame.node) continue;
    node = child.node;
    return child.value_infos.get();
  }
  return nullptr;
}

Status Replay::leave(size_t depth) {
  while (entered_.size() > depth) {
    const Entered left = std::move(entered_.back());
    entered_.pop_back();
    frames_.pop();
    PX_TRY(observer_.leave_body(left.node, left.frame));
  }
  return {};
}

// Enters the frames of `path` after the first `common` ones, as far as the model has them.
Status Replay::enter(const ValuePath& path, size_t common) {
  for (size_t depth = common; depth < path.frames.size(); ++depth) {
    const GraphValues& around = entered_.empty() ? main_ : *entered_.back().graph;
    NodeId node = kNoNode;
    const GraphValues* graph = graph_within(around, path.frames[depth], node);
    if (graph == nullptr) return {};
    entered_.push_back({location_of(*around.graph, node), path.frames[depth], graph});
    PX_TRY(observer_.enter_body(entered_.back().node, path.frames[depth]));
    frames_.push(path.frames[depth]);
  }
  return {};
}

Status Replay::show_bodies(NodeId id) {
  for (const Answer::BodyValue& value : run_.answer.bodies_of(node_at(*main_.graph, id).display_name)) {
    const auto& frames = value.path.frames;
    size_t common = 0;
    while (common < std::min(entered_.size(), frames.size()) && entered_[common].frame == frames[common]) ++common;
    PX_TRY(leave(common));
    PX_TRY(enter(value.path, common));
    if (entered_.size() != frames.size()) continue;  // the model has no such body
    const GraphValues& graph = *entered_.back().graph;
    const ValueId found = graph.find_value(value.path.name);
    const ValueInfo* value_info = found == kNoValue ? nullptr : graph.values[static_cast<size_t>(found)];
    if (value_info == nullptr || run_.levels[static_cast<size_t>(value_info->id)] == CaptureLevel::none) continue;
    Value shown = PX_TRY(run_.answer.load(value));
    shown = PX_TRY(typed(std::move(shown), value_at(*graph.graph, found)));
    PX_TRY(observe(*value_info, shown));
  }
  return leave(0);
}

// ---- Times ----

// Finds the node of the model that each time belongs to: of its own name, or the last that an executed node stands for.
Status Replay::note_times() {
  const Graph& graph = *main_.graph;
  std::unordered_map<std::string_view, size_t> position;
  for (size_t at = 0; at < graph.order.size(); ++at) position.emplace(node_at(graph, graph.order[at]).display_name, at);
  for (const auto& [name, milliseconds] : run_.node_milliseconds) {
    std::vector<size_t> stands_for;
    for (const auto& [executed, source] : run_.answer.provenance()) {
      const auto found = position.find(source);
      if (executed == name && found != position.end()) stands_for.push_back(found->second);
    }
    const auto own = position.find(name);
    if (stands_for.empty() && own != position.end()) stands_for.push_back(own->second);
    if (stands_for.empty()) continue;
    std::ranges::sort(stands_for);
    Timed timed{name, {}, milliseconds};
    if (stands_for.size() > 1) {
      for (const size_t at : stands_for) timed.sources.push_back(graph.order[at]);
    }
    times_.emplace(graph.order[stands_for.back()], std::move(timed));
  }
  return {};
}

Status Replay::report_times(NodeId id) {
  const auto [first, last] = times_.equal_range(id);
  for (auto at = first; at != last; ++at) {
    const Timed& timed = at->second;
    NodeLocation location = location_of(*main_.graph, id);
    if (!timed.sources.empty()) {
      location.node = timed.name;
      location.sources = timed.sources;
    }
    PX_TRY(observer_.node_done(location, timed.milliseconds));
  }
  return {};
}

// ---- Outputs ----

Result<std::vector<Value>> Replay::outputs() const {
  const Graph& graph = *main_.graph;
  std::vector<Value> outputs;
  for (const ValueId id : graph.outputs) {
    const ValueDef& value = value_at(graph, id);
    outputs.push_back(value.producer == kNoNode ? PX_TRY(source(id)) : PX_TRY(computed(id)));
    if (outputs.back().is_absent() && value.producer != kNoNode)
      return execution_error(fmt::format(
          "its answer lacks '{}', an output of the graph; it must hold all outputs by their names", value.name));
  }
  return outputs;
}

}  // namespace parallax::foreign
