// SPDX-License-Identifier: Apache-2.0
// Walks the values of a graph once for each border.
#include "gui/viewmodel/inspect/view_border.h"

#include <algorithm>

#include "inspector/exec/value_path.h"

namespace parallax {
namespace {

// The nodes of the group's own graph that it holds; those in bodies are not of that graph.
void mark_members(const GraphItems& items, int32_t group, std::vector<bool>& is_member) {
  for (const int32_t child : items.item(group).children) {
    const GraphItem& item = items.item(child);
    if (item.kind == GraphItem::Kind::node) {
      is_member[static_cast<size_t>(item.node)] = true;
    } else if (item.kind == GraphItem::Kind::group) {
      mark_members(items, child, is_member);
    }
  }
}

Border border_of_group(const GraphItems& items, int32_t index) {
  const Graph& graph = *items.item(index).graph;
  std::vector<bool> is_member(graph.nodes.size(), false);
  mark_members(items, index, is_member);
  const auto is_inside = [&](NodeId node) { return is_member[static_cast<size_t>(node)]; };
  Border border;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const ValueDef& value = graph.values[i];
    const auto id = static_cast<ValueId>(i);
    const bool is_made = value.producer != kNoNode && is_inside(value.producer);
    if (is_made) {
      if (value.is_graph_output || !std::ranges::all_of(value.readers, is_inside))
        border.outputs.push_back(origin_of(items, index, id));
    } else if (std::ranges::any_of(value.readers, is_inside)) {
      const bool is_weight = value.initializer_index >= 0 || value.sparse_initializer_index >= 0;
      (is_weight ? border.weights : border.inputs).push_back(origin_of(items, index, id));
    }
  }
  return border;
}

Border border_of_node(const GraphItems& items, int32_t index) {
  const GraphItem& item = items.item(index);
  const Graph& graph = *item.graph;
  const Node& node = graph.nodes[static_cast<size_t>(item.node)];
  Border border;
  for (const ValueId id : node.inputs) border.inputs.push_back(origin_of(items, index, id));
  for (const ValueId id : node.outputs) border.outputs.push_back(origin_of(items, index, id));
  if (!item.has_children()) return border;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const auto id = static_cast<ValueId>(i);
    if (std::ranges::find(graph.values[i].readers, item.node) == graph.values[i].readers.end()) continue;
    if (std::ranges::find(node.inputs, id) == node.inputs.end()) border.outer.push_back(origin_of(items, index, id));
  }
  return border;
}

Border border_of_body(const GraphItems& items, int32_t index) {
  const Graph& graph = *items.item(index).graph;
  Border border;
  for (const ValueId id : graph.inputs) border.inputs.push_back(origin_of(items, index, id));
  for (const ValueId id : graph.outputs) border.outputs.push_back(origin_of(items, index, id));
  for (const ValueId id : graph.outer_values) border.outer.push_back(origin_of(items, index, id));
  for (const auto* ids : {&graph.initializer_values, &graph.sparse_initializer_values}) {
    for (const ValueId id : *ids) border.weights.push_back(origin_of(items, index, id));
  }
  return border;
}

}  // namespace

Border border_of(const GraphItems& items, int32_t item) {
  switch (items.item(item).kind) {
    case GraphItem::Kind::group:
      return item == 0 ? border_of_body(items, item) : border_of_group(items, item);
    case GraphItem::Kind::body:
      return border_of_body(items, item);
    case GraphItem::Kind::node:
      return border_of_node(items, item);
    default:
      return {};
  }
}

BorderValue origin_of(const GraphItems& items, int32_t item, ValueId value) {
  BorderValue origin{items.item(item).graph, items.item(item).scope, value};
  while (origin.value != kNoValue && value_at(*origin.graph, origin.value).is_outer) {
    while (item > 0 && items.item(item).kind != GraphItem::Kind::body) item = items.item(item).parent;
    if (item <= 0) break;
    item = items.item(item).parent;  // the node that runs the body
    const Graph& enclosing = *items.item(item).graph;
    const ValueId outside = enclosing.find_value(value_at(*origin.graph, origin.value).name);
    if (outside == kNoValue) break;
    origin = {&enclosing, items.item(item).scope, outside};
  }
  return origin;
}

std::string path_of(const BorderValue& value) {
  return value.value == kNoValue ? "" : value.scope + escape_name(value_at(*value.graph, value.value).name);
}

}  // namespace parallax
