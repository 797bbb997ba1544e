// SPDX-License-Identifier: Apache-2.0
// Graphs of pointwise nodes that become one node, with inputs of any float type: the fused form has the bits of the
// nodes themselves, on every executor.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/plan/runtime.h"
#include "tests/runtime/against_host.h"
#include "tests/runtime/model_text.h"
#include "tests/runtime/plan/fused_counter.h"
#include "tests/runtime/session_values.h"

namespace parallax::pointwise_graphs {

using model_text::dims_text;
using model_text::integer_attribute;
using model_text::integers_attribute;

inline std::string value(const std::string& role, const std::string& name, const std::vector<int64_t>& dims) {
  return fmt::format("{} {{ name: \"{}\" type {{ tensor_type {{ elem_type: 1 {} }} }} }} ", role, name,
                     dims_text(dims));
}
inline std::string node(const std::string& op, const std::vector<std::string>& inputs, const std::string& output,
                        const std::string& rest = "") {
  std::string text = fmt::format("node {{ op_type: \"{}\" ", op);
  for (const auto& name : inputs) text += fmt::format("input: \"{}\" ", name);
  return text + fmt::format("output: \"{}\" {} }} ", output, rest);
}
inline std::string index(const std::string& name, int64_t value) {
  return fmt::format("initializer {{ name: \"{}\" data_type: 7 dims: 1 int64_data: {} }} ", name, value);
}

struct Case {
  std::string name;
  std::string graph;  // of float32
  std::string pattern;
  int fused = 0;  // the values that are fused away
  std::vector<std::vector<int64_t>> input_dims;
};

inline std::shared_ptr<const Model> model_in(std::string graph, DType dtype) {
  const std::string of_float32 = "elem_type: 1 ";
  for (size_t at = graph.find(of_float32); at != std::string::npos; at = graph.find(of_float32, at + 1))
    graph.replace(at, of_float32.size(), fmt::format("elem_type: {} ", static_cast<int>(dtype)));
  return model_text::model_of(graph, 22);
}

// The model's output with nothing rewritten, and with one pattern, which has to fuse `fused` values away; several runs,
// of which the last ones of a GPU are replays.
inline void expect_same_bits(const Case& test, DType dtype, const std::function<std::unique_ptr<Executor>()>& make) {
  SCOPED_TRACE(test.name + " in " + std::string(name_of(dtype)));
  const auto model = model_in(test.graph, dtype);
  ASSERT_NE(model, nullptr);
  std::vector<Value> inputs, outputs;
  for (const auto& dims : test.input_dims)
    inputs.push_back(against_host::sixteenths(dtype, Shape(dims), static_cast<int64_t>(inputs.size()) + 1));
  for (const bool rewrites : {false, true}) {
    RunOptions options;
    options.rewrite.base = RewriteChoice::Base::none;
    if (rewrites) options.rewrite.changes = {{"swish", true}, {test.pattern, true}};
    FusedCounter counter;
    auto session = make()->prepare(model, options);
    ASSERT_TRUE(session.ok()) << session.error().message;
    for (int run = 0; run < 4; ++run) {
      auto ran = (*session)->run(inputs, counter);
      ASSERT_TRUE(ran.ok()) << ran.error().message;
      outputs.push_back((*ran)[0]);
    }
    EXPECT_EQ(counter.fused, rewrites ? test.fused : 0);
  }
  for (const Value& output : outputs) EXPECT_TRUE(session_values::same(output, outputs[0]));
}

// The two parts by Slice, or by Split; X as given, or transposed from [batch, length, heads, size].
inline std::string rotary(const std::vector<int64_t>& x, const std::vector<int64_t>& cache, bool splits = false,
                          bool transposes = false) {
  const int64_t half = x.back() / 2;
  std::string graph = node("Neg", {"b"}, "n") + node("Concat", {"n", "a"}, "r", integer_attribute("axis", -1)) +
                      node("Mul", {"cos", "x"}, "p") + node("Mul", {"r", "sin"}, "q") + node("Add", {"q", "p"}, "y") +
                      value("input", "cos", cache) + value("input", "sin", cache) + value("output", "y", x);
  if (splits) {
    graph =
        "node { op_type: \"Split\" input: \"x\" input: \"sizes\" output: \"a\" output: \"b\" attribute { name: "
        "\"axis\" type: INT i: -1 } } " +
        graph +
        fmt::format("initializer {{ name: \"sizes\" data_type: 7 dims: 2 int64_data: {} int64_data: {} }} ", half,
                    half);
  } else {
    graph = node("Slice", {"x", "zero", "half", "axis"}, "a") + node("Slice", {"x", "half", "end", "axis"}, "b") +
            graph + index("zero", 0) + index("half", half) + index("end", 2 * half) + index("axis", -1);
  }
  if (!transposes) return value("input", "x", x) + graph;
  return value("input", "t", {x[0], x[2], x[1], x[3]}) +
         node("Transpose", {"t"}, "x", integers_attribute("perm", {0, 2, 1, 3})) + graph;
}

inline std::vector<Case> rotations() {
  return {
      {"rows of a cache", rotary({2, 3, 5, 64}, {5, 64}), "rotary", 6, {{2, 3, 5, 64}, {5, 64}, {5, 64}}},
      {"odd parts", rotary({2, 3, 5, 6}, {2, 1, 5, 6}), "rotary", 6, {{2, 3, 5, 6}, {2, 1, 5, 6}, {2, 1, 5, 6}}},
      {"Split", rotary({2, 3, 5, 32}, {5, 32}, true), "rotary", 6, {{2, 3, 5, 32}, {5, 32}, {5, 32}}},
      {"Transpose", rotary({2, 3, 5, 32}, {5, 32}, true, true), "rotary", 7, {{2, 5, 3, 32}, {5, 32}, {5, 32}}},
      {"Transpose of equal axes",
       rotary({1, 4, 4, 8}, {4, 8}, false, true),
       "rotary",
       7,
       {{1, 4, 4, 8}, {4, 8}, {4, 8}}},
  };
}

inline Case chain(const std::string& name, const std::vector<int64_t>& dims, const std::vector<int64_t>& column) {
  const std::vector<int64_t> row{dims.back()};
  const std::string graph = node("Add", {"x", "row"}, "a") + node("Mul", {"a", "column"}, "b") +
                            node("Erf", {"b"}, "c") + node("Div", {"c", "number"}, "d") + node("Sub", {"d", "a"}, "e") +
                            node("Sigmoid", {"e"}, "f") + node("Mul", {"f", "x"}, "y") + value("input", "x", dims) +
                            value("input", "row", row) + value("input", "column", column) +
                            value("input", "number", {1}) + value("output", "y", dims);
  return {name, graph, "pointwise", 6, {dims, row, column, {1}}};
}

inline std::string unary_steps(const std::vector<std::string>& operators, const std::vector<int64_t>& dims) {
  std::string graph;
  for (size_t i = 0; i < operators.size(); ++i)
    graph += node(operators[i], {fmt::format("v{}", i)}, fmt::format("v{}", i + 1));
  return graph + value("input", "v0", dims) + value("output", fmt::format("v{}", operators.size()), dims);
}

inline std::vector<Case> chains() {
  std::vector<std::string> many;
  for (int i = 0; i < 40; ++i) many.push_back(i % 2 == 0 ? "Neg" : "Tanh");
  return {
      chain("odd rows", {7, 3, 301}, {3, 1}),
      chain("whole groups", {5, 3, 64}, {3, 1}),
      chain("one row", {13}, {1}),
      {"all operators of one operand",
       unary_steps({"Abs", "Sqrt", "HardSwish", "Neg", "Exp", "Reciprocal", "Tanh", "Erf", "Sigmoid", "Relu"}, {2, 37}),
       "pointwise",
       9,
       {{2, 37}}},
      {"long chains are cut", unary_steps(many, {2, 300}), "pointwise", 37, {{2, 300}}},
  };
}

inline void expect_same_bits_in_all_types(const std::vector<Case>& cases,
                                          const std::function<std::unique_ptr<Executor>()>& make) {
  for (const Case& test : cases) {
    for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) expect_same_bits(test, dtype, make);
  }
}

}  // namespace parallax::pointwise_graphs
