// SPDX-License-Identifier: Apache-2.0
// Lowered models give the same quantized values, keep the names of values and nodes, and say where new nodes are from.
#include "inspector/transform/lower_quantized.h"

#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "inspector/exec/executor.h"
#include "inspector/model/io/export.h"
#include "inspector/model/io/import.h"
#include "inspector/tensor/elements.h"
#include "tests/inspector/model/graph_builder.h"
#include "tests/inspector/transform/models.h"

namespace parallax::transform {
namespace {

using testing::GraphBuilder;

// Numbers of all parts of the range, the same in each call.
template <class Number>
Tensor spread(const Shape& shape, int first) {
  Tensor tensor = Tensor::allocate(dtype_of<Number>(), shape).take();
  int next = first;
  for (Number& number : tensor.mutable_as<Number>()) number = static_cast<Number>(next = (next * 37 + 11) % 251);
  return tensor;
}

// A graph that quantizes its input x, float32[2,3,4,4], as xq, with the parameters that the cases use.
GraphBuilder quantized_input() {
  GraphBuilder builder(17);
  builder.input("x", "float32[2,3,4,4]");
  builder.initializer("xs", Tensor::scalar(0.013F)).initializer("xz", Tensor::scalar(uint8_t{119}));
  builder.initializer("ys", Tensor::scalar(0.021F)).initializer("yz", Tensor::scalar(uint8_t{101}));
  builder.initializer("ws", Tensor::scalar(0.007F)).initializer("wz", Tensor::scalar(int8_t{0}));
  return builder.node("QuantizeLinear", {"x", "xs", "xz"}, {"xq"}), builder;
}

std::shared_ptr<const Model> finished(const GraphBuilder& builder) {
  Model model = builder.model();
  model.opset_imports.push_back({"com.microsoft", 1});
  for (Node& node : model.graph.nodes) {
    for (Attribute& attribute : node.attributes) {
      if (std::holds_alternative<int64_t>(attribute.value)) attribute.type = AttributeType::int_;
      if (std::holds_alternative<float>(attribute.value)) attribute.type = AttributeType::float_;
      if (std::holds_alternative<std::vector<int64_t>>(attribute.value)) attribute.type = AttributeType::ints;
    }
  }
  for (const ValueId output : model.graph.outputs)
    model.graph.values[static_cast<size_t>(output)].is_graph_output = true;
  const auto bytes = export_model_bytes(model);
  EXPECT_TRUE(bytes.ok());
  auto imported = import_model(std::as_bytes(std::span(*bytes)), "", "quantized.onnx");
  EXPECT_TRUE(imported.ok()) << imported.error().message;
  return imported.take();
}

Value run(const std::shared_ptr<const Model>& model) {
  Tensor x = Tensor::allocate(DType::float32, Shape{2, 3, 4, 4}).take();
  int index = 0;
  for (float& number : x.mutable_as<float>()) number = static_cast<float>(1.5 * std::sin(0.7 * ++index));
  const auto session = make_executor("reference").take()->prepare(model, {});
  if (!session.ok()) return ADD_FAILURE() << session.error().message, Value();
  NullObserver observer;
  auto outputs = (*session)->run(std::vector<Value>{x}, observer);
  if (!outputs.ok()) return ADD_FAILURE() << outputs.error().message, Value();
  return outputs->front();
}

struct Case {
  std::string_view name;
  std::function<void(GraphBuilder&)> build;  // from xq to y
};

void add_weights(GraphBuilder& builder, const Shape& shape) { builder.initializer("w", spread<int8_t>(shape, 5)); }

const std::vector<Case>& products() {
  static const std::vector<Case> all = {
      {"MatMul",
       [](GraphBuilder& builder) {
         add_weights(builder, Shape{4, 5});
         builder.node("QLinearMatMul", {"xq", "xs", "xz", "w", "ws", "wz", "ys", "yz"}, {"y"});
       }},
      {"MatMulByColumn",
       [](GraphBuilder& builder) {
         add_weights(builder, Shape{4, 2});
         builder.initializer("wss", Tensor::vector<float>(std::vector<float>{0.004F, 0.009F}));
         builder.initializer("wzs", Tensor::vector<int8_t>(std::vector<int8_t>{0, 3}));
         builder.node("QLinearMatMul", {"xq", "xs", "xz", "w", "wss", "wzs", "ys", "yz"}, {"y"});
       }},
      {"ConvWithBias",
       [](GraphBuilder& builder) {
         add_weights(builder, Shape{2, 3, 3, 3});
         builder.initializer("wss", Tensor::vector<float>(std::vector<float>{0.001F, 0.002F}));
         builder.initializer("wzs", Tensor::vector<int8_t>(std::vector<int8_t>{0, 0}));
         builder.initializer("b", Tensor::vector<int32_t>(std::vector<int32_t>{2000, -9000}));
         builder.node("QLinearConv", {"xq", "xs", "xz", "w", "wss", "wzs", "ys", "yz", "b"}, {"y"},
                      {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
       }},
      {"Gemm",
       [](GraphBuilder& builder) {
         builder.node("Flatten", {"xq"}, {"rows"});
         add_weights(builder, Shape{3, 48});
         builder.initializer("b", Tensor::vector<int32_t>(std::vector<int32_t>{900, -400, 7}));
         builder.node("com.microsoft.QGemm", {"rows", "xs", "xz", "w", "ws", "wz", "b", "ys", "yz"}, {"y"},
                      {{"transB", int64_t{1}}});
       }},
      {"GemmToFloats",
       [](GraphBuilder& builder) {
         builder.node("Flatten", {"xq"}, {"rows"});
         add_weights(builder, Shape{48, 3});
         builder.node("com.microsoft.QGemm", {"rows", "xs", "xz", "w", "ws", "wz"}, {"y"});
       }},
      {"MatMulIntegerToFloat",
       [](GraphBuilder& builder) {
         add_weights(builder, Shape{4, 2});
         builder.initializer("b", Tensor::vector<float>(std::vector<float>{0.5F, -1}));
         builder.node("com.microsoft.MatMulIntegerToFloat", {"xq", "w", "xs", "ws", "xz", "wz", "b"}, {"y"});
       }},
      {"DynamicConv",
       [](GraphBuilder& builder) {
         builder.node("DynamicQuantizeLinear", {"x"}, {"dq", "ds", "dz"});
         builder.initializer("w", spread<uint8_t>({2, 3, 3, 3}, 5)).initializer("w_zero", Tensor::scalar(uint8_t{128}));
         builder.node("ConvInteger", {"dq", "w", "dz", "w_zero"}, {"integers"});
         builder.node("Cast", {"integers"}, {"floats"}, {{"to", int64_t{1}}}).node("Mul", {"ds", "ws"}, {"scales"});
         builder.node("Mul", {"floats", "scales"}, {"y"});
       }},
      {"MatMulNBits",
       [](GraphBuilder& builder) {
         builder.node("Flatten", {"x"}, {"rows"});
         builder.initializer("w", spread<uint8_t>(Shape{3, 3, 8}, 5));
         builder.initializer("scales", spread<float>(Shape{9}, 5)).initializer("zeros", spread<uint8_t>(Shape{6}, 7));
         builder.initializer("b", Tensor::vector<float>(std::vector<float>{0.5F, -1, 2}));
         builder.node("com.microsoft.MatMulNBits", {"rows", "w", "scales", "zeros", "", "b"}, {"y"},
                      {{"K", int64_t{48}}, {"N", int64_t{3}}, {"block_size", int64_t{16}}, {"bits", int64_t{4}}});
       }},
      {"GatherBlockQuantized",
       [](GraphBuilder& builder) {
         builder.initializer("w", spread<uint8_t>(Shape{4, 12}, 5)).numbers("ids", {3, 0, 1});
         builder.initializer("scales", spread<float>(Shape{4, 2}, 5));
         builder.node("com.microsoft.GatherBlockQuantized", {"w", "ids", "scales"}, {"y"},
                      {{"block_size", int64_t{16}}, {"bits", int64_t{4}}});
       }},
  };
  return all;
}

const std::vector<Case>& elementwise() {
  static const std::vector<Case> all = {
      {"Add",
       [](GraphBuilder& builder) {
         builder.initializer("w", spread<uint8_t>(Shape{4}, 5));
         builder.node("com.microsoft.QLinearAdd", {"xq", "xs", "xz", "w", "ws", "yz", "ys", "yz"}, {"y"});
       }},
      {"Mul",
       [](GraphBuilder& builder) {
         builder.node("com.microsoft.QLinearMul", {"xq", "xs", "xz", "xq", "xs", "xz", "ys", "yz"}, {"y"});
       }},
      {"Concat",
       [](GraphBuilder& builder) {
         builder.node("com.microsoft.QLinearConcat", {"ys", "yz", "xq", "xs", "xz", "xq", "ys", "xz"}, {"y"},
                      {{"axis", int64_t{1}}});
       }},
      {"Sigmoid",
       [](GraphBuilder& builder) {
         builder.node("com.microsoft.QLinearSigmoid", {"xq", "xs", "xz", "ys", "yz"}, {"y"});
       }},
      {"LeakyRelu",
       [](GraphBuilder& builder) {
         builder.node("com.microsoft.QLinearLeakyRelu", {"xq", "xs", "xz", "ys", "yz"}, {"y"}, {{"alpha", 0.1F}});
       }},
      {"Softmax",
       [](GraphBuilder& builder) {
         builder.node("com.microsoft.QLinearSoftmax", {"xq", "xs", "xz", "ws", "yz"}, {"y"},
                      {{"axis", int64_t{1}}, {"opset", int64_t{13}}});
       }},
      {"AveragePool",
       [](GraphBuilder& builder) {
         builder.node("com.microsoft.QLinearAveragePool", {"xq", "xs", "xz", "ys", "yz"}, {"y"},
                      {{"kernel_shape", std::vector<int64_t>{2, 2}}});
       }},
      {"ReduceMean",
       [](GraphBuilder& builder) {
         builder.node("com.microsoft.QLinearReduceMean", {"xq", "xs", "xz", "ys", "yz"}, {"y"},
                      {{"axes", std::vector<int64_t>{2}}, {"keepdims", int64_t{0}}});
       }},
  };
  return all;
}

// Sums in another order round otherwise: a step between two numbers, or a few units of a float.
void expect_alike(const Value& expected, const Value& found, std::string_view name) {
  ASSERT_TRUE(expected.is_tensor() && found.is_tensor()) << name;
  const Tensor &a = expected.tensor(), &b = found.tensor();
  ASSERT_EQ(a.dtype(), b.dtype()) << name;
  ASSERT_TRUE(a.shape() == b.shape()) << name;
  int64_t different = 0;
  for (int64_t index = 0; index < a.element_count(); ++index) {
    const double x = element_as_double(a, index), y = element_as_double(b, index);
    const double allowed = is_floating(a.dtype()) ? 1e-5 * (1 + std::abs(x)) : 1;
    EXPECT_NEAR(x, y, allowed) << name << " element " << index;
    different += x != y && !is_floating(a.dtype()) ? 1 : 0;
  }
  EXPECT_LE(different, 1 + a.element_count() / 50) << name;
}

class LowerQuantizedOperator : public ::testing::TestWithParam<Case> {};

TEST_P(LowerQuantizedOperator, GivesTheSameValues) {
  const Case& each = GetParam();
  GraphBuilder builder = quantized_input();
  each.build(builder);
  const auto model = finished(builder.output("y"));
  ASSERT_EQ(count_quantized_operators(*model), 1U);
  const auto lowered = lower_quantized(*model);
  ASSERT_TRUE(lowered.ok());
  EXPECT_EQ(count_quantized_operators(*lowered->model), 0U);
  EXPECT_TRUE(check_model(*lowered->model).empty());
  expect_alike(run(model), run(lowered->model), each.name);
}

std::string name_of_case(const ::testing::TestParamInfo<Case>& info) { return std::string(info.param.name); }
INSTANTIATE_TEST_SUITE_P(Products, LowerQuantizedOperator, ::testing::ValuesIn(products()), name_of_case);
INSTANTIATE_TEST_SUITE_P(Elementwise, LowerQuantizedOperator, ::testing::ValuesIn(elementwise()), name_of_case);

TEST(LowerQuantized, KeepsNamesAndKnowsOrigins) {
  GraphBuilder builder = quantized_input();
  builder.initializer("k_quantized", spread<int8_t>(Shape{4, 4}, 5));
  builder.node("QLinearMatMul", {"xq", "xs", "xz", "k_quantized", "ws", "wz", "ys", "yz"}, {"h_quantized"});
  builder.node("QLinearMatMul", {"h_quantized", "ys", "yz", "k_quantized", "ws", "wz", "ys", "yz"}, {"y"});
  const auto lowered = lower_quantized(*finished(builder.output("y"))).take();
  const Graph& graph = lowered.model->graph;
  const auto op_that_makes = [&](const std::string& value) -> std::string {
    const ValueId id = graph.find_value(value);
    if (id == kNoValue || value_at(graph, id).producer == kNoNode) return "";
    const Node& node = graph.nodes[static_cast<size_t>(value_at(graph, id).producer)];
    return node.op_type + " " + node.display_name;
  };
  EXPECT_EQ(op_that_makes("h"), "MatMul QLinearMatMul_1");
  EXPECT_EQ(op_that_makes("h_quantized"), "QuantizeLinear QLinearMatMul_1/QuantizeLinear");
  EXPECT_EQ(op_that_makes("h_dequantized"), "DequantizeLinear QLinearMatMul_2/DequantizeLinear");
  EXPECT_EQ(op_that_makes("y"), "QuantizeLinear QLinearMatMul_2/QuantizeLinear");
  // One for both that read the weight.
  EXPECT_EQ(op_that_makes("k"), "DequantizeLinear QLinearMatMul_1/DequantizeLinear#2");
  const auto origin = lowered.origins.find("QLinearMatMul_1/DequantizeLinear#2");
  ASSERT_NE(origin, lowered.origins.end());
  EXPECT_EQ(origin->second.name, "QLinearMatMul_1");
  EXPECT_EQ(origin->second.op_type, "QLinearMatMul");
  EXPECT_FALSE(lowered.origins.contains("QLinearMatMul_1"));
}

// Channels last would need other nodes around it, and scales of unknown number an axis that nobody knows.
TEST(LowerQuantized, LeavesWhatItCannotSay) {
  GraphBuilder builder = quantized_input();
  builder.node("com.microsoft.QLinearGlobalAveragePool", {"xq", "xs", "xz", "ys", "yz"}, {"h"},
               {{"channels_last", int64_t{1}}});
  builder.input("given", "float32");
  builder.node("com.microsoft.QLinearSigmoid", {"h", "ys", "yz", "given", "yz"}, {"y"});
  const auto lowered = lower_quantized(*finished(builder.output("y"))).take();
  EXPECT_EQ(lowered.model->graph.nodes.size(), 3U);
  EXPECT_TRUE(lowered.origins.empty());
}

}  // namespace
}  // namespace parallax::transform
