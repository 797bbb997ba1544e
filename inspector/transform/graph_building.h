// SPDX-License-Identifier: Apache-2.0
// Small helpers for transforms that add nodes to a copied graph: new values and nodes, and names that nothing uses.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "inspector/model/ir.h"

namespace parallax::transform {

// Every name of a model's values: a new name hides none of them, in whichever body it stands.
class FreshNames {
 public:
  explicit FreshNames(const Model& model);
  void add(const Model& model);  // of several models that become one
  // `wanted`, or `wanted` with "#2", "#3" ... where it is in use.
  std::string take(const std::string& wanted);

 private:
  void add(const Graph& graph);
  std::unordered_set<std::string> used_;
};

inline ValueId add_value(Graph& graph, std::string name, TypeInfo type) {
  ValueDef& value = graph.values.emplace_back();
  value.name = std::move(name);
  value.type = std::move(type);
  return static_cast<ValueId>(graph.values.size()) - 1;
}

// Makes `name` of an enclosing graph known to `graph`, which must not define it.
ValueId add_outer_value(Graph& graph, const std::string& name, const TypeInfo& type);

// A node of the standard domain.
Node make_node(std::string name, std::string op_type, std::vector<ValueId> inputs, std::vector<ValueId> outputs,
               std::vector<Attribute> attributes = {});

// A Constant of int64: a scalar, or a vector of one element.
Attribute int64_constant(int64_t value, bool is_scalar);

// The graph that the attribute holds, or null.
std::shared_ptr<Graph> body_of(const Node& node, std::string_view attribute);

bool is_standard_operator(const Node& node, std::string_view op_type);

}  // namespace parallax::transform
