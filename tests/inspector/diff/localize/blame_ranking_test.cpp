// SPDX-License-Identifier: Apache-2.0
// Which of the nodes that two models define otherwise are causes, and in which order they are named.
#include <algorithm>
#include <functional>
#include <limits>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "inspector/diff/compare/compare.h"
#include "inspector/diff/localize/blame.h"
#include "inspector/dump/dump_writer.h"
#include "inspector/executors/make_executor.h"
#include "inspector/model/link.h"
#include "inspector/tensor/elements.h"
#include "tests/inspector/diff/dump_fixture.h"

namespace parallax {
namespace {

using testing::finished_model;
using testing::GraphBuilder;

Tensor square(DType dtype, double scale, const std::function<double(int64_t)>& change = {}) {
  Tensor tensor = Tensor::allocate(dtype, Shape{4, 4}).take();
  std::vector<double> values;
  for (int64_t index = 0; index < 16; ++index) {
    values.push_back(scale * static_cast<double>((index * 7 + 3) % 11 - 5) * (change ? change(index) : 1));
  }
  store_doubles(tensor, 0, values);
  return tensor;
}

Tensor transposed(const Tensor& tensor) {
  Tensor result = Tensor::allocate(tensor.dtype(), tensor.shape()).take();
  for (size_t index = 0; index < 16; ++index)
    result.mutable_as<float>()[index] = tensor.as<float>()[index % 4 * 4 + index / 4];
  return result;
}

Tensor one_element(DType dtype, double value) {
  Tensor tensor = Tensor::allocate(dtype, Shape{}).take();
  if (dtype == DType::int8) {
    tensor.mutable_as<int8_t>()[0] = static_cast<int8_t>(value);
  } else {
    store_doubles(tensor, 0, std::vector<double>{value});
  }
  return tensor;
}

Policy tolerances(double rtol, double atol) {
  Policy policy;
  policy.tolerance = Tolerance{rtol, atol};
  return policy;
}

class BlameRanking : public testing::DumpTest {
 protected:
  Comparison blame(const GraphBuilder& a, const GraphBuilder& b, const Policy& policy = {}) {
    Comparison comparison = blame_on(square(DType::float32, 0.3), a, b, policy);
    EXPECT_EQ(comparison.verdict, OverallVerdict::diverged);
    return comparison;
  }
};

std::vector<std::string> paths_of_causes(const Comparison& comparison) {
  std::vector<std::string> result;
  for (const Cause& cause : comparison.causes) result.push_back(cause.path);
  return result;
}

using Paths = std::vector<std::string>;

// A product, then one that half precision cannot hold; a weight of the first is a unit off besides its rounding.
GraphBuilder beyond_half(DType dtype, double first_weight) {
  const bool is_half = dtype == DType::float16;
  GraphBuilder builder(17);
  builder.input("x", "float32[4,4]");
  builder.initializer("w", square(dtype, 0.1, [&](int64_t index) { return index == 0 ? first_weight : 1; }));
  builder.initializer("gain", one_element(dtype, 60000));
  const char* given = "x";
  if (is_half) builder.node("Cast", {"x"}, {"x_half"}, {{"to", int64_t{10}}});
  if (is_half) given = "x_half";
  const std::string type = std::string(name_of(dtype)) + "[4,4]";
  for (const char* name : {"product", "bent", "large", "less"}) builder.declare(name, type);
  builder.node("MatMul", {given, "w"}, {"product"}).node("Softsign", {"product"}, {"bent"});
  builder.node("Mul", {"product", "gain"}, {"large"}).node("Sub", {"large", "bent"}, {"less"});
  builder.node("Neg", {"less"}, {is_half ? "y_half" : "y"});
  if (is_half) builder.declare("y_half", type).node("Cast", {"y_half"}, {"y"}, {{"to", int64_t{1}}});
  return builder.output("y"), builder;
}

TEST_F(BlameRanking, WhatLeavesTheRangeOfNumbersComesBeforeRounding) {
  const Comparison comparison = blame(beyond_half(DType::float32, 1), beyond_half(DType::float16, 1.002));
  ASSERT_EQ(paths_of_causes(comparison), Paths{"large"});
  EXPECT_NE(comparison.causes.front().why.find("more than float16 can hold"), std::string::npos)
      << comparison.causes.front().why;
  EXPECT_EQ(comparison.causes.front().side, Side::b);
}

// A constant is what it is: its reader is the cause, once.
TEST_F(BlameRanking, AnInfiniteConstantIsNamedWithItsReader) {
  const auto masked = [](double mask) {
    GraphBuilder builder(17);
    builder.input("x", "float32[4,4]").initializer("c", one_element(DType::float32, mask));
    builder.node("Identity", {"c"}, {"mask"}).node("Min", {"x", "mask"}, {"least"});
    return builder.node("Exp", {"least"}, {"y"}).output("y"), builder;
  };
  const Comparison comparison = blame(masked(0), masked(-std::numeric_limits<double>::infinity()));
  ASSERT_EQ(comparison.causes.size(), 1U);
  EXPECT_NE(comparison.causes.front().why.find("reads another constant"), std::string::npos);
}

GraphBuilder two_products(const Tensor& first, const Tensor& second, bool quantizes = false) {
  GraphBuilder builder(17);
  builder.input("x", "float32[4,4]").initializer("w", first).initializer("v", second);
  builder.node("MatMul", {"x", "w"}, {"product"});
  if (quantizes) {
    builder.initializer("step", one_element(DType::float32, 0.01)).initializer("zero", one_element(DType::int8, 0));
    builder.node("QuantizeLinear", {"product", "step", "zero"}, {"steps"});
    builder.node("DequantizeLinear", {"steps", "step", "zero"}, {"rough"});
  }
  builder.node("Tanh", {quantizes ? "rough" : "product"}, {"bent"});
  builder.node("MatMul", {"bent", "v"}, {"y"}).output("y");
  return builder;
}

TEST_F(BlameRanking, ListsOnlyWhatExceedsAUsersLimit) {
  const Tensor w = square(DType::float32, 0.1), v = square(DType::float32, 0.2);
  const GraphBuilder a = two_products(w, v), b = two_products(square(DType::float32, 0.1001), transposed(v));
  EXPECT_EQ(paths_of_causes(blame(a, b, tolerances(0.1, 0.1))), Paths{"y"});
  EXPECT_EQ(paths_of_causes(blame(a, b)),
            (Paths{"y", "product"}));  // the table's limit is below both; the larger first
}

// B calls what it quantizes as A calls what stands for the quantized: the user's limit is that of the pair.
TEST_F(BlameRanking, AUsersLimitHoldsForPairsOfOtherNames) {
  const Tensor w = square(DType::float32, 0.1), v = square(DType::float32, 0.2);
  const Comparison comparison = blame(two_products(w, v), two_products(w, transposed(v), true), tolerances(0.1, 0.1));
  EXPECT_EQ(paths_of_causes(comparison), Paths{"y"});
}

// Small differences everywhere may add up: then they are the only causes to report.
TEST_F(BlameRanking, ManySmallChangesAreCausesWhereNoneIsLarge) {
  const Tensor w = square(DType::float32, 0.1), v = square(DType::float32, 0.2);
  const Tensor more = square(DType::float32, 0.1003);
  const Comparison comparison = blame(two_products(w, v), two_products(more, v), tolerances(0, 0.0035));
  ASSERT_FALSE(comparison.causes.empty());
  EXPECT_EQ(comparison.causes.front().path, "product");
}

// Another definition that stays within the limits of its value is named, after one that does not.
TEST_F(BlameRanking, WhatIsWithinItsLimitsComesLast) {
  const Tensor w = square(DType::float32, 0.1), v = square(DType::float32, 0.2);
  const Tensor more = square(DType::float32, 0.1 * (1 + 1.5e-6));
  EXPECT_EQ(paths_of_causes(blame(two_products(w, v), two_products(more, transposed(v)))), (Paths{"y", "product"}));
}

// A folds nothing, B holds what follows from shapes as a constant: a wrong one is its reader's.
TEST_F(BlameRanking, AConstantInPlaceOfWhatFollowsFromShapes) {
  const auto mean = [](bool is_folded, double count) {
    GraphBuilder builder(17);
    builder.input("x", "float32[4,4]");
    if (is_folded) {
      builder.initializer("count", one_element(DType::float32, count));
    } else {
      builder.node("Size", {"x"}, {"size"}).node("Cast", {"size"}, {"count"}, {{"to", int64_t{1}}});
    }
    builder.node("Exp", {"x"}, {"e"}).node("Div", {"e", "count"}, {"part"});
    return builder.node("Tanh", {"part"}, {"y"}).output("y"), builder;
  };
  const Comparison comparison = blame(mean(false, 0), mean(true, 17));
  ASSERT_EQ(paths_of_causes(comparison), Paths{"part"});
  EXPECT_EQ(comparison.causes.front().op, "Div");
  EXPECT_NE(comparison.causes.front().why.find("what A computes of shapes differs: it is 17 in B and 16 in A"),
            std::string::npos)
      << comparison.causes.front().why;
}

GraphBuilder sum_of(const char* first) {
  GraphBuilder builder(17);
  builder.input("x", "float32[4,4]").initializer("one", square(DType::float32, 1));
  builder.node("Add", {first, "one"}, {"sum"}).node("Mul", {"sum", "x"}, {"scaled"}).node("Tanh", {"scaled"}, {"y"});
  return builder.output("y"), builder;
}

// On one side the node makes a constant of constants: it is the same node all the same.
TEST_F(BlameRanking, ANodeThatReadsAConstantInPlaceOfAValue) {
  for (const bool is_swapped : {false, true}) {
    const char *read_a = is_swapped ? "one" : "x", *read_b = is_swapped ? "x" : "one";
    const Comparison comparison = blame(sum_of(read_a), sum_of(read_b));
    ASSERT_EQ(paths_of_causes(comparison), Paths{"sum"});
    EXPECT_EQ(comparison.causes.front().why, fmt::format("B reads '{}' where A reads '{}'", read_b, read_a));
    ASSERT_TRUE(comparison.first_divergence.has_value());
    EXPECT_EQ(comparison.first_divergence->path, "sum");
    EXPECT_EQ(std::ranges::count(comparison.values, "sum", &ValueComparison::path), 1);
  }
}

GraphBuilder loop_of(const char* first) {
  GraphBuilder body(17);
  body.input("i", "int64").input("go", "bool").input("state", "float32[4,4]").outer("one").outer("x");
  body.node("Add", {first, "one"}, {"next"}).node("Mul", {"next", "x"}, {"scaled"}).node("Identity", {"go"}, {"on"});
  body.output("on").output("next").output("scaled");
  const std::shared_ptr<Graph> inner = body.body();
  link_graph(*inner);
  GraphBuilder builder(17);
  builder.input("x", "float32[4,4]").initializer("one", square(DType::float32, 1)).number("trips", 3);
  builder.node("Loop", {"trips", "", "x"}, {"last", "all"}, {{"body", inner}});
  builder.node("ReduceSum", {"all"}, {"y"}).output("last").output("y");
  return builder;
}

TEST_F(BlameRanking, ANodeOfABodyThatReadsAConstantInPlaceOfAValue) {
  for (const bool is_swapped : {false, true}) {
    const Comparison comparison = blame(loop_of(is_swapped ? "one" : "state"), loop_of(is_swapped ? "state" : "one"));
    ASSERT_EQ(comparison.causes.size(), 1U);
    EXPECT_EQ(comparison.causes.front().op, "Add");
    EXPECT_EQ(comparison.causes.front().path, "Loop_0.body[0]//next");
  }
}

// Elements moved in four steps, or at once.
GraphBuilder moved(bool is_folded, const char* activation) {
  using Axes = std::vector<int64_t>;
  GraphBuilder builder(17);
  builder.input("x", "float32[4,4]").initializer("w", square(DType::float32, 0.1));
  builder.numbers("split", {1, 8, 2, 1}).numbers("merged", {2, 8, 1}).numbers("parted", {1, 2, 1, 8});
  builder.node("MatMul", {"x", "w"}, {"product"}).node("Reshape", {"product", "split"}, {"heads"});
  if (is_folded) {
    builder.node("Transpose", {"heads"}, {"transposed"}, {{"perm", Axes{0, 2, 3, 1}}});
  } else {
    builder.node("Transpose", {"heads"}, {"first"}, {{"perm", Axes{0, 2, 1, 3}}});
    builder.node("Reshape", {"first", "merged"}, {"flat"});
    builder.node("Transpose", {"flat"}, {"second"}, {{"perm", Axes{0, 2, 1}}});
    builder.node("Reshape", {"second", "parted"}, {"transposed"});
  }
  builder.node("Exp", {"transposed"}, {"grown"}).node("Neg", {"grown"}, {"less"});
  builder.node(activation, {"less"}, {"y"}).output("y");
  return builder;
}

TEST_F(BlameRanking, MovesThatWereFoldedAreNoPairOfTheirParts) {
  const Comparison comparison = blame(moved(false, "Tanh"), moved(true, "Softsign"));
  ASSERT_EQ(paths_of_causes(comparison), Paths{"y"});
  EXPECT_EQ(comparison.causes.front().op, "Tanh");
}

// Moved otherwise, and not undone by what follows: that is the fault.
TEST_F(BlameRanking, AnotherPermutationIsACause) {
  using Axes = std::vector<int64_t>;
  const auto permuted = [](const Axes& axes) {
    GraphBuilder builder(17);
    builder.input("x", "float32[4,4]").numbers("split", {1, 8, 2, 1});
    builder.node("Reshape", {"x", "split"}, {"heads"}).node("Transpose", {"heads"}, {"transposed"}, {{"perm", axes}});
    builder.node("Exp", {"transposed"}, {"grown"}).numbers("square", {4, 4});
    builder.node("Reshape", {"grown", "square"}, {"y"}).output("y");
    return builder;
  };
  const Comparison comparison = blame(permuted({0, 2, 1, 3}), permuted({0, 1, 2, 3}));
  ASSERT_FALSE(comparison.causes.empty());
  EXPECT_EQ(comparison.causes.front().path, "transposed");
}

// A comparison hides another index: that the two agree after it does not make the index another value.
TEST_F(BlameRanking, AnExactValueIsJudgedThoughAComparisonHidesIt) {
  const auto picking = [](const char* pick, bool hands_it_out) {
    GraphBuilder builder(17);
    builder.input("x", "float32[4,4]").numbers("end", {9});
    builder.node(pick, {"x"}, {"token"}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}});
    builder.node("Equal", {"token", "end"}, {"done"}).node("Not", {"done"}, {"y"}).output("y");
    if (hands_it_out) builder.output("token");
    return builder;
  };
  for (const bool hands_it_out : {false, true}) {
    const Comparison comparison = blame(picking("ArgMax", hands_it_out), picking("ArgMin", hands_it_out));
    EXPECT_EQ(comparison.verdict, OverallVerdict::diverged) << hands_it_out;
    ASSERT_EQ(paths_of_causes(comparison), Paths{"token"}) << hands_it_out;
    EXPECT_EQ(comparison.causes.front().op, "ArgMax");
  }
}

}  // namespace
}  // namespace parallax
