// SPDX-License-Identifier: Apache-2.0
// Every name is defined once and before it is read; what is declared of an initializer is true.
#include <algorithm>
#include <unordered_map>

#include "inspector/base/shown_text.h"
#include "inspector/model/io/check_report.h"
#include "inspector/model/link.h"

namespace parallax {
namespace {

std::string node_text(const Graph& graph, NodeId id) {
  return "node '" + graph.nodes[static_cast<size_t>(id)].display_name + "'";
}

// The source of a value, in words; empty for one that nothing defines.
std::string source_of(const Graph& graph, const ValueDef& value) {
  if (value.producer != kNoNode) return node_text(graph, value.producer);
  if (value.input_index >= 0) return "an input";
  if (value.initializer_index >= 0 || value.sparse_initializer_index >= 0) return "an initializer";
  return value.is_outer ? "an enclosing graph" : "";
}

void check_encoding(const CheckedGraph& checked, FoundProblems& report) {
  for (const ValueDef& value : checked.graph.values) {
    if (!is_utf8(value.name)) report.at_value(checked, value.name, "has a name that is not valid UTF-8");
  }
  for (const Node& node : checked.graph.nodes) {
    if (!is_utf8(node.name) || !is_utf8(node.op_type) || !is_utf8(node.domain)) {
      report.at_node(checked, node, "has a name, operator or domain that is not valid UTF-8");
    }
  }
}

void check_duplicates(const CheckedGraph& checked, FoundProblems& report) {
  std::unordered_map<std::string_view, const ValueDef*> first;
  for (const ValueDef& value : checked.graph.values) {
    const auto [known, is_new] = first.emplace(value.name, &value);
    const std::string source = source_of(checked.graph, value);
    if (value.name.empty()) {
      report.at_graph(checked, (source.empty() ? "a graph output" : source) + " has an empty name");
    } else if (!is_new) {
      const std::string before = source_of(checked.graph, *known->second);
      report.at_value(checked, value.name,
                      before == "an initializer" && before == source
                          ? "is defined twice, by two initializers"
                          : "is defined twice, by " + before + " and by " + source);
    }
  }
  for (size_t i = 0; i < checked.graph.inputs.size(); ++i) {
    const ValueDef& value = checked.graph.values[static_cast<size_t>(checked.graph.inputs[i])];
    if (value.producer != kNoNode) report.at_value(checked, value.name, "is an input and computed by a node");
  }
}

const Tensor* constant_of(const Graph& graph, const ValueDef& value) {
  if (value.initializer_index < 0 || value.input_index >= 0) return nullptr;
  const Tensor& tensor = graph.initializers[static_cast<size_t>(value.initializer_index)].tensor;
  return tensor.dtype() == DType::string ? nullptr : &tensor;
}

// Two initializers of the same numbers: whichever a reader takes, it reads the same.
bool are_one_constant(const Graph& outer, const ValueDef& hidden, const Graph& inner, const ValueDef& value) {
  const Tensor* const a = constant_of(outer, hidden);
  const Tensor* const b = constant_of(inner, value);
  if (a == nullptr || b == nullptr || a->dtype() != b->dtype() || !(a->shape() == b->shape())) return false;
  return std::ranges::equal(a->view().bytes(), b->view().bytes());
}

// The first value of that name that a body of node `owner` can read, else null: the outputs of the node itself and of
// later ones do not exist yet.
const ValueDef* value_seen_by(const Node& owner, const CheckedGraph& outer, std::string_view name) {
  const ValueDef* first = nullptr;
  for (auto [named, end] = outer.names.equal_range(name); named != end; ++named) {
    const ValueDef* const value = named->second;
    const bool exists = value->producer == kNoNode || &outer.graph.nodes[static_cast<size_t>(value->producer)] < &owner;
    if (exists && (first == nullptr || value < first)) first = value;
  }
  return first;
}

// A body must not define a name that it could read from outside. A body's formal inputs may: exporters write that; and
// so may the copies of a constant that optimizers put into each branch.
void check_shadowing(const CheckedGraph& checked, FoundProblems& report) {
  const CheckedGraph* inner = &checked;
  for (const CheckedGraph* outer = checked.enclosing; outer != nullptr; inner = outer, outer = outer->enclosing) {
    for (const ValueDef& value : checked.graph.values) {
      if (value.is_outer || value.input_index >= 0) continue;
      const ValueDef* const hidden = value_seen_by(*inner->owner, *outer, value.name);
      if (hidden == nullptr || source_of(outer->graph, *hidden).empty()) continue;
      if (are_one_constant(outer->graph, *hidden, checked.graph, value)) continue;
      report.at_value(checked, value.name,
                      "hides the value of that name that the enclosing graph" + outer->location + " gets from " +
                          source_of(outer->graph, *hidden) + ": one of them needs another name");
    }
  }
}

void check_sources(const CheckedGraph& checked, FoundProblems& report) {
  const Graph& graph = checked.graph;
  for (const ValueDef& value : graph.values) {
    if (value.name.empty() || !source_of(graph, value).empty()) continue;
    for (NodeId reader : value.readers) {
      report.at_node(checked, graph.nodes[static_cast<size_t>(reader)],
                     "reads '" + value.name + "', which no input, initializer or node defines");
    }
    if (value.is_graph_output) report.at_value(checked, value.name, "is a graph output, but nothing computes it");
  }
}

// One cycle among `candidates`, found by walking from producer to producer until a node comes up again.
std::vector<NodeId> find_cycle(const Graph& graph, const std::vector<NodeId>& candidates) {
  std::unordered_map<NodeId, std::vector<NodeId>> reads;
  for (const ValueDef& value : graph.values) {
    if (!std::ranges::binary_search(candidates, value.producer)) continue;
    for (NodeId reader : value.readers) reads[reader].push_back(value.producer);
  }
  std::vector<NodeId> path{candidates.front()};
  while (true) {
    const NodeId before = reads.at(path.back()).front();  // every candidate waits for another one
    const auto seen = std::ranges::find(path, before);
    if (seen != path.end()) return {std::make_reverse_iterator(path.end()), std::make_reverse_iterator(seen)};
    path.push_back(before);
  }
}

void check_cycles(const CheckedGraph& checked, FoundProblems& report) {
  const auto candidates = nodes_on_cycles(checked.graph);
  if (candidates.empty()) return;
  std::vector<std::string> names;
  for (NodeId id : find_cycle(checked.graph, candidates)) {
    names.push_back(checked.graph.nodes[static_cast<size_t>(id)].display_name);
  }
  const auto& first = *std::ranges::find(checked.graph.nodes, names.front(), &Node::display_name);
  report.at_node(checked, first,
                 names.size() == 1 ? "reads its own output" : "is on a cycle of nodes: " + quoted_list(names));
}

// A declared type against the tensor that is stored.
void check_initializer(const CheckedGraph& checked, const ValueDef& value, const Tensor& tensor,
                       FoundProblems& report) {
  const TypeInfo& declared = value.type;
  const bool is_tensor = declared.kind == TypeInfo::Kind::tensor || declared.kind == TypeInfo::Kind::unknown;
  bool fits = is_tensor && (declared.dtype == DType::undefined || declared.dtype == tensor.dtype());
  if (fits && declared.dims) {
    fits = std::ranges::equal(*declared.dims, tensor.shape().dims(),
                              [](const Dim& dim, int64_t size) { return !dim.is_known() || dim.value == size; });
  }
  if (fits) return;
  report.at_value(checked, value.name,
                  "is declared as " + to_string(declared) + ", but its initializer is " +
                      std::string(name_of(tensor.dtype())) + tensor.shape().to_string());
}

void check_types(const CheckedGraph& checked, FoundProblems& report) {
  const Graph& graph = checked.graph;
  for (size_t i = 0; i < graph.initializers.size(); ++i) {
    const ValueDef& value = graph.values[static_cast<size_t>(graph.initializer_values[i])];
    const StoredTensor& stored = graph.initializers[i];
    if (stored.absence.empty()) {
      check_initializer(checked, value, stored.tensor, report);
    } else if (stored.absence != kLeftOutOfDump) {
      report.at_value(checked, value.name, stored.absence, stored.absence_code);
    }
  }
  if (checked.enclosing != nullptr || checked.function != nullptr) return;  // bodies take their types from the call
  for (ValueId id : graph.inputs) {
    const ValueDef& value = graph.values[static_cast<size_t>(id)];
    const bool needs_dtype =
        value.type.kind == TypeInfo::Kind::tensor || value.type.kind == TypeInfo::Kind::sparse_tensor;
    if (value.type.kind == TypeInfo::Kind::unknown) report.at_value(checked, value.name, "is an input without a type");
    if (needs_dtype && value.type.dtype == DType::undefined) {
      report.at_value(checked, value.name, "is an input without a known element type");
    }
  }
}

}  // namespace

void check_names(const CheckedGraph& checked, FoundProblems& report) {
  check_encoding(checked, report);
  check_duplicates(checked, report);
  check_shadowing(checked, report);
  check_sources(checked, report);
  check_cycles(checked, report);
  check_types(checked, report);
}

}  // namespace parallax
