// SPDX-License-Identifier: Apache-2.0
// Producers, readers, display names and execution order of one graph.
#include "inspector/model/link.h"

#include <algorithm>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "inspector/model/value_names.h"

namespace parallax {
namespace {

void link_definitions(Graph& graph) {
  for (ValueDef& value : graph.values) {
    value.producer = kNoNode;
    value.output_index = value.input_index = value.initializer_index = value.sparse_initializer_index = -1;
    value.is_graph_output = false;
    value.readers.clear();
  }
  const auto value_at = [&](ValueId id) -> ValueDef& { return graph.values[static_cast<size_t>(id)]; };
  for (size_t i = 0; i < graph.inputs.size(); ++i) value_at(graph.inputs[i]).input_index = static_cast<int32_t>(i);
  for (ValueId id : graph.outputs) value_at(id).is_graph_output = true;
  for (size_t i = 0; i < graph.initializer_values.size(); ++i) {
    value_at(graph.initializer_values[i]).initializer_index = static_cast<int32_t>(i);
  }
  for (size_t i = 0; i < graph.sparse_initializer_values.size(); ++i) {
    value_at(graph.sparse_initializer_values[i]).sparse_initializer_index = static_cast<int32_t>(i);
  }
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto& outputs = graph.nodes[n].outputs;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i] == kNoValue) continue;
      value_at(outputs[i]).producer = static_cast<NodeId>(n);
      value_at(outputs[i]).output_index = static_cast<int32_t>(i);
    }
  }
}

void link_readers(Graph& graph) {
  ValueNames by_name;  // filled at the first body
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    std::vector<ValueId> read = graph.nodes[n].inputs;
    for (const Graph* body : bodies_of(graph.nodes[n])) {
      if (by_name.empty()) by_name = values_by_name(graph);
      for (ValueId outer : body->outer_values) {
        const ValueId found = find_value(by_name, body->values[static_cast<size_t>(outer)].name);
        if (found != kNoValue) read.push_back(found);
      }
    }
    for (ValueId id : read) {
      if (id == kNoValue) continue;
      auto& readers = graph.values[static_cast<size_t>(id)].readers;
      if (readers.empty() || readers.back() != static_cast<NodeId>(n)) readers.push_back(static_cast<NodeId>(n));
    }
  }
}

void name_nodes(Graph& graph) {
  std::unordered_map<std::string, int> repeats;
  std::unordered_set<std::string> taken;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    Node& node = graph.nodes[n];
    const std::string base = node.name.empty() ? node.op_type + "_" + std::to_string(n) : node.name;
    node.display_name = base;
    for (int& count = repeats[base]; !taken.insert(node.display_name).second;) {
      node.display_name = base + "#" + std::to_string(++count + 1);
    }
  }
}

// Kahn's algorithm, always taking the ready node that stands first in the file: that keeps a valid file order as it is.
std::vector<NodeId> topological_order(const Graph& graph) {
  std::vector<int32_t> waits(graph.nodes.size(), 0);  // values not yet computed that a node reads
  for (const ValueDef& value : graph.values) {
    if (value.producer == kNoNode) continue;
    for (NodeId reader : value.readers) ++waits[static_cast<size_t>(reader)];
  }
  std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> ready;
  for (size_t n = 0; n < waits.size(); ++n) {
    if (waits[n] == 0) ready.push(static_cast<NodeId>(n));
  }
  std::vector<NodeId> order;
  order.reserve(graph.nodes.size());
  while (!ready.empty()) {
    const NodeId node = ready.top();
    ready.pop();
    order.push_back(node);
    for (ValueId id : graph.nodes[static_cast<size_t>(node)].outputs) {
      if (id == kNoValue) continue;
      for (NodeId reader : graph.values[static_cast<size_t>(id)].readers) {
        if (--waits[static_cast<size_t>(reader)] == 0) ready.push(reader);
      }
    }
  }
  return order;
}

std::vector<NodeId> missing_from(const std::vector<NodeId>& order, size_t node_count) {
  std::vector<bool> placed(node_count, false);
  for (NodeId node : order) placed[static_cast<size_t>(node)] = true;
  std::vector<NodeId> missing;
  for (size_t n = 0; n < node_count; ++n) {
    if (!placed[n]) missing.push_back(static_cast<NodeId>(n));
  }
  return missing;
}

}  // namespace

void link_graph(Graph& graph) {
  link_definitions(graph);
  link_readers(graph);
  name_nodes(graph);
  graph.order = topological_order(graph);
  for (NodeId node : missing_from(graph.order, graph.nodes.size())) graph.order.push_back(node);
}

std::vector<NodeId> nodes_on_cycles(const Graph& graph) {
  return missing_from(topological_order(graph), graph.nodes.size());
}

std::vector<const Graph*> bodies_of(const Node& node) {
  std::vector<const Graph*> bodies;
  for (const Attribute& attribute : node.attributes) {
    if (const auto* body = std::get_if<std::shared_ptr<Graph>>(&attribute.value)) bodies.push_back(body->get());
    if (const auto* list = std::get_if<std::vector<std::shared_ptr<Graph>>>(&attribute.value)) {
      for (const auto& item : *list) bodies.push_back(item.get());
    }
  }
  return bodies;
}

}  // namespace parallax
