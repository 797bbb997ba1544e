// SPDX-License-Identifier: Apache-2.0
// Which differences of two models make a difference: a difference without effect of its own is no cause next to one
// with an effect, which is named at its node.
#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "inspector/diff/compare/compare.h"
#include "inspector/diff/diagnose/find_causes.h"
#include "inspector/diff/localize_models/blame_models_effects.h"
#include "inspector/dump/dump_writer.h"
#include "inspector/executors/make_executor.h"
#include "inspector/model/io/import.h"
#include "inspector/model/link.h"
#include "tests/inspector/diff/dump_fixture.h"

namespace parallax {
namespace blame_effects_test {

using testing::finished_model;
using testing::GraphBuilder;
using testing::sines;
using Axes = std::vector<int64_t>;

class BlameEffects : public testing::DumpTest {
 protected:
  Comparison blame(const GraphBuilder& a, const GraphBuilder& b) { return blame_on(sines({4, 4}, 1, 0.7), a, b); }
};

// Operator and reason of the causes, one a line.
std::string reported(const Comparison& comparison) {
  std::string text;
  for (const Cause& cause : comparison.causes) text += fmt::format("{}: {}\n", cause.op, cause.why);
  return text;
}

const ValueComparison* value_at(const Comparison& comparison, const std::string& path) {
  const auto found = std::ranges::find(comparison.values, path, &ValueComparison::path);
  return found == comparison.values.end() ? nullptr : &*found;
}

// The shape holds no 0: the attribute says how one is read.
TEST_F(BlameEffects, AnAttributeWithoutEffectIsNoCauseNextToAFault) {
  const auto reshaped = [](int64_t allowzero, bool is_negated) {
    GraphBuilder builder(17);
    builder.input("x", "float32[4,4]").initializer("w", sines({4, 4}, 0.5, 1.3)).numbers("shape", {2, 8});
    builder.node("MatMul", {"x", "w"}, {"product"});
    builder.node("Reshape", {"product", "shape"}, {is_negated ? "before" : "parted"}, {{"allowzero", allowzero}});
    if (is_negated) builder.node("Neg", {"before"}, {"parted"});
    return builder.node("Relu", {"parted"}, {"y"}).output("y"), builder;
  };
  const Comparison comparison = blame(reshaped(1, false), reshaped(0, true));
  EXPECT_EQ(comparison.verdict, OverallVerdict::diverged);
  ASSERT_EQ(comparison.causes.size(), 1U) << reported(comparison);
  EXPECT_EQ(comparison.causes.front().op, "Neg");
  EXPECT_EQ(blame(reshaped(1, false), reshaped(0, false)).verdict, OverallVerdict::pass);
}

// A takes a part of a transposed value, B transposes the part: the parts have other shapes and are no counterparts.
TEST_F(BlameEffects, PartsOfEarlierAndLaterTransposesAreNoPair) {
  const auto parted = [](bool transposes_first, const char* activation) {
    GraphBuilder builder(17);
    builder.input("x", "float32[4,4]").numbers("heads_shape", {4, 2, 2}).number("one", 1);
    builder.initializer("w", sines({4, 4}, 0.5, 1.3)).initializer("bias", sines({4}, 0.37, 2.3));
    if (transposes_first) builder.node("MatMul", {"x", "w"}, {"scaled"}).node("Add", {"scaled", "bias"}, {"product"});
    if (!transposes_first) builder.node("Gemm", {"x", "w", "bias"}, {"product"});  // with less rounding
    builder.node("Reshape", {"product", "heads_shape"}, {"heads"});
    if (transposes_first) builder.node("Transpose", {"heads"}, {"permuted"}, {{"perm", Axes{1, 2, 0}}});
    builder.node("Gather", {transposes_first ? "permuted" : "heads", "one"}, {"part"},
                 {{"axis", int64_t{transposes_first ? 0 : 1}}});
    builder.node("Transpose", {"part"}, {"transposed"}, {{"perm", transposes_first ? Axes{1, 0} : Axes{0, 1}}});
    builder.node("Exp", {"transposed"}, {"grown"}).node("Neg", {"grown"}, {"less"}).node(activation, {"less"}, {"y"});
    return builder.output("y"), builder;
  };
  const Comparison comparison = blame(parted(true, "Tanh"), parted(false, "Softsign"));
  ASSERT_EQ(comparison.causes.size(), 1U) << reported(comparison);
  EXPECT_EQ(comparison.causes.front().op, "Tanh");
}

// True and false are numbers at once in B, and by way of integers in A.
TEST_F(BlameEffects, ACastThatChangesNoNumberIsNoCauseNextToSwappedOperands) {
  const auto subtracted = [](bool goes_by_integers, bool is_swapped) {
    GraphBuilder builder(17);
    builder.input("x", "float32[4,4]").initializer("zero", sines({1}, 0, 1)).declare("is_more", "bool[4,4]");
    builder.node("Exp", {"x"}, {"grown"}).node("Greater", {"x", "zero"}, {"is_more"});
    if (goes_by_integers) builder.declare("ones", "int64[4,4]");
    if (goes_by_integers) builder.node("Cast", {"is_more"}, {"ones"}, {{"to", int64_t{7}}});
    builder.declare("wanted", "float32[4,4]");
    builder.node("Cast", {goes_by_integers ? "ones" : "is_more"}, {"wanted"}, {{"to", int64_t{1}}});
    builder.node("Sub",
                 is_swapped ? std::vector<std::string>{"wanted", "grown"} : std::vector<std::string>{"grown", "wanted"},
                 {"difference"});
    return builder.node("Tanh", {"difference"}, {"y"}).output("y"), builder;
  };
  const Comparison comparison = blame(subtracted(true, false), subtracted(false, true));
  ASSERT_EQ(comparison.causes.size(), 1U) << reported(comparison);
  EXPECT_EQ(reported(comparison), "Sub: the operands are swapped in B\n");
}

// The shape is an equivalent constant, and a bias differs: of two constants that differ only one is relevant.
TEST_F(BlameEffects, NamesOnlyTheRelevantOfDifferentConstants) {
  const auto biased = [](bool is_fused, double bias, int64_t columns) {
    GraphBuilder builder(17);
    builder.input("x", "float32[4,4]")
        .initializer("w", sines({4, 4}, 0.5, 1.3))
        .initializer("bias", sines({4}, bias, 2));
    builder.numbers("shape", {2, columns});
    if (is_fused) {
      builder.node("Gemm", {"x", "w", "bias"}, {"product"});
    } else {
      builder.node("MatMul", {"x", "w"}, {"scaled"}).node("Add", {"scaled", "bias"}, {"sum"});
    }
    builder.node("Reshape", {is_fused ? "product" : "sum", "shape"}, {"parted"});
    return builder.node("Tanh", {"parted"}, {"y"}).output("y"), builder;
  };
  const Comparison comparison = blame(biased(false, 0.5, -1), biased(true, 0, 8));
  EXPECT_EQ(reported(comparison), "Add: it reads another constant 'bias': it is all zeros in B\n");
  const ValueComparison* const shape = value_at(comparison, "shape");
  ASSERT_NE(shape, nullptr);
  EXPECT_EQ(shape->verdict, Verdict::not_compared) << "the shape is to the same effect";
}

// One of the two consumers is after the fault, and inherits from it: that says nothing of the shape.
TEST_F(BlameEffects, AShapeToTheSameEffectIsNotWhereTwoModelsPart) {
  const auto shaped = [](int64_t rows, const char* activation) {
    GraphBuilder builder(17);
    builder.input("x", "float32[4,4]").numbers("shape", {rows, 8}).numbers("square", {4, 4});
    builder.node("Reshape", {"x", "shape"}, {"flat"}).node(activation, {"flat"}, {"bent"});
    builder.node("Reshape", {"bent", "square"}, {"back"}).node("Tanh", {"back"}, {"less"});
    return builder.node("Reshape", {"less", "shape"}, {"y"}).output("y"), builder;
  };
  const Comparison comparison = blame(shaped(2, "Relu"), shaped(-1, "Abs"));
  ASSERT_TRUE(comparison.first_divergence.has_value());
  EXPECT_EQ(comparison.first_divergence->path, "bent");
  EXPECT_EQ(reported(comparison), "Relu: the operator is Abs in B and Relu in A\n");
}

TEST_F(BlameEffects, AConstantNodeIsReportedAtItsReader) {
  const auto clipped = [](double most) {
    GraphBuilder builder(17);
    StoredTensor stored;
    stored.tensor = Tensor::scalar(static_cast<float>(most));
    builder.input("x", "float32[4,4]").node("Constant", {}, {"most"}, {{"value", stored}});
    builder.last_node().attributes.front().type = AttributeType::tensor;
    builder.node("Clip", {"x", "", "most"}, {"clipped"}).node("Relu", {"clipped"}, {"y"});
    return builder.output("y"), builder;
  };
  EXPECT_EQ(reported(blame(clipped(50), clipped(60))),
            "Clip: it reads another constant 'most': it is 60 in B and 50 in A; on these inputs nothing follows from "
            "that\n");
  EXPECT_EQ(reported(blame(clipped(50), clipped(0.25))),
            "Clip: it reads another constant 'most': it is 0.25 in B and 50 in A\n");
}

// Both are computed in both models: it is not the numbers that changed.
TEST_F(BlameEffects, AConstantThatIsReadInPlaceOfAnother) {
  const auto permuted = [](const char* read) {
    GraphBuilder builder(17);
    builder.input("x", "float32[4,4]").initializer("w", sines({2, 8}, 0.5, 1.3)).numbers("shape", {4, 4});
    builder.node("Neg", {"w"}, {"negative"}).node("Reshape", {read, "shape"}, {"square"});
    builder.node("Transpose", {"square"}, {"transposed"}).node("MatMul", {"x", "transposed"}, {"product"});
    builder.node("ReduceSum", {"negative"}, {"total"}, {{"keepdims", int64_t{0}}});
    return builder.node("Add", {"product", "total"}, {"y"}).output("y"), builder;
  };
  EXPECT_EQ(reported(blame(permuted("negative"), permuted("w"))), "Reshape: B reads 'w' where A reads 'negative'\n");
}

// A cast that does nothing reads another value: not its reader, which reads what it did.
TEST_F(BlameEffects, ACastThatReadsAnotherValue) {
  const auto cast = [](const char* read) {
    GraphBuilder builder(17);
    builder.input("x", "float32[4,4]").node("Exp", {"x"}, {"grown"});
    builder.node("Softmax", {"grown"}, {"share"}, {{"axis", int64_t{-1}}}).declare("held", "float32[4,4]");
    builder.declare("share", "float32[4,4]").declare("grown", "float32[4,4]");
    builder.node("Cast", {read}, {"held"}, {{"to", int64_t{1}}}).node("MatMul", {"held", "x"}, {"product"});
    builder.node("Add", {"product", "share"}, {"sum"}).node("Add", {"sum", "grown"}, {"y"});
    return builder.output("y"), builder;
  };
  EXPECT_EQ(reported(blame(cast("share"), cast("grown"))), "Cast: B reads 'grown' where A reads 'share'\n");
}

// The product that one of them is made of is fused with its factor in B: that is not what differs.
TEST_F(BlameEffects, AConstantAndAValueThatAreSwapped) {
  const auto masked = [](bool is_fused, bool is_swapped) {
    GraphBuilder builder(17);
    builder.input("x", "float32[4,4]").initializer("zero", sines({1}, 0, 1)).declare("is_more", "bool[4,4]");
    builder.initializer("half", sines({1}, 0.5, 1.5)).initializer("mask", sines({1}, -3, 1.5));
    builder.node("Greater", {"x", "zero"}, {"is_more"});
    if (is_fused) {
      builder.node("com.microsoft.FusedMatMul", {"x", "x"}, {"score"},
                   {{"alpha", sines({1}, 0.5, 1.5).as<float>()[0]}, {"transB", int64_t{1}}});
    } else {
      builder.node("Transpose", {"x"}, {"transposed"}).node("MatMul", {"x", "transposed"}, {"product"});
      builder.node("Mul", {"product", "half"}, {"score"});
    }
    builder.node("Where", {"is_more", is_swapped ? "score" : "mask", is_swapped ? "mask" : "score"}, {"masked"});
    return builder.node("Softmax", {"masked"}, {"y"}, {{"axis", int64_t{-1}}}).output("y"), builder;
  };
  EXPECT_EQ(reported(blame(masked(false, false), masked(true, true))), "Where: the operands are swapped in B\n");
  EXPECT_EQ(blame(masked(false, false), masked(true, false)).verdict, OverallVerdict::pass);
}

// The input of the loop diverges first in its body, and its cause is before the loop.
TEST_F(BlameEffects, WhatLeavesTheRangeOfNumbersBeforeALoopIsExplained) {
  const auto looped = [](bool divides) {
    GraphBuilder body(17);
    body.input("i", "int64").input("go", "bool").input("state", "float32[4,4]");
    body.node("Tanh", {"state"}, {"next"}).node("Identity", {"go"}, {"on"}).output("on").output("next");
    const std::shared_ptr<Graph> inner = body.body();
    link_graph(*inner);
    GraphBuilder builder(17);
    builder.input("x", "float32[4,4]").number("trips", 3);
    builder.node("Selu", {"x"}, {divides ? "before" : "given"});
    if (divides) builder.node("Sub", {"before", "before"}, {"none"}).node("Div", {"none", "none"}, {"given"});
    builder.node("Loop", {"trips", "", "given"}, {"y"}, {{"body", inner}});
    return builder.output("y"), builder;
  };
  const Comparison comparison = blame(looped(false), looped(true));
  ASSERT_EQ(comparison.causes.size(), 1U) << reported(comparison);
  EXPECT_EQ(comparison.causes.front().op, "Sub");
}

TEST_F(BlameEffects, TwoDrawsCannotBeCompared) {
  const auto noisy = [](const char* noise, float scale) {
    GraphBuilder builder(17);
    builder.input("x", "float32[4,4]").node("RandomNormalLike", {"x"}, {noise}, {{"scale", scale}});
    builder.last_node().name = std::string("draw_") + noise;  // what an executor draws by
    return builder.node("Add", {"x", noise}, {"sum"}).node("Tanh", {"sum"}, {"y"}).output("y"), builder;
  };
  const Comparison comparison = blame(noisy("noise", 1), noisy("hiss", 1));
  ASSERT_EQ(comparison.causes.size(), 1U) << reported(comparison);
  EXPECT_EQ(comparison.causes.front().side, Side::unknown);
  EXPECT_NE(comparison.causes.front().why.find("draws at random"), std::string::npos) << reported(comparison);
  EXPECT_NE(reported(blame(noisy("noise", 1), noisy("hiss", 3))).find("attribute scale"), std::string::npos);
}

// Each of the swapped parts is read by several nodes.
TEST_F(BlameEffects, ASplitWithSwappedOutputsIsNamedOnce) {
  const auto parted = [](bool is_swapped) {
    GraphBuilder builder(17);
    builder.input("x", "float32[4,4]")
        .initializer("w", sines({2, 2}, 0.5, 1.3))
        .initializer("v", sines({2, 2}, 0.7, 2.9));
    builder.node("Split", {"x"}, is_swapped ? std::vector<std::string>{"q", "p"} : std::vector<std::string>{"p", "q"},
                 {{"axis", int64_t{1}}});
    builder.node("MatMul", {"p", "w"}, {"pw"}).node("Tanh", {"p"}, {"pt"}).node("Softplus", {"p"}, {"ps"});
    builder.node("MatMul", {"q", "v"}, {"qv"}).node("Sigmoid", {"q"}, {"qs"}).node("Exp", {"q"}, {"qe"});
    builder.node("Concat", {"pw", "pt", "ps", "qv", "qs", "qe"}, {"y"}, {{"axis", int64_t{1}}}).output("y");
    return builder;
  };
  const Comparison comparison = blame(parted(false), parted(true));
  ASSERT_EQ(std::ranges::count(comparison.causes, "Split", &Cause::op), 1) << reported(comparison);
  EXPECT_EQ(comparison.causes.front().op, "Split") << reported(comparison);
}

// A normalization folded by two programs: each weight by its own rounding, the large next to the small.
TEST_F(BlameEffects, WeightsFoldedByTwoProgramsAreTheSame) {
  const auto folded = [](float difference) {
    GraphBuilder builder(17);
    Tensor weight = sines({4, 4}, 1e-4, 1.3);
    weight.mutable_as<float>()[3] = 1 + difference;
    builder.input("x", "float32[4,4]").initializer("w", weight).node("MatMul", {"x", "w"}, {"product"});
    return builder.node("Tanh", {"product"}, {"y"}).output("y"), builder;
  };
  constexpr float kUlp = 1.1920929e-7F;
  const Comparison comparison = blame(folded(0), folded(3 * kUlp));
  EXPECT_EQ(comparison.verdict, OverallVerdict::pass) << reported(comparison);
  EXPECT_EQ(blame(folded(0), folded(1e-4F)).verdict, OverallVerdict::diverged);
}

// A function squares what it is given: its result hides a sign, what it is given does not.
TEST_F(BlameEffects, WhatAFunctionIsGivenIsATrace) {
  const auto squared = [](const std::string& op) {
    const std::string floats =
        "type { tensor_type { elem_type: 1 shape { dim { dim_value: 4 } dim { dim_value: 4 } } } }";
    const std::string text =
        "ir_version: 8 opset_import { version: 17 } opset_import { domain: 'my' version: 1 } graph { "
        "name: 'g' node { input: 'x' output: 'h' op_type: '" +
        op +
        "' name: 'first' } "
        "node { input: 'h' output: 'y' op_type: 'Square' domain: 'my' name: 'call' } "
        "input { name: 'x' " +
        floats + " } output { name: 'y' " + floats +
        " } } "
        "functions { name: 'Square' domain: 'my' input: 'a' output: 'b' opset_import { version: 17 } "
        "node { input: 'a' input: 'a' output: 'b' op_type: 'Mul' name: 'square' } }";
    return import_model(std::as_bytes(std::span(text)), "", op).take();
  };
  BlameRequest request;
  request.a.model = squared("Abs");
  request.b.model = squared("Neg");
  request.a.dump = run_into_dump(request.a.model, "a.plx", sines({4, 4}, 1, 0.7));
  request.b.dump = run_into_dump(request.b.model, "b.plx", sines({4, 4}, 1, 0.7));
  request.oracle = make_executor("reference:double").take();
  Comparison comparison = compare_dumps(*request.a.dump, *request.b.dump, {}, {}).take();
  ASSERT_TRUE(testing::diagnose(request, comparison).ok());
  EXPECT_EQ(comparison.verdict, OverallVerdict::diverged) << reported(comparison);
  const ValueComparison* const given = value_at(comparison, "h");
  ASSERT_NE(given, nullptr);
  EXPECT_EQ(given->verdict, Verdict::diverged) << given->reason;
}

TEST_F(BlameEffects, FollowsAValueToAllThatIsMadeOfIt) {
  GraphBuilder builder(17);
  builder.input("x", "float32[4,4]").initializer("w", sines({4, 4}, 0.5, 1.3));
  builder.node("MatMul", {"x", "w"}, {"product"}).node("Relu", {"product"}, {"bent"}).node("Neg", {"x"}, {"other"});
  builder.output("bent").output("other");
  BlameSide side;
  side.model = finished_model(builder);
  side.dump = run_into_dump(side.model, "a.plx", sines({4, 4}, 1, 0.7));
  const auto a = diff::ModelSide::create(side, make_executor("reference:double").take()).take();
  const diff::Effects effects(*a, [](int32_t) { return std::optional<double>(); });
  const auto is_made_of_w = [&](std::string_view name) {
    for (const ValueInfo& value_info : a->value_infos().value_infos()) {
      if (value_info.name != "w") continue;
      return effects.is_any_made_of(value_info.id, [&](int32_t made) { return a->value_info(made).name == name; });
    }
    return false;
  };
  EXPECT_TRUE(is_made_of_w("product"));
  EXPECT_TRUE(is_made_of_w("bent"));
  EXPECT_FALSE(is_made_of_w("other"));
}

}  // namespace blame_effects_test
}  // namespace parallax
