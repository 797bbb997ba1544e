// SPDX-License-Identifier: Apache-2.0
// Small graphs for the tests of patterns, written as the text form of ONNX.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/rewrite/rewrite.h"
#include "tests/runtime/model_text.h"

namespace parallax::runtime {

inline std::string tensor_type(const std::vector<int>& dims) {
  std::string text = "type { tensor_type { elem_type: 1 shape { ";
  for (int dim : dims) text += "dim { dim_value: " + std::to_string(dim) + " } ";
  return text + "} } } ";
}
inline std::string graph_input(const std::string& name, const std::vector<int>& dims) {
  return "input { name: \"" + name + "\" " + tensor_type(dims) + "} ";
}
inline std::string graph_output(const std::string& name, const std::vector<int>& dims) {
  return "output { name: \"" + name + "\" " + tensor_type(dims) + "} ";
}
// `more` holds attributes and the domain.
inline std::string graph_node(const std::string& op, const std::vector<std::string>& inputs, const std::string& output,
                              const std::string& more = "") {
  std::string text = "node { op_type: \"" + op + "\" name: \"" + output + "_node\" ";
  for (const auto& name : inputs) text += "input: \"" + name + "\" ";
  return text + "output: \"" + output + "\" " + more + "} ";
}
inline std::string ints(const std::string& name, const std::vector<int>& values) {
  std::string text = "attribute { name: \"" + name + "\" type: INTS ";
  for (int value : values) text += "ints: " + std::to_string(value) + " ";
  return text + "} ";
}
inline std::string weight_of(const std::string& name, const std::vector<int>& dims, const std::vector<double>& values) {
  std::string text = "initializer { name: \"" + name + "\" data_type: 1 ";
  for (int dim : dims) text += "dims: " + std::to_string(dim) + " ";
  for (double value : values) text += "float_data: " + std::to_string(value) + " ";
  return text + "} ";
}

inline std::string index_of(const std::string& name, int value) {
  return "initializer { name: \"" + name + "\" data_type: 7 dims: 1 int64_data: " + std::to_string(value) + " } ";
}

// LayerNormalization by its parts, along rows of 4.
inline std::string layer_norm(const std::string& x, const std::string& y) {
  return graph_node("ReduceMean", {x}, "m", ints("axes", {-1})) + graph_node("Sub", {x, "m"}, "d") +
         graph_node("Pow", {"d", "two"}, "p") + graph_node("ReduceMean", {"p"}, "v", ints("axes", {-1})) +
         graph_node("Add", {"v", "eps"}, "e") + graph_node("Sqrt", {"e"}, "s") + graph_node("Div", {"d", "s"}, "n") +
         graph_node("Mul", {"n", "scale"}, "c") + graph_node("Add", {"c", "bias"}, y) + weight_of("two", {}, {2}) +
         weight_of("eps", {}, {0.001}) + weight_of("scale", {4}, {1, 2, 3, 4}) + weight_of("bias", {4}, {0, 1, 0, 1});
}

inline GraphEdit rewritten(const Model& model, const std::vector<std::string>& patterns,
                           const std::vector<std::string>& pinned = {}) {
  GraphEdit edit = begin_edit(model.graph);
  for (const auto& name : pinned) edit.pinned[static_cast<size_t>(model.graph.find_value(name))] = true;
  for (const auto& name : patterns) find_pattern(name)->apply(edit, {});
  return edit;
}

inline std::vector<std::string> operators_of(const GraphEdit& edit) {
  std::vector<std::string> ops;
  for (const PlannedNode& planned : edit.nodes) ops.push_back(planned.node->op_type);
  return ops;
}

// Every value that no node makes any more is announced, once.
inline void expect_all_accounted(const GraphEdit& edit) {
  std::vector<int> announced(edit.source->values.size(), 0), made(edit.source->values.size(), 0);
  for (const ValueAbsence& absence : edit.absences) ++announced[static_cast<size_t>(absence.value)];
  for (const PlannedNode& planned : edit.nodes) {
    for (ValueId output : planned.node->outputs) {
      if (output != kNoValue) ++made[static_cast<size_t>(output)];
    }
  }
  for (size_t value = 0; value < announced.size(); ++value) {
    if (edit.source->values[value].producer == kNoNode) continue;
    EXPECT_EQ(announced[value] + made[value], 1) << edit.source->values[value].name;
  }
}

}  // namespace parallax::runtime
