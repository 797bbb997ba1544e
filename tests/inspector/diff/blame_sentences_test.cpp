// What is said of a cause is true: of a node in another's place, of constants behind nodes that move or fold them, of
// attributes that do nothing.
#include <string>

#include <gtest/gtest.h>

#include "inspector/diff/blame.h"
#include "inspector/diff/compare.h"
#include "inspector/executors/make_executor.h"
#include "tests/inspector/diff/dump_fixture.h"

namespace parallax {
namespace blame_sentences_test {

using testing::finished_model;
using testing::GraphBuilder;
using testing::sines;
using Axes = std::vector<int64_t>;

class BlameSentences : public testing::DumpTest {
 protected:
  // The first cause.
  Cause blame(const GraphBuilder& a, const GraphBuilder& b, const Tensor& x) {
    BlameRequest request;
    request.a.model = finished_model(a);
    request.b.model = finished_model(b);
    request.a.dump = run_into_dump(request.a.model, "a.plx", x);
    request.b.dump = run_into_dump(request.b.model, "b.plx", x);
    request.oracle = make_executor("reference:double").take();
    Comparison comparison = compare_dumps(*request.a.dump, *request.b.dump, {}, {}).take();
    EXPECT_TRUE(find_causes(request, comparison).ok());
    EXPECT_EQ(comparison.verdict, OverallVerdict::diverged);
    return comparison.causes.empty() ? Cause{} : comparison.causes.front();
  }
};

// A's node leaves these values as they are: B without its own would do so, too.
TEST_F(BlameSentences, ANodeThatStandsInAnothersPlaceIsNotInserted) {
  const auto scaled = [](const std::string& op) {
    GraphBuilder builder(17);
    builder.input("x", "float32[4,4]").initializer("one", Tensor::scalar(1.0F));
    builder.node("Tanh", {"x"}, {"bent"}).node(op, {"bent", "one"}, {"scaled"}).node("Exp", {"scaled"}, {"y"});
    return builder.output("y"), builder;
  };
  const Cause cause = blame(scaled("Mul"), scaled("Add"), sines({4, 4}, 1, 0.7));
  EXPECT_EQ(cause.node, "Mul_1");
  EXPECT_EQ(cause.why, "the operator is Add in B and Mul in A");
}

// Min(Max(x, 0), 4) and Max(Max(x, 0), 4): were B's 4 A's 0, both would agree here by chance. A may compute its 4.
TEST_F(BlameSentences, AnOperatorIsNamedBeforeConstantsThatMakeUpForIt) {
  const auto clamped = [](const std::string& op, bool is_computed) {
    GraphBuilder builder(17);
    builder.input("x", "float32[4,4]").initializer("low", Tensor::scalar(0.0F));
    builder.node("Abs", {"x"}, {"size"}).node("Max", {"size", "low"}, {"above"});
    if (is_computed) {
      builder.number("first", 0).node("Shape", {"x"}, {"shape"}).node("Gather", {"shape", "first"}, {"count"});
      builder.node("CastLike", {"count", "x"}, {"high"});
    } else {
      builder.initializer("high", Tensor::scalar(4.0F));
    }
    builder.node(op, {"above", "high"}, {"y"});
    return builder.output("y"), builder;
  };
  for (const bool is_computed : {false, true}) {
    const Cause cause = blame(clamped("Min", is_computed), clamped("Max", false), sines({4, 4}, 1, 0.7));
    EXPECT_EQ(cause.op, "Min");
    EXPECT_EQ(cause.why, "the operator is Max in B and Min in A") << is_computed;
  }
}

// The factor of a bias that is all zeros beside weights in steps; then of one that is not.
TEST_F(BlameSentences, AnAttributeThatDoesNothingIsNotNamedBesideConstantsThatDo) {
  const auto product = [](bool is_quantised, float beta, double bias) {
    GraphBuilder builder(17);
    builder.input("x", "float32[4,4]").initializer("bias", sines({4}, bias, 0.9));
    std::string x = "x", w = "w";
    if (is_quantised) {
      Tensor steps = Tensor::allocate(DType::int8, Shape{4, 4}).take();
      const Tensor exact = sines({4, 4}, 100, 1.3);
      for (size_t index = 0; index < 16; ++index)
        steps.mutable_as<int8_t>()[index] = static_cast<int8_t>(exact.as<float>()[index]);
      builder.initializer("steps", std::move(steps)).initializer("step", Tensor::scalar(0.01F));
      builder.node("DequantizeLinear", {"steps", "step"}, {"rough_w"});
      builder.initializer("zero", Tensor::scalar<int8_t>(0));
      builder.node("QuantizeLinear", {"x", "step", "zero"}, {"x_steps"});
      builder.node("DequantizeLinear", {"x_steps", "step", "zero"}, {"rough_x"});
      x = "rough_x", w = "rough_w";
    } else {
      builder.initializer("w", sines({4, 4}, 1, 1.3));
    }
    builder.node("Gemm", {x, w, "bias"}, {"y"}, {{"beta", beta}});
    return builder.output("y"), builder;
  };
  const Tensor x = sines({4, 4}, 1, 0.7);
  const Cause cause = blame(product(false, 0, 0), product(true, 1, 0), x);
  EXPECT_NE(cause.why.find("it reads another constant 'w'"), std::string::npos) << cause.why;
  EXPECT_EQ(blame(product(false, 0.5F, 1), product(false, 1, 1), x).why, "attribute beta is 1 in B and 0.5 in A");
}

TEST_F(BlameSentences, AConstantThatIsMovedIsNamedAtTheNodeThatReadsIt) {
  const auto product = [](double scale) {
    GraphBuilder builder(17);
    builder.input("x", "float32[4,4]").initializer("w", sines({4, 4}, scale, 1.3));
    builder.node("Transpose", {"w"}, {"turned"}, {{"perm", Axes{1, 0}}}).node("Identity", {"turned"}, {"same"});
    builder.node("MatMul", {"x", "same"}, {"y"});
    return builder.output("y"), builder;
  };
  const Cause cause = blame(product(1), product(1.5), sines({4, 4}, 1, 0.7));
  EXPECT_EQ(cause.op, "Transpose");
  EXPECT_EQ(cause.why, "it reads another constant 'w': it is 1.5 times A's in B");
}

// A finds out of shapes which rows are there; B holds that, and other rows.
TEST_F(BlameSentences, WhatWasFoldedIsNamedWhereItIsRead) {
  const auto gathered = [](bool is_folded) {
    GraphBuilder builder(17);
    builder.input("x", "float32[4,4]").numbers("rows", is_folded ? Axes{0, 3, 2} : Axes{0, 1, 2}).numbers("axis", {0});
    if (!is_folded) {
      builder.node("Shape", {"x"}, {"shape"}).number("zero", 0).node("Gather", {"shape", "zero"}, {"count"});
      builder.node("Less", {"rows", "count"}, {"is_there"});
    } else {
      Tensor all = Tensor::allocate(DType::bool_, Shape{3}).take();
      for (bool& one : all.mutable_as<bool>()) one = true;
      builder.initializer("is_there", std::move(all));
    }
    builder.node("Compress", {"rows", "is_there"}, {"known"}, {{"axis", int64_t{0}}});
    builder.node("Gather", {"x", "known"}, {"y"}, {{"axis", int64_t{0}}});
    return builder.output("y"), builder;
  };
  const Cause cause = blame(gathered(false), gathered(true), sines({4, 4}, 1, 0.7));
  EXPECT_EQ(cause.op, "Compress");
  EXPECT_NE(cause.why.find("it reads another constant 'rows'"), std::string::npos) << cause.why;
}

// The second input lends its type alone.
TEST_F(BlameSentences, WhatWasCastLikeAValueIsFoldedToo) {
  const auto shifted = [](bool is_folded) {
    GraphBuilder builder(17);
    builder.input("x", "float32[4,4]").initializer("shift", Tensor::scalar(is_folded ? 1.25F : 1.0F));
    builder.node("Relu", {"x"}, {"bent"});
    if (!is_folded) builder.node("CastLike", {"shift", "bent"}, {"cast"});
    builder.node("Add", {"bent", is_folded ? "shift" : "cast"}, {"y"});
    return builder.output("y"), builder;
  };
  const Cause cause = blame(shifted(false), shifted(true), sines({4, 4}, 1, 0.7));
  EXPECT_EQ(cause.op, "Add");
  EXPECT_NE(cause.why.find("of types differs: it is 1.25 in B and 1 in A"), std::string::npos) << cause.why;
}

}  // namespace blame_sentences_test
}  // namespace parallax
