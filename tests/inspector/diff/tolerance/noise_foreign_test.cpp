// SPDX-License-Identifier: Apache-2.0
// Limits of sums with thousands of operands, and of values that another runtime's kernels made.
#include <random>

#include <gtest/gtest.h>

#include "inspector/diff/tolerance/judge.h"
#include "inspector/diff/tolerance/value_compare.h"
#include "inspector/model/link.h"
#include "inspector/tensor/elements.h"
#include "tests/inspector/model/graph_builder.h"

namespace parallax {
namespace {

Tensor row_of(const std::vector<double>& elements) {
  Tensor tensor = Tensor::allocate(DType::float32, Shape{1, static_cast<int64_t>(elements.size())}).take();
  store_doubles(tensor, 0, elements);
  return tensor;
}

constexpr size_t kElements = 64;

// 4,000 equal operands round the same way at each step: float32 sums of them are off by more than random roundings are.
TEST(NoiseForeign, ASumOfManyEqualOperandsMayRoundTheSameWay) {
  constexpr int kOperands = 4000;
  testing::GraphBuilder builder(17);
  builder.input("x", "float32[64]").node("Sum", std::vector<std::string>(kOperands, "x"), {"y"}).output("y");
  auto model = std::make_shared<Model>(builder.model());
  link_graph(model->graph);
  const diff::ValueInfoIndex value_infos(model);
  const Tensor x = row_of(std::vector<double>(kElements, 0.1));
  const auto element = static_cast<double>(x.as<float>()[0]);
  const auto severity_of = [&](int operands) {
    float sum = 0;
    for (int operand = 0; operand < operands; ++operand) sum += x.as<float>()[0];
    const Value left = row_of(std::vector<double>(kElements, kOperands * element));
    diff::Judge judge({});
    judge.limit_of(judge.add("x", value_infos.find("x"), x, DType::float32), "x");
    const Limit limit = judge.limit_of(judge.add("y", value_infos.find("y"), left, DType::float32), "y");
    ValueComparison comparison;
    diff::judge_values(left, row_of(std::vector<double>(kElements, sum)), {limit, false, false}, comparison);
    return comparison.severity;
  };
  EXPECT_LE(severity_of(kOperands), 1);
  EXPECT_GT(severity_of(kOperands - 1), 1);
}

// Kernels of another runtime may round activations to int8, and compute coordinates in float32; ours do neither.
TEST(NoiseForeign, ForeignKernelsMayDoWhatOursDoNot) {
  testing::GraphBuilder builder(17);
  builder.input("x", "float32[1,64]").input("w", "uint8[64,2,16]").input("s", "float32[64,2]");
  using Attributes = std::vector<std::pair<std::string, Attribute::Value>>;
  const auto product = [](int64_t level) {
    return Attributes{{"K", int64_t{64}}, {"N", int64_t{64}}, {"block_size", int64_t{32}}, {"accuracy_level", level}};
  };
  builder.node("com.microsoft.MatMulNBits", {"x", "w", "s"}, {"fast"}, product(4)).output("fast");
  builder.node("com.microsoft.MatMulNBits", {"x", "w", "s"}, {"exact"}, product(0)).output("exact");
  builder.node("Resize", {"x", "", "", "sizes"}, {"between"}, {{"mode", std::string("linear")}}).output("between");
  builder.node("Resize", {"x", "", "", "sizes"}, {"nearest"}, {{"mode", std::string("nearest")}}).output("nearest");
  auto model = std::make_shared<Model>(builder.model());
  link_graph(model->graph);
  const diff::ValueInfoIndex value_infos(model);
  std::mt19937 random(5);
  std::normal_distribution<double> normal;
  std::vector<double> numbers(kElements);
  for (double& number : numbers) number = normal(random);
  const Value x = row_of(numbers);
  const auto limit_of = [&](const std::string& name, bool is_foreign) {
    diff::Judge judge({});
    if (is_foreign) judge.count_foreign_kernels();
    judge.add("x", value_infos.find("x"), x, DType::float32);
    const Value value = row_of(std::vector<double>((name == "between" || name == "nearest" ? 2 : 1) * kElements, 1));
    return judge.limit_of(judge.add(name, value_infos.find(name), value, DType::float32), name).atol;
  };
  for (const char* name : {"exact", "nearest"}) EXPECT_EQ(limit_of(name, true), limit_of(name, false)) << name;
  // A block's largest of 32 normal numbers is about twice their deviation: a step of 1/64, whose error is 0.0045.
  EXPECT_GT(limit_of("fast", true), 0.01);
  EXPECT_LT(limit_of("fast", true), 0.06);
  EXPECT_LT(limit_of("fast", false), 1e-4);
  EXPECT_GT(limit_of("between", true), 1.2 * limit_of("between", false));
  EXPECT_LT(limit_of("between", true), 1e-3);
}

}  // namespace
}  // namespace parallax
