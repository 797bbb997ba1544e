// SPDX-License-Identifier: Apache-2.0
// Small models for the tests of executors and rewrites, written as the text form of ONNX.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "inspector/model/io/import.h"

namespace parallax::model_text {

// Null, and a failed test, where the graph does not import.
inline std::shared_ptr<const Model> model_of(const std::string& graph, int opset = 17) {
  const std::string text = "ir_version: " + std::to_string(opset > 17 ? 10 : 8) +
                           " opset_import { version: " + std::to_string(opset) + " } graph { name: \"g\" " + graph +
                           " }";
  auto model = import_model(std::as_bytes(std::span(text)), "", "test");
  EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.error().message);
  return model.ok() ? model.take() : nullptr;
}

// An "input" or "output" of a graph; `shape` is "shape { ... }", or empty where any shape fits.
inline std::string value(const std::string& role, const std::string& name, int elem_type = 1,
                         const std::string& shape = "") {
  return role + " { name: \"" + name + "\" type { tensor_type { elem_type: " + std::to_string(elem_type) + " " + shape +
         " } } } ";
}

// A node; `more` holds its domain and attributes, and may begin with its name, which else is "a_node" for an output
// "a".
inline std::string node(const std::string& op, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs, const std::string& more = "") {
  std::string text = "node { op_type: \"" + op + "\" ";
  if (!more.starts_with("name: ")) text += "name: \"" + outputs.front() + "_node\" ";
  for (const auto& name : inputs) text += "input: \"" + name + "\" ";
  for (const auto& name : outputs) text += "output: \"" + name + "\" ";
  return text + more + " } ";
}

// The shape of a value with these dimensions.
inline std::string dims_text(const std::vector<int64_t>& dims) {
  std::string text = "shape { ";
  for (const int64_t dim : dims) text += "dim { dim_value: " + std::to_string(dim) + " } ";
  return text + "} ";
}

inline std::string integer_attribute(const std::string& name, int64_t number) {
  return "attribute { name: \"" + name + "\" type: INT i: " + std::to_string(number) + " } ";
}
inline std::string integers_attribute(const std::string& name, const std::vector<int64_t>& numbers) {
  std::string text = "attribute { name: \"" + name + "\" type: INTS ";
  for (const int64_t number : numbers) text += "ints: " + std::to_string(number) + " ";
  return text + "} ";
}

}  // namespace parallax::model_text
