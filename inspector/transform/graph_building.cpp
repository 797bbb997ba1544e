// SPDX-License-Identifier: Apache-2.0
// Collects the names of a model, and makes nodes.
#include "inspector/transform/graph_building.h"

#include <algorithm>

#include "inspector/model/link.h"
#include "inspector/model/make_attribute.h"

namespace parallax::transform {

FreshNames::FreshNames(const Model& model) { add(model); }

void FreshNames::add(const Model& model) {
  add(model.graph);
  for (const auto& function : model.functions) add(function->body);
}

void FreshNames::add(const Graph& graph) {
  for (const ValueDef& value : graph.values) used_.insert(value.name);
  for (const Node& node : graph.nodes) {
    for (const Graph* body : bodies_of(node)) add(*body);
  }
}

std::string FreshNames::take(const std::string& wanted) {
  std::string name = wanted;
  for (int count = 2; !used_.insert(name).second; ++count) name = wanted + "#" + std::to_string(count);
  return name;
}

ValueId add_outer_value(Graph& graph, const std::string& name, const TypeInfo& type) {
  const ValueId known = graph.find_value(name);
  if (known != kNoValue) return known;
  const ValueId id = add_value(graph, name, type);
  graph.values.back().is_outer = true;
  graph.outer_values.push_back(id);
  return id;
}

Node make_node(std::string name, std::string op_type, std::vector<ValueId> inputs, std::vector<ValueId> outputs,
               std::vector<Attribute> attributes) {
  Node node;
  node.name = std::move(name);
  node.display_name = node.name;
  node.op_type = std::move(op_type);
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  node.attributes = std::move(attributes);
  return node;
}

Attribute int64_constant(int64_t value, bool is_scalar) {
  StoredTensor stored;
  stored.tensor = is_scalar ? Tensor::scalar(value) : Tensor::vector(std::span<const int64_t>(&value, 1));
  return make_attribute("value", AttributeType::tensor, std::move(stored));
}

std::shared_ptr<Graph> body_of(const Node& node, std::string_view attribute) {
  const Attribute* found = find_attribute(node, attribute);
  const auto* body = found == nullptr ? nullptr : std::get_if<std::shared_ptr<Graph>>(&found->value);
  return body == nullptr ? nullptr : *body;
}

bool is_standard_operator(const Node& node, std::string_view op_type) {
  return node.op_type == op_type && node.function == nullptr && (node.domain.empty() || node.domain == "ai.onnx");
}

}  // namespace parallax::transform
