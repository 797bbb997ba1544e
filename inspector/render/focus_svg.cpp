// SPDX-License-Identifier: Apache-2.0
// Cuts a graph of the nodes near one, and draws that.
#include "inspector/render/focus_svg.h"

#include <algorithm>
#include <set>
#include <vector>

#include "inspector/exec/value_path.h"
#include "inspector/model/link.h"
#include "inspector/render/graph_svg.h"

namespace parallax {
namespace {

constexpr size_t kMostDrawnNodes = 60;

NodeId node_at(const Graph& graph, std::string_view path) {
  const auto parsed = parse_value_path(path);
  if (!parsed.ok()) return kNoNode;
  for (const Frame& frame : parsed->frames) {  // frames of calls and steps name no node
    if (const NodeId node = graph.find_node(frame.node); node != kNoNode) return node;
  }
  const ValueId id = graph.find_value(parsed->name);
  if (id == kNoValue) return kNoNode;
  const ValueDef& value = value_at(graph, id);
  if (value.producer != kNoNode) return value.producer;
  return value.readers.empty() ? kNoNode : value.readers.front();
}

// The values that a node reads, its bodies included.
std::vector<ValueId> read_by(const Graph& graph, const Node& node) {
  std::vector<ValueId> read = node.inputs;
  for (const Graph* body : bodies_of(node))
    for (const ValueId outer : body->outer_values) read.push_back(graph.find_value(value_at(*body, outer).name));
  std::erase(read, kNoValue);
  return read;
}

// Breadth first, so that the nearest are in it where there are too many.
std::set<NodeId> nodes_near(const Graph& graph, NodeId center, int steps) {
  std::set<NodeId> near{center};
  std::vector<NodeId> rim{center};
  const auto add = [&](NodeId node, std::vector<NodeId>& next) {
    if (node != kNoNode && near.size() < kMostDrawnNodes && near.insert(node).second) next.push_back(node);
  };
  for (int step = 0; step < steps; ++step) {
    std::vector<NodeId> next;
    for (const NodeId id : rim) {
      const Node& node = graph.nodes[static_cast<size_t>(id)];
      for (const ValueId read : read_by(graph, node)) add(value_at(graph, read).producer, next);
      for (const ValueId made : node.outputs) {
        if (made == kNoValue) continue;
        for (const NodeId reader : value_at(graph, made).readers) add(reader, next);
      }
    }
    rim = std::move(next);
  }
  return near;
}

class Cut {
 public:
  explicit Cut(const Graph& graph) : graph_(graph), id_of_(graph.values.size(), kNoValue) {}

  Graph of(const std::set<NodeId>& nodes) {
    for (const NodeId id : nodes) {
      Node node = graph_.nodes[static_cast<size_t>(id)];
      node.name = node.display_name;  // one that has none is called by its index, which is another here
      for (const ValueId read : read_by(graph_, node)) take(read);
      for (std::vector<ValueId>* ids : {&node.inputs, &node.outputs})
        for (ValueId& value : *ids) value = take(value);
      cut_.nodes.push_back(std::move(node));
    }
    for (size_t index = 0; index < id_of_.size(); ++index)
      if (id_of_[index] != kNoValue) add_boundary(graph_.values[index], id_of_[index], nodes);
    link_graph(cut_);
    return std::move(cut_);
  }

 private:
  ValueId take(ValueId id) {
    if (id == kNoValue) return kNoValue;
    ValueId& own = id_of_[static_cast<size_t>(id)];
    if (own == kNoValue) {
      own = static_cast<ValueId>(cut_.values.size());
      const ValueDef& value = value_at(graph_, id);
      ValueDef copy;
      copy.name = value.name;
      copy.type = value.type;
      cut_.values.push_back(std::move(copy));
    }
    return own;
  }

  // Values that nodes outside compute are inputs, values that they read are outputs.
  void add_boundary(const ValueDef& value, ValueId own, const std::set<NodeId>& nodes) {
    const bool is_made_here = nodes.contains(value.producer);
    if (value.initializer_index >= 0) {
      cut_.initializers.push_back(graph_.initializers[static_cast<size_t>(value.initializer_index)]);
      cut_.initializer_values.push_back(own);
    } else if (!is_made_here) {
      cut_.inputs.push_back(own);
    }
    const auto is_outside = [&](NodeId reader) { return !nodes.contains(reader); };
    if (is_made_here && (value.is_graph_output || std::ranges::any_of(value.readers, is_outside)))
      cut_.outputs.push_back(own);
  }

  const Graph& graph_;
  std::vector<ValueId> id_of_;
  Graph cut_;
};

}  // namespace

std::string neighborhood_to_svg(const Graph& graph, std::string_view path, int steps, const Comparison* comparison) {
  const NodeId center = node_at(graph, path);
  if (center == kNoNode) return {};
  return graph_to_svg(Cut(graph).of(nodes_near(graph, center, steps)), comparison);
}

}  // namespace parallax
