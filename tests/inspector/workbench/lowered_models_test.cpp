// SPDX-License-Identifier: Apache-2.0
// A model of floats compared with quantized forms of it whose operators compute on quantized values: the values between
// are compared, and a wrong scale is the operator's cause.
#include <cmath>

#include <gtest/gtest.h>

#include "inspector/executors/make_executor.h"
#include "inspector/workbench/comparer.h"

namespace parallax {
namespace {

constexpr int64_t kWidth = 8;

float weight_at(int64_t index) { return static_cast<float>(0.5 * std::sin(static_cast<double>(index * index))); }

constexpr int64_t kFirst = 0, kSecond = 1000;

std::shared_ptr<const Model> model_of(const std::string& nodes, const std::string& initializers) {
  const std::string text = R"(
ir_version: 8
opset_import { domain: "" version: 17 }
graph {
  name: "g"
  input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_value: 4 } dim { dim_value: 8 } } } } }
  output { name: "y" type { tensor_type { elem_type: 1 } } }
)" + nodes + initializers + "}";
  auto model = import_model(std::as_bytes(std::span(text)), "", "lowered.textproto");
  EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.error().message);
  return model.take();
}

std::string scalar(const std::string& name, double value) {
  return "initializer { name: '" + name + "' data_type: 1 float_data: " + std::to_string(value) + " }\n";
}
std::string zero_point(const std::string& name, int data_type, int value) {
  return "initializer { name: '" + name + "' data_type: " + std::to_string(data_type) +
         " int32_data: " + std::to_string(value) + " }\n";
}
std::string weights(const std::string& name, int data_type, double step, int64_t from) {
  std::string text = "initializer { name: '" + name + "' data_type: " + std::to_string(data_type) + " dims: 8 dims: 8";
  for (int64_t index = 0; index < kWidth * kWidth; ++index) {
    const double number = weight_at(from + index);
    text += step == 0 ? " float_data: " + std::to_string(number)
                      : " int32_data: " + std::to_string(std::lround(number / step));
  }
  return text + " }\n";
}

std::shared_ptr<const Model> of_floats() {
  return model_of(
      "node { name: 'first' op_type: 'MatMul' input: 'x' input: 'w' output: 'h' }"
      "node { name: 'second' op_type: 'MatMul' input: 'h' input: 'w2' output: 'y' }",
      weights("w", 1, 0, kFirst) + weights("w2", 1, 0, kSecond));
}

// `factor`: of the weight's scale.
std::shared_ptr<const Model> of_quantized_operators(double factor) {
  constexpr double kStep = 0.5 / 127;
  return model_of(
      "node { name: 'q' op_type: 'QuantizeLinear' input: 'x' input: 'xs' input: 'z' output: 'xq' }"
      "node { name: 'first_q' op_type: 'QLinearMatMul' input: 'xq' input: 'xs' input: 'z' input: 'wq' input: 'ws' "
      "input: 'wz' input: 'hs' input: 'z' output: 'hq' }"
      "node { name: 'second_q' op_type: 'QLinearMatMul' input: 'hq' input: 'hs' input: 'z' input: 'wq2' input: 'ws2' "
      "input: 'wz' input: 'ys' input: 'z' output: 'yq' }"
      "node { name: 'd' op_type: 'DequantizeLinear' input: 'yq' input: 'ys' input: 'z' output: 'y' }",
      weights("wq", 3, kStep, kFirst) + weights("wq2", 3, kStep, kSecond) + scalar("xs", 1.0 / 127) +
          scalar("ws", kStep) + scalar("ws2", kStep * factor) + scalar("hs", 2.5 / 127) + scalar("ys", 4.0 / 127) +
          zero_point("z", 2, 128) + zero_point("wz", 3, 0));
}

Comparison compared(const std::shared_ptr<const Model>& other, const std::string& executor) {
  RunRequest request;
  request.model_in_memory = of_floats();
  request.against_in_memory = other;
  request.executors = {executor, executor};
  const auto comparer =
      Comparer::create(std::move(request), [](const std::string& name) { return make_executor(name); });
  if (!comparer.ok()) return ADD_FAILURE() << comparer.error().message, Comparison();
  Tensor x = Tensor::allocate(DType::float32, Shape{4, kWidth}).take();
  int index = 0;
  for (float& number : x.mutable_as<float>()) number = static_cast<float>(std::sin(1.7 * ++index));
  auto call = (*comparer)->run({Value(x)}, true);
  if (!call.ok()) return ADD_FAILURE() << call.error().message, Comparison();
  return std::move(call->comparison);
}

TEST(LoweredModels, StepsAreNoDivergence) {
  const Comparison comparison = compared(of_quantized_operators(1), "reference");
  EXPECT_EQ(comparison.verdict, OverallVerdict::pass);
  EXPECT_EQ(comparison.summary.passed, 5);  // x, w, h, w2, y
}

TEST(LoweredModels, AWrongScaleIsTheOperators) {
  for (const std::string executor : {"reference", "cpu"}) {
    const Comparison comparison = compared(of_quantized_operators(1.3), executor);
    EXPECT_EQ(comparison.verdict, OverallVerdict::diverged) << executor;
    ASSERT_FALSE(comparison.causes.empty()) << executor;
    EXPECT_EQ(comparison.causes.front().node, "second_q") << executor;
    EXPECT_EQ(comparison.causes.front().op, "QLinearMatMul") << executor;
  }
}

}  // namespace
}  // namespace parallax
