// SPDX-License-Identifier: Apache-2.0
// Causes between two models name B's node, say what differs in full, and stand in the order of what they introduce.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "inspector/tensor/elements.h"
#include "tests/inspector/diff/dump_fixture.h"

namespace parallax {
namespace node_in_b_test {

using testing::GraphBuilder;
using testing::sines;

class NodeInB : public testing::DumpTest {};

// A layer with a bias and an activation, under names of its own.
GraphBuilder layer(const std::string& stem, const std::string& activation, float scale = 1) {
  GraphBuilder builder(20);
  builder.input("x", "float32[4,6]").initializer(stem + "w", sines({6, 6}, 0.4 * scale, 0.7));
  builder.node("MatMul", {"x", stem + "w"}, {stem + "product"});
  builder.last_node().display_name = builder.last_node().name = stem + "project";
  std::string last = stem + "product";
  if (!activation.empty()) {
    builder.node(activation, {last}, {stem + "bent"});
    builder.last_node().display_name = builder.last_node().name = stem + "act";
    last = stem + "bent";
  }
  builder.node("Softmax", {last}, {"y"}, {{"axis", int64_t{-1}}});
  return builder.output("y");
}

TEST_F(NodeInB, IsTheNodeThatStandsForAs) {
  const Comparison weight = blame_on(sines({4, 6}, 1, 0.3), layer("", "Tanh"), layer("fused_", "Tanh", 2));
  ASSERT_FALSE(weight.causes.empty());
  EXPECT_EQ(weight.causes[0].node, "project");
  EXPECT_EQ(weight.causes[0].node_b, "fused_project");
  const Comparison replaced = blame_on(sines({4, 6}, 1, 0.3), layer("", "Tanh"), layer("fused_", "Sigmoid"));
  ASSERT_FALSE(replaced.causes.empty());
  EXPECT_EQ(replaced.causes[0].node, "act");
  EXPECT_EQ(replaced.causes[0].node_b, "fused_act");
}

TEST_F(NodeInB, IsNoneWhereBHasNone) {
  const Comparison missing = blame_on(sines({4, 6}, 1, 0.3), layer("", "Relu"), layer("", ""));
  ASSERT_FALSE(missing.causes.empty());
  EXPECT_EQ(missing.causes[0].node, "act");
  EXPECT_EQ(missing.causes[0].node_b, "");
  EXPECT_TRUE(missing.causes[0].why.starts_with("B has no Relu node here")) << missing.causes[0].why;
}

TEST_F(NodeInB, IsTheNodeItselfWhereOnlyBHasIt) {
  const Comparison inserted = blame_on(sines({4, 6}, 1, 0.3), layer("", ""), layer("", "Neg"));
  ASSERT_FALSE(inserted.causes.empty());
  EXPECT_EQ(inserted.causes[0].node, "act");
  EXPECT_EQ(inserted.causes[0].node_b, "act");
}

GraphBuilder softmax_of(int64_t opset, bool gives_axis) {
  GraphBuilder builder(opset);
  builder.input("x", "float32[2,3,4]").node("Tanh", {"x"}, {"bent"});
  if (gives_axis) {
    builder.node("Softmax", {"bent"}, {"y"}, {{"axis", int64_t{1}}});
  } else {
    builder.node("Softmax", {"bent"}, {"y"});
  }
  return builder.output("y");
}

// Softmax-13 counts the last axis where none is given, Softmax-11 the second, and all after it.
TEST_F(NodeInB, ADefaultThatChangedWithTheOpsetIsSaid) {
  const Comparison comparison = blame_on(sines({2, 3, 4}, 1, 0.7), softmax_of(11, false), softmax_of(13, false));
  ASSERT_FALSE(comparison.causes.empty());
  EXPECT_EQ(comparison.causes[0].why,
            "attribute axis is -1 (the default) in B and 1 (the default) in A: the nodes are Softmax-13 in B and "
            "Softmax-11 in A");
}

TEST_F(NodeInB, TwoVersionsOfAnOperatorAreSaidWhereNoDefaultDiffers) {
  const Comparison comparison = blame_on(sines({2, 3, 4}, 1, 0.7), softmax_of(11, true), softmax_of(13, true));
  ASSERT_FALSE(comparison.causes.empty());
  EXPECT_EQ(comparison.causes[0].why, "the node is Softmax-13 in B and Softmax-11 in A, which define it differently");
}

// LayerNormalization of a sum, and the same as one node of com.microsoft.
GraphBuilder normalized(bool is_fused, float epsilon) {
  GraphBuilder builder(17);
  builder.input("x", "float32[1,4,6]").node("Tanh", {"x"}, {"bent"}).node("Sigmoid", {"x"}, {"gate"});
  builder.initializer("weight", sines({6}, 1, 0.9)).initializer("bias", sines({6}, 0.1, 0.4));
  if (is_fused) {
    builder.node("com.microsoft.SkipLayerNormalization", {"bent", "gate", "weight", "bias"}, {"normal"},
                 {{"epsilon", epsilon}});
  } else {
    builder.node("Add", {"bent", "gate"}, {"sum"});
    builder.node("LayerNormalization", {"sum", "weight", "bias"}, {"normal"},
                 {{"axis", int64_t{-1}}, {"epsilon", epsilon}});
  }
  return builder.node("Neg", {"normal"}, {"y"}).output("y");
}

TEST_F(NodeInB, ANumberOfAFusedNodeIsNamedWithBoth) {
  const Comparison comparison =
      blame_on(sines({1, 4, 6}, 0.02, 0.7), normalized(false, 1e-5F), normalized(true, 1e-2F));
  ASSERT_EQ(comparison.causes.size(), 1U);
  const Cause& cause = comparison.causes[0];
  EXPECT_EQ(cause.op, "LayerNormalization");
  EXPECT_EQ(cause.node_b, "SkipLayerNormalization_2");
  EXPECT_EQ(cause.why,
            "attribute epsilon of B's SkipLayerNormalization 'SkipLayerNormalization_2' is 0.01, and A "
            "computes with 1e-05: with this both make the same");
}

TEST_F(NodeInB, AnEqualNumberOfAFusedNodeIsNoCause) {
  const Comparison comparison =
      blame_on(sines({1, 4, 6}, 0.02, 0.7), normalized(false, 1e-2F), normalized(true, 1e-2F));
  EXPECT_EQ(comparison.verdict, OverallVerdict::pass);
  EXPECT_TRUE(comparison.causes.empty());
}

// Two products, the first with a small fault.
GraphBuilder two_faults(float first, float second) {
  GraphBuilder builder(17);
  builder.input("x", "float32[4,6]");
  builder.initializer("v", sines({6, 6}, 0.4 * first, 0.7)).initializer("w", sines({6, 6}, 0.4 * second, 0.3));
  builder.node("MatMul", {"x", "v"}, {"one"}).node("Tanh", {"one"}, {"bent"});
  return builder.node("MatMul", {"bent", "w"}, {"y"}).output("y");
}

TEST_F(NodeInB, TheLargestFaultStandsFirst) {
  const Comparison comparison = blame_on(sines({4, 6}, 1, 0.3), two_faults(1, 1), two_faults(1.001F, 3));
  ASSERT_EQ(comparison.causes.size(), 2U);
  EXPECT_EQ(comparison.causes[0].node, "MatMul_2");
  EXPECT_EQ(comparison.causes[1].node, "MatMul_0");
  EXPECT_GT(comparison.causes[0].introduced, comparison.causes[1].introduced);
}

// x / max(|x|, epsilon), in float32 or between casts.
GraphBuilder divided(bool is_in_half) {
  GraphBuilder builder(17);
  const std::string type = is_in_half ? "float16[4,6]" : "float32[4,6]";
  builder.input("x", "float32[4,6]");
  Tensor epsilon = Tensor::scalar(1e-12F);
  if (is_in_half) {
    epsilon = Tensor::allocate(DType::float16, Shape{}).take();
    store_doubles(epsilon, 0, std::vector<double>{1e-12});
    builder.node("Cast", {"x"}, {"h"}, {{"to", int64_t{10}}}).declare("h", type);
  }
  const std::string read = is_in_half ? "h" : "x", made = is_in_half ? "made" : "y";
  builder.initializer("epsilon", epsilon).node("Relu", {read}, {"size"}).declare("size", type);
  builder.node("Max", {"size", "epsilon"}, {"bounded"}).declare("bounded", type);
  builder.node("Div", {"size", "bounded"}, {made}).declare(made, type);
  if (is_in_half) builder.node("Cast", {made}, {"y"}, {{"to", int64_t{1}}});
  return builder.declare("y", "float32[4,6]").output("y");
}

TEST_F(NodeInB, AConstantThatHalfPrecisionCannotHoldIsTheRootOfItsNaN) {
  const Comparison comparison = blame_on(sines({4, 6}, 1, 0.3), divided(false), divided(true));
  ASSERT_FALSE(comparison.causes.empty());
  const Cause& cause = comparison.causes[0];
  EXPECT_EQ(cause.op, "Max");
  EXPECT_EQ(cause.path, "bounded");
  EXPECT_TRUE(
      cause.why.starts_with("its constant 'epsilon' is 1e-12 in A and 0 in B: float16 holds no number as small"))
      << cause.why;
}

}  // namespace node_in_b_test
}  // namespace parallax
