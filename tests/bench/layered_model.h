// SPDX-License-Identifier: Apache-2.0
// A chain of equal layers, whose values and weights are of 1 MiB: what the memory benchmarks compare and blame.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "inspector/model/ir.h"

namespace parallax {

constexpr int64_t kWidth = 512;
constexpr int64_t kRows = 512;

inline ValueId add_value(Graph& graph, const std::string& name) {
  ValueDef value;
  value.name = name;
  graph.values.push_back(value);
  return static_cast<ValueId>(graph.values.size()) - 1;
}

inline ValueId add_node(Graph& graph, const std::string& op, std::vector<ValueId> inputs, const std::string& name) {
  Node node;
  node.op_type = op;
  node.name = name + "_node";
  node.inputs = std::move(inputs);
  node.outputs = {add_value(graph, name)};
  graph.nodes.push_back(node);
  return node.outputs[0];
}

// layers x (MatMul, Tanh, Add with the layer's input): the residual chain keeps values alive over a layer. The weight
// of the first layer is times `first`.
inline Model layered_model(int layers, float first = 1) {
  Model model;
  model.ir_version = 8;
  model.opset_imports = {{"", 17}};
  Graph& graph = model.graph;
  graph.name = "layers";
  ValueId current = add_value(graph, "x");
  TypeInfo type = TypeInfo::tensor(DType::float32);
  type.dims = {Dim{kRows, {}}, Dim{kWidth, {}}};
  graph.values[0].type = type;
  graph.inputs = {current};
  for (int layer = 0; layer < layers; ++layer) {
    StoredTensor weight;
    weight.name = fmt::format("w{}", layer);
    weight.tensor = Tensor::zeros(DType::float32, Shape{kWidth, kWidth}).take();
    auto elements = weight.tensor.mutable_as<float>();
    for (size_t index = 0; index < elements.size(); ++index) {
      const float element = static_cast<float>((index * 7919 + static_cast<size_t>(layer)) % 1000) / 20000.0F - 0.025F;
      elements[index] = layer == 0 ? first * element : element;
    }
    graph.initializers.push_back(weight);
    graph.initializer_values.push_back(add_value(graph, weight.name));
    const ValueId weight_id = graph.initializer_values.back();
    const ValueId product = add_node(graph, "MatMul", {current, weight_id}, fmt::format("product_{}", layer));
    const ValueId bent = add_node(graph, "Tanh", {product}, fmt::format("bent_{}", layer));
    current = add_node(graph, "Add", {bent, current}, fmt::format("sum_{}", layer));
  }
  graph.values[static_cast<size_t>(current)].type = type;
  graph.outputs = {current};
  return model;
}

}  // namespace parallax
