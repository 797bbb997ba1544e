// SPDX-License-Identifier: Apache-2.0
// The fused form of pointwise nodes gives the same bits as the nodes themselves, with and without broadcasting.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/plan/runtime.h"
#include "tests/runtime/model_text.h"
#include "tests/runtime/plan/fused_counter.h"

namespace parallax::fused_pointwise_test {
namespace {

std::string dims_text(const std::vector<int64_t>& dims) {
  std::string text = "shape { ";
  for (int64_t dim : dims) text += fmt::format("dim {{ dim_value: {} }} ", dim);
  return text + "} ";
}
std::string value(const std::string& role, const std::string& name, const std::vector<int64_t>& dims) {
  return fmt::format("{} {{ name: \"{}\" type {{ tensor_type {{ elem_type: 1 {} }} }} }} ", role, name,
                     dims_text(dims));
}
std::string node(const std::string& op, const std::vector<std::string>& inputs, const std::string& output,
                 const std::string& rest = "") {
  std::string text = fmt::format("node {{ op_type: \"{}\" ", op);
  for (const auto& name : inputs) text += fmt::format("input: \"{}\" ", name);
  return text + fmt::format("output: \"{}\" {} }} ", output, rest);
}
std::string index(const std::string& name, int64_t value) {
  return fmt::format("initializer {{ name: \"{}\" data_type: 7 dims: 1 int64_data: {} }} ", name, value);
}

Value filled(const std::vector<int64_t>& dims, uint32_t seed) {
  Tensor tensor = Tensor::allocate(DType::float32, Shape(dims)).take();
  for (float& element : tensor.mutable_as<float>()) {
    seed = seed * 1664525U + 1013904223U;
    element = static_cast<float>(seed >> 8) / 4194304.0F - 2.0F;
  }
  return tensor;
}

// The model's output with nothing rewritten, and with one pattern, which has to fuse `fused` values away.
void expect_same_bits(const std::string& graph, const std::string& pattern, int fused,
                      const std::vector<std::vector<int64_t>>& input_dims) {
  const auto model = model_text::model_of(graph);
  ASSERT_NE(model, nullptr);
  std::vector<Value> inputs, outputs;
  for (const auto& dims : input_dims) inputs.push_back(filled(dims, static_cast<uint32_t>(inputs.size()) + 1));
  for (const bool rewrites : {false, true}) {
    RunOptions options;
    options.rewrite.base = RewriteChoice::Base::none;
    if (rewrites) options.rewrite.changes = {{"swish", true}, {pattern, true}};
    FusedCounter counter;
    auto session = make_cpu_executor({.poison_buffers = true})->prepare(model, options);
    ASSERT_TRUE(session.ok()) << session.error().message;
    for (int run = 0; run < 3; ++run) {
      auto ran = (*session)->run(inputs, counter);
      ASSERT_TRUE(ran.ok()) << ran.error().message;
      outputs.push_back((*ran)[0]);
    }
    EXPECT_EQ(counter.fused, rewrites ? fused : 0);
  }
  const auto plain = outputs[0].tensor().view().bytes();
  for (const Value& output : outputs) {
    const auto bytes = output.tensor().view().bytes();
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), plain.begin(), plain.end()));
  }
}

std::string rotary(const std::vector<int64_t>& x, const std::vector<int64_t>& cache) {
  const int64_t half = x.back() / 2;
  return node("Slice", {"x", "zero", "half", "axis"}, "a") + node("Slice", {"x", "half", "end", "axis"}, "b") +
         node("Neg", {"b"}, "n") + node("Concat", {"n", "a"}, "r", "attribute { name: \"axis\" type: INT i: -1 }") +
         node("Mul", {"cos", "x"}, "p") + node("Mul", {"r", "sin"}, "q") + node("Add", {"q", "p"}, "y") +
         index("zero", 0) + index("half", half) + index("end", 2 * half) + index("axis", -1) + value("input", "x", x) +
         value("input", "cos", cache) + value("input", "sin", cache) + value("output", "y", x);
}

TEST(FusedPointwise, Rotary) {
  expect_same_bits(rotary({2, 3, 5, 64}, {5, 64}), "rotary", 6, {{2, 3, 5, 64}, {5, 64}, {5, 64}});
  expect_same_bits(rotary({2, 3, 5, 6}, {2, 1, 5, 6}), "rotary", 6, {{2, 3, 5, 6}, {2, 1, 5, 6}, {2, 1, 5, 6}});
}

TEST(FusedPointwise, GatedActivation) {
  const std::vector<int64_t> dims{3, 700};
  expect_same_bits(node("Sigmoid", {"g"}, "s") + node("Mul", {"g", "s"}, "a") + node("Mul", {"u", "a"}, "y") +
                       value("input", "g", dims) + value("input", "u", dims) + value("output", "y", dims),
                   "swiglu", 2, {dims, dims});
  expect_same_bits(node("Tanh", {"g"}, "a") + node("Mul", {"u", "a"}, "y") + value("input", "g", dims) +
                       value("input", "u", dims) + value("output", "y", dims),
                   "swiglu", 1, {dims, dims});
}

TEST(FusedPointwise, Chain) {
  const std::vector<int64_t> dims{7, 3, 301};
  const std::string chain = node("Add", {"x", "row"}, "a") + node("Mul", {"a", "column"}, "b") +
                            node("Erf", {"b"}, "c") + node("Div", {"c", "number"}, "d") + node("Sub", {"d", "a"}, "e") +
                            node("Sigmoid", {"e"}, "f") + node("Mul", {"f", "x"}, "y");
  expect_same_bits(chain + value("input", "x", dims) + value("input", "row", {301}) + value("input", "column", {3, 1}) +
                       value("input", "number", {1}) + value("output", "y", dims),
                   "pointwise", 6, {dims, {301}, {3, 1}, {1}});
}

TEST(FusedPointwise, LongChainsAreCut) {
  std::string graph;
  for (int i = 0; i < 40; ++i)
    graph += node(i % 2 == 0 ? "Neg" : "Tanh", {fmt::format("v{}", i)}, fmt::format("v{}", i + 1));
  expect_same_bits(graph + value("input", "v0", {2, 3000}) + value("output", "v40", {2, 3000}), "pointwise", 37,
                   {{2, 3000}});
}

}  // namespace
}  // namespace parallax::fused_pointwise_test
