// SPDX-License-Identifier: Apache-2.0
// Quantized operators on tensors without elements, whose axes of 0 no line is divided by.
#include <gtest/gtest.h>

#include "reference/reference.h"
#include "runtime/plan/runtime.h"
#include "tests/runtime/model_text.h"
#include "tests/runtime/session_values.h"

namespace parallax::empty_quantized_test {
namespace {

using model_text::model_of;
using model_text::node;
using model_text::value;
using session_values::same;

constexpr int kUint8 = 2, kInt8 = 3, kInt32 = 6;

std::string constant(const std::string& name, int elem_type, const std::vector<int>& dims, const std::string& data) {
  std::string text = "initializer { name: \"" + name + "\" data_type: " + std::to_string(elem_type) + " ";
  for (const int dim : dims) text += "dims: " + std::to_string(dim) + " ";
  return text + data + " } ";
}

// The parameters of QLinearMatMul and QLinearConv, the weights' for `lines` columns or channels.
std::string parameters(int lines) {
  std::string scales, zeros;
  for (int line = 0; line < lines; ++line) {
    scales += "float_data: 1 ";
    zeros += "int32_data: 1 ";
  }
  return constant("xs", 1, {}, "float_data: 1") + constant("xz", kUint8, {}, "int32_data: 1") +
         constant("ws", 1, {lines}, scales) + constant("wz", kInt8, {lines}, zeros) +
         constant("ys", 1, {}, "float_data: 1") + constant("yz", kUint8, {}, "int32_data: 1");
}

void expect_as_reference(const std::string& graph, const Shape& x) {
  const auto model = model_of(graph);
  const std::vector<Value> inputs{Tensor::zeros(DType::uint8, x).take()};
  NullObserver nobody;
  auto reference = make_reference_executor(ReferencePrecision::declared)->prepare(model, {}).take();
  const auto expected = reference->run(inputs, nobody);
  const auto cpu = make_cpu_executor({})->prepare(model, {}).take();
  const auto found = cpu->run(inputs, nobody);
  ASSERT_TRUE(expected.ok()) << expected.error().message;
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_TRUE(same(found->front(), expected->front()));
}

const std::string kInputAndOutput = value("input", "x", kUint8);
const std::vector<std::string> kProduct{"x", "xs", "xz", "w", "ws", "wz", "ys", "yz"};

TEST(EmptyQuantized, ProductsWithoutRowsColumnsOrTerms) {
  const std::string product =
      node("QLinearMatMul", kProduct, {"y"}) + kInputAndOutput + value("output", "y", kUint8) + parameters(0);
  expect_as_reference(product + constant("w", kInt8, {4, 0}, ""), {2, 4});
  expect_as_reference(node("QLinearMatMul", kProduct, {"y"}) + kInputAndOutput + value("output", "y", kUint8) +
                          parameters(2) + constant("w", kInt8, {0, 2}, ""),
                      {3, 0});
  expect_as_reference(node("MatMulInteger", {"x", "w", "xz", "wz"}, {"y"}) + kInputAndOutput +
                          value("output", "y", kInt32) + parameters(0) + constant("w", kInt8, {4, 0}, ""),
                      {2, 4});
}

TEST(EmptyQuantized, ConvolutionsWithoutFeatureMaps) {
  expect_as_reference(node("QLinearConv", kProduct, {"y"}) + kInputAndOutput + value("output", "y", kUint8) +
                          parameters(2) + constant("w", kInt8, {2, 1, 1, 1}, "int32_data: 1 int32_data: 2"),
                      {0, 1, 5, 5});
}

TEST(EmptyQuantized, LinesWithoutElements) {
  expect_as_reference(node("DequantizeLinear", {"x", "ws"}, {"y"}, "attribute { name: \"axis\" type: INT i: 1 }") +
                          kInputAndOutput + value("output", "y") +
                          constant("ws", 1, {2}, "float_data: 1 float_data: 2"),
                      {3, 2, 0});
}

}  // namespace
}  // namespace parallax::empty_quantized_test
