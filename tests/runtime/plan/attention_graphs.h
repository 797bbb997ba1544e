// SPDX-License-Identifier: Apache-2.0
// Attention as exporters write it, as graphs in the text form of ONNX, for the tests of the node that it becomes.
#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>

#include "inspector/tensor/elements.h"
#include "tests/runtime/model_text.h"

namespace parallax::attention_graphs {

inline std::string value(const std::string& role, const std::string& name, const std::vector<int64_t>& dims,
                         int type = 1) {
  std::string shape;
  for (int64_t dim : dims) shape += fmt::format("dim {{ dim_value: {} }} ", dim);
  return fmt::format("{} {{ name: \"{}\" type {{ tensor_type {{ elem_type: {} shape {{ {} }} }} }} }} ", role, name,
                     type, shape);
}
inline std::string node(const std::string& op, const std::vector<std::string>& inputs, const std::string& output,
                        const std::string& rest = "") {
  std::string text = fmt::format("node {{ op_type: \"{}\" name: \"{}_node\" ", op, output);
  for (const auto& name : inputs) text += fmt::format("input: \"{}\" ", name);
  return text + fmt::format("output: \"{}\" {} }} ", output, rest);
}
inline std::string integer(const std::string& name, int64_t number) {
  return fmt::format("attribute {{ name: \"{}\" type: INT i: {} }} ", name, number);
}
inline std::string order(const std::vector<int64_t>& axes) {
  std::string text = "attribute { name: \"perm\" type: INTS ";
  for (int64_t axis : axes) text += fmt::format("ints: {} ", axis);
  return text + "} ";
}
inline std::string integers(const std::string& name, const std::vector<int64_t>& numbers) {
  std::string text = fmt::format("initializer {{ name: \"{}\" data_type: 7 dims: {} ", name, numbers.size());
  for (int64_t number : numbers) text += fmt::format("int64_data: {} ", number);
  return text + "} ";
}
inline std::string number(const std::string& name, const std::string& text) {
  return fmt::format("initializer {{ name: \"{}\" data_type: 1 float_data: {} }} ", name, text);
}

// A graph, the shapes of its inputs, and how many values of it attention makes needless.
struct Graph {
  std::string text;
  std::vector<std::vector<int64_t>> inputs;
  int fused = 0;
};

inline std::string softmax(const std::string& x, const std::string& y) {
  return node("Softmax", {x}, y, integer("axis", -1));
}

// [batch, length, heads, size] transposed to heads first, keys at once to [.., size, keys]; the product divided; the
// result transposed back: BERT.
inline Graph bert(int64_t batch, int64_t length, int64_t heads, int64_t size) {
  const std::vector<int64_t> dims{batch, length, heads, size};
  return {node("Transpose", {"q"}, "qt", order({0, 2, 1, 3})) + node("Transpose", {"k"}, "kt", order({0, 2, 3, 1})) +
              node("Transpose", {"v"}, "vt", order({0, 2, 1, 3})) + node("MatMul", {"qt", "kt"}, "s") +
              node("Div", {"s", "root"}, "d") + node("Add", {"d", "mask"}, "m") + softmax("m", "p") +
              node("MatMul", {"p", "vt"}, "o") + node("Transpose", {"o"}, "y", order({0, 2, 1, 3})) +
              number("root", "4.5") + value("input", "q", dims) + value("input", "k", dims) +
              value("input", "v", dims) + value("input", "mask", {batch, 1, 1, length}) + value("output", "y", dims),
          {dims, dims, dims, {batch, 1, 1, length}},
          8};
}

// Few heads of keys and values repeated, the scale on either side of the product, keys transposed in three dimensions,
// rows without a number given nothing: PyTorch's scaled_dot_product_attention. The first queries see no key at all.
inline Graph grouped(int64_t batch, int64_t queries, int64_t keys, int64_t heads, int64_t groups, int64_t size) {
  const std::vector<int64_t> few{batch, heads, keys, size}, many{batch, heads * groups, keys, size};
  const std::vector<int64_t> q{batch, heads * groups, queries, size}, mask{1, 1, queries, keys};
  std::string graph;
  for (const std::string x : {"k", "v"}) {
    graph += node("Unsqueeze", {x, "two"}, x + "1") + node("Expand", {x + "1", "wide"}, x + "2") +
             node("Reshape", {x + "2", "many"}, x + "3");
  }
  graph += node("Shape", {"k3"}, "shape") + node("Slice", {"shape", "minus_two", "minus_one"}, "length") +
           node("Slice", {"shape", "minus_one", "end"}, "size") +
           node("Slice", {"shape", "zero", "minus_two"}, "front") +
           node("Concat", {"minus_one", "length", "size"}, "flat", integer("axis", 0)) +
           node("Concat", {"front", "size", "length"}, "transposed", integer("axis", 0)) +
           node("Reshape", {"k3", "flat"}, "k4") + node("Transpose", {"k4"}, "k5", order({0, 2, 1})) +
           node("Reshape", {"k5", "transposed"}, "k6") + node("Mul", {"q", "root"}, "qs") +
           node("Mul", {"k6", "root"}, "ks") + node("MatMul", {"qs", "ks"}, "s") + node("Add", {"s", "mask"}, "m") +
           softmax("m", "p") + node("IsNaN", {"p"}, "lost") + node("Where", {"lost", "nothing", "p"}, "w") +
           node("MatMul", {"w", "v3"}, "y");
  graph += integers("zero", {0}) + integers("two", {2}) + integers("minus_one", {-1}) + integers("minus_two", {-2}) +
           integers("end", {INT64_MAX}) + integers("wide", {batch, heads, groups, keys, size}) +
           integers("many", many) + number("root", "0.53") + number("nothing", "0");
  graph += value("input", "q", q) + value("input", "k", few) + value("input", "v", few) + value("input", "mask", mask) +
           value("output", "y", q);
  graph += value("value_info", "k3", many) + value("value_info", "k1", {batch, heads, 1, keys, size}) +
           value("value_info", "v1", {batch, heads, 1, keys, size}) +
           value("value_info", "k2", {batch, heads, groups, keys, size}) +
           value("value_info", "v2", {batch, heads, groups, keys, size}) + value("value_info", "v3", many) +
           value("value_info", "k6", {batch, heads * groups, size, keys});
  return {graph, {q, few, few, mask}, 22};
}

// Hidden by a condition, a bias added first: T5 and GPT-2.
inline Graph hidden(int64_t batch, int64_t queries, int64_t keys, int64_t heads, int64_t size) {
  const std::vector<int64_t> q{batch, heads, queries, size}, k{batch, heads, keys, size};
  const std::vector<int64_t> bias{heads, queries, keys}, mask{batch, 1, queries, keys};
  return {node("Transpose", {"k"}, "kt", order({0, 1, 3, 2})) + node("MatMul", {"q", "kt"}, "s") +
              node("Mul", {"half", "s"}, "h") + node("Add", {"bias", "h"}, "b") + node("Add", {"b", "again"}, "c") +
              node("Greater", {"mask", "nothing"}, "sees") + node("Where", {"sees", "c", "least"}, "m") +
              softmax("m", "p") + node("MatMul", {"p", "v"}, "y") + number("half", "0.5") + number("nothing", "0") +
              number("least", "-3e38") + value("input", "q", q) + value("input", "k", k) + value("input", "v", k) +
              value("input", "bias", bias) + value("input", "again", {queries, 1}) + value("input", "mask", mask) +
              value("output", "y", q),
          {q, k, k, bias, {queries, 1}, mask},
          7};
}

inline std::shared_ptr<const Model> model_of(const Graph& graph) { return model_text::model_of(graph.text); }

// Numbers between -2 and 2; a mask of `grouped` hides all keys of its first row and some of the others.
inline std::vector<Value> inputs_of(const Graph& graph) {
  std::vector<Value> inputs;
  for (const auto& dims : graph.inputs) {
    Tensor tensor = Tensor::allocate(DType::float32, Shape(dims)).take();
    uint32_t seed = static_cast<uint32_t>(inputs.size()) + 1;
    int64_t index = 0;
    const bool hides = graph.fused == 22 && inputs.size() == 3;
    for (float& element : tensor.mutable_as<float>()) {
      seed = seed * 1664525U + 1013904223U;
      element = static_cast<float>(seed >> 8) / 4194304.0F - 2.0F;
      if (hides) element = index < dims.back() || element < -1 ? -std::numeric_limits<float>::infinity() : 0.0F;
      ++index;
    }
    inputs.emplace_back(tensor);
  }
  return inputs;
}

// Graphs with several tiles of queries and of keys, ragged; one query; more heads than threads and fewer.
inline std::vector<Graph> small_graphs() {
  return {bert(2, 7, 3, 5), grouped(2, 3, 9, 2, 3, 4), hidden(2, 5, 6, 2, 8), grouped(1, 1, 5, 1, 2, 4)};
}
inline std::vector<Graph> large_graphs() {
  return {bert(1, 150, 2, 32), grouped(1, 140, 1100, 1, 2, 16), hidden(1, 33, 1030, 2, 24),
          grouped(2, 1, 700, 2, 4, 16)};
}

}  // namespace parallax::attention_graphs
