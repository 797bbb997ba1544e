// SPDX-License-Identifier: Apache-2.0
// Constants of two models that differ: what the inputs alone hide is a difference, another way to write the same is
// none, with and without a fault elsewhere.
#include <algorithm>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "inspector/diff/compare/compare.h"
#include "inspector/diff/localize/blame.h"
#include "inspector/executors/make_executor.h"
#include "tests/inspector/diff/dump_fixture.h"

namespace parallax {
namespace hidden_constants_test {

using testing::finished_model;
using testing::GraphBuilder;
using testing::sines;

template <class T>
Tensor list(const std::vector<T>& values) {
  return Tensor::vector<T>(values);
}

Tensor bools(const std::vector<bool>& values) {
  Tensor tensor = Tensor::allocate(DType::bool_, Shape{static_cast<int64_t>(values.size())}).take();
  std::ranges::copy(values, tensor.mutable_as<bool>().begin());
  return tensor;
}

class HiddenConstants : public testing::DumpTest {
 protected:
  Comparison blame(const GraphBuilder& a, const GraphBuilder& b) { return blame_on(sines({4, 4}, 1, 0.7), a, b); }

  // Nothing that is computed differs; the constant does, and is named with its reader.
  void expect_found(const GraphBuilder& a, const GraphBuilder& b, const std::string& constant, const std::string& op) {
    const Comparison comparison = blame(a, b);
    EXPECT_EQ(comparison.verdict, OverallVerdict::diverged) << constant;
    ASSERT_TRUE(comparison.first_divergence.has_value()) << constant;
    EXPECT_EQ(comparison.first_divergence->path, constant);
    EXPECT_EQ(comparison.first_divergence->op, op);
    EXPECT_EQ(comparison.summary.diverged, 1) << constant;
    ASSERT_EQ(comparison.causes.size(), 1U) << constant;
    EXPECT_EQ(comparison.causes.front().op, op);
  }
};

// ---- Hidden by the inputs ----

TEST_F(HiddenConstants, OfAWhereBetweenTwoValuesThatAreEqualHere) {
  const auto chosen = [](const std::vector<bool>& mask) {
    GraphBuilder builder(18);
    builder.input("x", "float32[4,4]").initializer("mask", bools(mask));
    builder.node("Abs", {"x"}, {"size"}).node("Neg", {"size"}, {"less"}).node("Relu", {"less"}, {"none"});
    builder.node("Sub", {"x", "x"}, {"nothing"}).node("Where", {"mask", "none", "nothing"}, {"chosen"});
    return builder.node("Add", {"chosen", "x"}, {"y"}).output("y"), builder;
  };
  expect_found(chosen({true, true, false, false}), chosen({true, false, false, false}), "mask", "Where");
}

TEST_F(HiddenConstants, OfAGatherFromRowsThatAreEqualHere) {
  const auto picked = [](const std::vector<int64_t>& rows) {
    GraphBuilder builder(18);
    builder.input("x", "float32[4,4]").numbers("rows", rows).node("Sub", {"x", "x"}, {"nothing"});
    builder.node("Gather", {"nothing", "rows"}, {"picked"}).node("Cos", {"picked"}, {"y"}).output("y");
    return builder;
  };
  expect_found(picked({0, 1}), picked({0, 3}), "rows", "Gather");
}

TEST_F(HiddenConstants, OfIntegersThatMeetZerosOrABound) {
  const auto scaled = [](int64_t factor, int64_t most) {
    GraphBuilder builder(18);
    builder.input("x", "float32[4,4]").number("factor", factor).number("most", most).number("none", 0);
    builder.declare("whole", "int64[4,4]").node("Cast", {"x"}, {"whole"}, {{"to", int64_t{7}}});
    builder.node("Mul", {"whole", "none"}, {"zeros"}).node("Mul", {"zeros", "factor"}, {"still"});
    return builder.node("Clip", {"still", "", "most"}, {"y"}).output("y"), builder;
  };
  expect_found(scaled(3, 50), scaled(5, 50), "factor", "Mul");
  expect_found(scaled(3, 50), scaled(3, 60), "most", "Clip");
}

TEST_F(HiddenConstants, OfAConstantNode) {
  const auto clipped = [](float most) {
    GraphBuilder builder(18);
    StoredTensor stored;
    stored.tensor = Tensor::scalar(most);
    builder.input("x", "float32[4,4]").node("Constant", {}, {"most"}, {{"value", stored}});
    builder.last_node().attributes.front().type = AttributeType::tensor;
    return builder.node("Clip", {"x", "", "most"}, {"y"}).output("y"), builder;
  };
  expect_found(clipped(50), clipped(60), "most", "Clip");
}

// A square: the wrong dimension is as long as the right one.
TEST_F(HiddenConstants, OfWhichDimensionIsTaken) {
  const auto measured = [](int64_t axis) {
    GraphBuilder builder(18);
    builder.input("x", "float32[?,?]").number("axis", axis).node("Shape", {"x"}, {"shape"});
    builder.declare("size", "float32").node("Gather", {"shape", "axis"}, {"count"});
    builder.node("Cast", {"count"}, {"size"}, {{"to", int64_t{1}}}).node("Div", {"x", "size"}, {"y"}).output("y");
    return builder;
  };
  expect_found(measured(0), measured(1), "axis", "Gather");
}

// ---- Another way to write the same ----

struct Written {
  std::vector<int64_t> shape = {2, 2, -1};
  int64_t start = -2, end = 4, axis = -1, last = -1;
  std::string first = "Relu", final = "Tanh";
  double weight = 0.5;
};

// The shape, the bounds of a Slice and axes, all after one activation and before another.
GraphBuilder written(const Written& as) {
  GraphBuilder builder(18);
  builder.input("x", "float32[4,4]").initializer("w", sines({4, 4}, as.weight, 1.3)).numbers("shape", as.shape);
  builder.numbers("start", {as.start}).numbers("end", {as.end}).numbers("axis", {as.axis}).numbers("last", {as.last});
  builder.numbers("zero", {0});
  builder.node("MatMul", {"x", "w"}, {"product"}).node(as.first, {"product"}, {"bent"});
  builder.node("Slice", {"bent", "start", "end", "axis"}, {"part"}).node("Shape", {"part"}, {"dims"});
  builder.node("Gather", {"dims", "zero"}, {"rows"});
  builder.node("Concat", {"rows", "last"}, {"both"}, {{"axis", int64_t{0}}})
      .node("Reshape", {"part", "both"}, {"flat"});
  builder.node("Reshape", {"flat", "shape"}, {"blocks"}).node("ReduceSum", {"blocks", "axis"}, {"sums"});
  return builder.node(as.final, {"sums"}, {"y"}).output("y"), builder;
}

// The sentences about equivalent constants, one a line.
std::string reported(const Comparison& comparison) {
  std::string text;
  for (const ValueComparison& value : comparison.values) {
    if (value.verdict == Verdict::not_compared) text += fmt::format("{}: {}\n", value.path, reason_text(value));
  }
  return text;
}

TEST_F(HiddenConstants, ShapesAxesAndIndicesMayBeEquivalentConstants) {
  const Written other = {.shape = {2, 2, 2}, .start = 2, .end = 1 << 20, .last = 2};
  Written wrong_first = other, wrong_final = other, wrong_weight = other;
  wrong_first.first = "Abs";
  wrong_final.final = "Sigmoid";
  wrong_weight.weight = 0.7;
  const Comparison comparison = blame(written({}), written(other));
  EXPECT_EQ(comparison.verdict, OverallVerdict::pass);
  const std::string same = "another constant, to the same effect\n";
  const std::string expected = "shape: " + same + "shape: absent in A\nstart: " + same +
                               "start: absent in A\nend: " + same + "end: absent in A\nlast: " + same +
                               "last: absent in A\nboth: " + same + "both: absent in A\n";
  EXPECT_EQ(reported(comparison), expected);
  for (const auto& [faulty, first, op] :
       {std::tuple(wrong_first, "bent", "Relu"), {wrong_final, "y", "Tanh"}, {wrong_weight, "w", "MatMul"}}) {
    const Comparison found = blame(written({}), written(faulty));
    ASSERT_TRUE(found.first_divergence.has_value()) << first;
    EXPECT_EQ(found.first_divergence->path, first);
    EXPECT_EQ(reported(found), expected) << first;
    ASSERT_EQ(found.causes.size(), 1U) << first << ": " << found.causes.back().why;
    EXPECT_EQ(found.causes.front().op, op);
  }
}

TEST_F(HiddenConstants, AnotherShapeIsADifference) {
  const Written other = {.shape = {4, 1, 2}};
  EXPECT_EQ(blame(written({}), written(other)).verdict, OverallVerdict::diverged);
}

// From the other end of an axis whose length both models know.
TEST_F(HiddenConstants, AnIndexMayBeCountedFromTheOtherEnd) {
  const auto picked = [](int64_t index) {
    GraphBuilder builder(18);
    builder.input("x", "float32[4,4]").number("index", index);
    builder.node("Gather", {"x", "index"}, {"row"}, {{"axis", int64_t{1}}}).node("Cos", {"row"}, {"y"}).output("y");
    return builder;
  };
  EXPECT_EQ(blame(picked(-1), picked(3)).verdict, OverallVerdict::pass);
  EXPECT_EQ(blame(picked(-1), picked(2)).verdict, OverallVerdict::diverged);
}

// Quantized values and their zero point are shifted together: the results are the same whatever the inputs.
TEST_F(HiddenConstants, WeightsOfOtherQuantizedValuesAreTheSame) {
  const auto quantized = [](const auto& values, auto zero_point) {
    GraphBuilder builder(18);
    builder.input("x", "float32[4,4]")
        .initializer("quantized", list(values))
        .initializer("scale", Tensor::scalar(0.1F));
    builder.initializer("zero_point", Tensor::scalar(zero_point)).numbers("square", {4, 4});
    builder.node("DequantizeLinear", {"quantized", "scale", "zero_point"}, {"numbers"});
    builder.node("Reshape", {"numbers", "square"}, {"w"}).node("MatMul", {"x", "w"}, {"y"}).output("y");
    return builder;
  };
  std::vector<int8_t> plain;
  std::vector<uint8_t> raised, higher, wrong;
  for (int index = 0; index < 16; ++index) {
    const int value = (index * 37) % 90 - 40;
    plain.push_back(static_cast<int8_t>(value));
    raised.push_back(static_cast<uint8_t>(value + 128));
    higher.push_back(static_cast<uint8_t>(value + 129));
  }
  wrong = higher;
  ++wrong[5];
  const GraphBuilder of_bytes = quantized(raised, uint8_t{128});
  EXPECT_EQ(blame(quantized(plain, int8_t{0}), of_bytes).verdict, OverallVerdict::pass);
  EXPECT_EQ(blame(of_bytes, quantized(higher, uint8_t{129})).verdict, OverallVerdict::pass);
  EXPECT_EQ(blame(of_bytes, quantized(wrong, uint8_t{129})).verdict, OverallVerdict::diverged);
}

// ---- Operators before a quantizer that holds what they make at its least quantized value ----

GraphBuilder held_at_least(const char* op, DType dtype, const std::string& prefix) {
  GraphBuilder builder(18);
  const auto in_model = [&](const char* name) { return prefix + name; };
  const bool is_signed = dtype == DType::int8;
  builder.input("x", "float32[4,4]")
      .initializer("w", sines({4, 4}, 0.5, 1.3))
      .initializer("v", sines({4, 4}, 0.7, 2.9));
  builder.initializer("scale", Tensor::scalar(0.01F));
  builder.initializer("zero_point", is_signed ? Tensor::scalar(int8_t{-128}) : Tensor::scalar(uint8_t{0}));
  builder.node("MatMul", {"x", "w"}, {in_model("product")}).node(op, {in_model("product")}, {in_model("bent")});
  builder.node("QuantizeLinear", {in_model("bent"), "scale", "zero_point"}, {in_model("quantized")});
  builder.node("DequantizeLinear", {in_model("quantized"), "scale", "zero_point"}, {in_model("held")});
  builder.node("MatMul", {in_model("held"), "v"}, {in_model("sum")});
  return builder.node("Tanh", {in_model("sum")}, {"y"}).output("y"), builder;
}

TEST_F(HiddenConstants, AnotherQuantizedTypeHidesNoOperator) {
  for (const DType dtype : {DType::uint8, DType::int8}) {
    for (const std::string prefix : {"", "other_"}) {
      const GraphBuilder right = held_at_least("Relu", DType::uint8, "");
      EXPECT_EQ(blame(right, held_at_least("Relu", dtype, prefix)).verdict, OverallVerdict::pass) << prefix;
      const Comparison comparison = blame(right, held_at_least("LeakyRelu", dtype, prefix));
      EXPECT_EQ(comparison.verdict, OverallVerdict::diverged) << name_of(dtype) << prefix;
      ASSERT_TRUE(comparison.first_divergence.has_value()) << name_of(dtype) << prefix;
      EXPECT_EQ(comparison.first_divergence->path, "bent");
      ASSERT_EQ(comparison.causes.size(), 1U) << comparison.causes.back().why;
      EXPECT_EQ(comparison.causes.front().op, "Relu");
    }
  }
}

// Nothing but its reader says that what an Identity hands on stands for what the operator made.
TEST_F(HiddenConstants, WhatOneNodeReadsInBothModelsIsAPair) {
  for (const DType dtype : {DType::uint8, DType::int8}) {
    const Comparison comparison =
        blame(held_at_least("LeakyRelu", DType::uint8, ""), held_at_least("Identity", dtype, "other_"));
    EXPECT_EQ(comparison.verdict, OverallVerdict::diverged) << name_of(dtype);
    ASSERT_EQ(comparison.causes.size(), 1U) << name_of(dtype);
    EXPECT_EQ(comparison.causes.front().path, "bent");
    EXPECT_EQ(comparison.causes.front().op, "LeakyRelu");
  }
}

// Quantized values of another type are compared as the numbers that they represent: later nodes are not blamed for an
// operator before them.
TEST_F(HiddenConstants, AnOperatorThatIsLeftOutIsTheOnlyCause) {
  const auto without = [](const char* op, DType dtype) {
    const bool is_signed = dtype == DType::int8;
    GraphBuilder builder(18);
    builder.input("x", "float32[4,4]").initializer("scale", Tensor::scalar(0.01F));
    builder.initializer("zero_point", is_signed ? Tensor::scalar(int8_t{-128}) : Tensor::scalar(uint8_t{0}));
    builder.node("Exp", {"x"}, {"grown"});
    if (*op != 0) builder.node(op, {"grown"}, {"bent"});
    builder.node("QuantizeLinear", {*op != 0 ? "bent" : "grown", "scale", "zero_point"}, {"quantized"});
    builder.node("DequantizeLinear", {"quantized", "scale", "zero_point"}, {"held"}).node("Neg", {"held"}, {"y"});
    return builder.output("y"), builder;
  };
  const Comparison comparison = blame(without("Tanh", DType::uint8), without("", DType::int8));
  ASSERT_EQ(comparison.causes.size(), 1U) << comparison.causes.back().why;
  EXPECT_EQ(comparison.causes.front().op, "Tanh");
}

}  // namespace hidden_constants_test
}  // namespace parallax
