// SPDX-License-Identifier: Apache-2.0
// Which node a comparison names first, when what diverged first is a constant that bodies read.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "inspector/diff/comparison.h"

namespace parallax {
namespace {

ValueComparison value(const std::string& path, const std::string& node, const std::string& op, Verdict verdict) {
  ValueComparison result;
  result.path = path;
  result.node = node;
  result.op = op;
  result.verdict = verdict;
  return result;
}

FirstDivergence first_of(std::vector<ValueComparison> values) {
  Comparison comparison;
  comparison.values = std::move(values);
  conclude(comparison);
  EXPECT_EQ(comparison.verdict, OverallVerdict::diverged);
  const FirstDivergence first = comparison.first_divergence.value_or(FirstDivergence{});
  const auto entry = std::ranges::find(comparison.values, first.path, &ValueComparison::path);
  if (entry != comparison.values.end()) {
    EXPECT_EQ(entry->node, first.node) << "the document's two entries are to agree";
    EXPECT_EQ(entry->op, first.op);
  }
  return comparison.first_divergence.value_or(FirstDivergence{});
}

constexpr Verdict kPass = Verdict::pass;
constexpr Verdict kDiverged = Verdict::diverged;

TEST(FirstDivergence, AConstantReadInABodyIsNamedWithTheBodysNode) {
  const FirstDivergence first =
      first_of({value("w", "loop//1", "Loop", kDiverged), value("other", "later", "Add", kDiverged),
                value("loop%2F%2F1.body[0]//a", "scale", "Mul", kPass),
                value("loop%2F%2F1.body[0]//c", "choose", "If", kDiverged),
                value("loop%2F%2F1.body[0]//b", "project", "MatMul", kDiverged)});
  EXPECT_EQ(first.path, "w");
  EXPECT_EQ(first.node, "project");
  EXPECT_EQ(first.op, "MatMul");
}

TEST(FirstDivergence, WithoutAnyTraceInTheBodyTheControlFlowNodeIsNamed) {
  const FirstDivergence first =
      first_of({value("w", "loop", "Loop", kDiverged), value("loop.body[0]//a", "scale", "Mul", kPass),
                value("loop2.body[0]//a", "other", "Mul", kDiverged)});
  EXPECT_EQ(first.node, "loop");
}

TEST(FirstDivergence, AConstantHandedToABodyIsNamedWithTheControlFlowNode) {
  const FirstDivergence first =
      first_of({value("w", "scan", "Scan", kDiverged), value("scan.body[0]//slice", "", "", kDiverged),
                value("scan.body[0]//a", "scale", "Mul", kDiverged)});
  EXPECT_EQ(first.node, "scan");
  EXPECT_EQ(first.op, "Scan");
}

TEST(FirstDivergence, WhatABodyIsGivenIsNamedWithTheNodeThatHasTheBody) {
  const FirstDivergence first =
      first_of({value("x", "call", "Neg", kPass), value("outer.body[1]//call.call//given", "", "", kDiverged),
                value("outer.body[1]//call.call//made", "scale", "Mul", kDiverged),
                value("outer.body[1]//y", "call", "my_function", kDiverged)});
  EXPECT_EQ(first.path, "outer.body[1]//call.call//given");
  EXPECT_EQ(first.node, "call");
  EXPECT_EQ(first.op, "my_function");
  EXPECT_EQ(first_of({value("x", "", "", kDiverged)}).node, "") << "nothing makes an input";
}

TEST(FirstDivergence, AConstantReadInItsOwnGraphIsNamedWithItsReader) {
  const FirstDivergence first =
      first_of({value("w", "project", "MatMul", kDiverged), value("project.body[0]//a", "odd", "Mul", kDiverged)});
  EXPECT_EQ(first.node, "project");
}

TEST(FirstDivergence, InsideABodyItsFramesAreKept) {
  const FirstDivergence first = first_of({value("outer.body[1]//w", "inner", "If", kDiverged),
                                          value("inner.then//a", "elsewhere", "Mul", kDiverged),
                                          value("outer.body[1]//inner.then//a", "here", "Mul", kDiverged)});
  EXPECT_EQ(first.node, "here");
}

TEST(FirstDivergence, AConstantThatANodeMakesIsNamedWithItsReader) {
  ValueComparison most = value("most", "Constant_1", "Constant", kDiverged);
  most.reader = "clip";
  most.reader_op = "Clip";
  const FirstDivergence first = first_of({value("x", "", "", kPass), most});
  EXPECT_EQ(first.path, "most");
  EXPECT_EQ(first.node, "clip");
  EXPECT_EQ(first.op, "Clip");
}

TEST(FirstDivergence, IsWhereAnOutputIsNotAsExpectedWhenTheSidesAgree) {
  Comparison comparison;
  comparison.values = {value("x", "", "", kPass), value("y", "add", "Add", kPass)};
  comparison.expected = {value("y", "add", "Add", kPass), value("y", "add", "Add", kDiverged)};
  conclude(comparison);
  EXPECT_EQ(comparison.verdict, OverallVerdict::diverged);
  ASSERT_TRUE(comparison.first_divergence.has_value());
  EXPECT_EQ(comparison.first_divergence->path, "y");
  EXPECT_EQ(comparison.first_divergence->node, "add");
  EXPECT_TRUE(comparison.first_divergence->is_from_expected);
  comparison.values.front().verdict = kDiverged;
  conclude(comparison);
  EXPECT_EQ(comparison.first_divergence->path, "x") << "where the sides part comes before";
}

ValueComparison of_other_shape(const std::string& path, bool is_output, bool is_same_count = false) {
  ValueComparison result = value(path, "maker of " + path, "Reshape", Verdict::not_compared);
  result.reason = "shape differs";
  result.shape_a = "[6,3]";
  result.shape_b = is_same_count ? "[3,6]" : "[18,3]";
  result.is_same_count = is_same_count;
  result.is_graph_output = is_output;
  return result;
}

TEST(FirstDivergence, AnOutputOfAnotherShapeHasDiverged) {
  Comparison comparison;
  comparison.values = {value("a", "n", "Add", kPass), of_other_shape("permuted", false, true),
                       of_other_shape("boxes", false), of_other_shape("y", true)};
  for (int round = 0; round < 2; ++round) {  // concluded once more after a diagnosis
    conclude(comparison);
    EXPECT_EQ(comparison.verdict, OverallVerdict::diverged);
    EXPECT_EQ(comparison.reason, "");
    EXPECT_EQ(comparison.values[3].verdict, Verdict::diverged);
    EXPECT_TRUE(std::isinf(comparison.values[3].severity));
    EXPECT_EQ(comparison.values[2].verdict, Verdict::not_compared);
    EXPECT_EQ(comparison.summary.diverged, 1);
    ASSERT_TRUE(comparison.first_divergence.has_value());
    EXPECT_EQ(comparison.first_divergence->path, "boxes");  // a permuted one may hold the same
  }
}

TEST(FirstDivergence, InputsOfAnotherShapeLeaveOutputsUnjudged) {
  Comparison comparison;
  comparison.values = {of_other_shape("x", false), of_other_shape("y", true)};
  comparison.values[0].origin = Origin::input;
  conclude(comparison);
  EXPECT_EQ(comparison.verdict, OverallVerdict::inconclusive);
  EXPECT_FALSE(comparison.first_divergence.has_value());
}

TEST(FirstDivergence, AValueOfAnotherShapeThatNoOutputShowsIsNone) {
  Comparison comparison;
  comparison.values = {value("a", "n", "Add", kPass), of_other_shape("boxes", false), value("y", "m", "Add", kPass)};
  comparison.values[2].is_graph_output = true;
  conclude(comparison);
  EXPECT_EQ(comparison.verdict, OverallVerdict::pass);
}

}  // namespace
}  // namespace parallax
