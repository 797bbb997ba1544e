// SPDX-License-Identifier: Apache-2.0
// The sentences about causes are true: about a node that replaces another, before or after one, constants after nodes
// that copy, fold or return them, attributes without effect.
#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "inspector/diff/compare/compare.h"
#include "inspector/diff/localize/blame.h"
#include "inspector/executors/make_executor.h"
#include "inspector/model/link.h"
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
    const std::vector<Cause> causes = blame_all(a, b, x);
    return causes.empty() ? Cause{} : causes.front();
  }

  std::vector<Cause> blame_all(const GraphBuilder& a, const GraphBuilder& b, const Tensor& x) {
    Comparison comparison = blame_on(x, a, b);
    EXPECT_NE(comparison.verdict, OverallVerdict::pass);
    return comparison.causes;
  }
};

// A's node leaves these values as they are: B without its own would do so, too.
TEST_F(BlameSentences, ANodeThatReplacesAnotherIsNotInserted) {
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

// The factor of a bias that is all zeros next to weights in steps; then of one that is not.
TEST_F(BlameSentences, AnAttributeWithoutEffectIsNotNamedWithConstantsThatHaveOne) {
  const auto product = [](bool is_in_steps, float beta, double bias) {
    GraphBuilder builder(17);
    builder.input("x", "float32[4,4]").initializer("bias", sines({4}, bias, 0.9));
    std::string x = "x", w = "w";
    if (is_in_steps) {
      Tensor steps = Tensor::allocate(DType::int8, Shape{4, 4}).take();
      const Tensor exact = sines({4, 4}, 100, 1.3);
      for (size_t index = 0; index < 16; ++index)
        steps.mutable_as<int8_t>()[index] = static_cast<int8_t>(exact.as<float>()[index]);
      builder.initializer("steps", std::move(steps)).initializer("step", Tensor::scalar(0.01F));
      builder.node("Cast", {"steps"}, {"whole"}, {{"to", int64_t{1}}}).node("Mul", {"whole", "step"}, {"rough_w"});
      builder.node("Div", {"x", "step"}, {"exact_steps"}).node("Round", {"exact_steps"}, {"x_steps"});
      builder.node("Mul", {"x_steps", "step"}, {"rough_x"});
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
    builder.node("Transpose", {"w"}, {"transposed"}, {{"perm", Axes{1, 0}}}).node("Identity", {"transposed"}, {"same"});
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

Tensor floats(const std::vector<float>& elements) { return Tensor::vector<float>(elements); }

Tensor texts(const std::vector<std::string>& elements) {
  Tensor tensor = Tensor::allocate(DType::string, Shape{static_cast<int64_t>(elements.size())}).take();
  std::ranges::copy(elements, tensor.mutable_as<std::string>().begin());
  return tensor;
}

// x is bent, and next to it `how` is done to a constant 'c' to make 'y'; as it is where that is empty.
GraphBuilder next_to_constant(Tensor constant, const std::vector<std::string>& how) {
  GraphBuilder builder(17);
  builder.input("x", "float32[4,4]").node("Relu", {"x"}, {"z"});
  std::string last = how.empty() ? "y" : "c";
  builder.initializer(last, std::move(constant));
  for (const std::string& op : how) {
    const std::string made = &op == &how.back() ? "y" : last + "c";
    builder.node(op, {last}, {made});
    last = made;
  }
  return builder.output("y").output("z"), builder;
}

TEST_F(BlameSentences, AConstantThatIsHandedOnIsNamed) {
  const Tensor x = sines({4, 4}, 1, 0.7), c = floats({1, 2, 3}), other = floats({1, 2, 5});
  const std::string difference = "element [2] is 5 in B and 3 in A";
  for (const std::vector<std::string>& how : {std::vector<std::string>{"Identity"}, {"Identity", "Identity"}}) {
    const Cause cause = blame(next_to_constant(c, how), next_to_constant(other, how), x);
    EXPECT_EQ(cause.node, "Identity_1");
    EXPECT_EQ(cause.why, "it reads another constant 'c': " + difference);
  }
  const Cause folded = blame(next_to_constant(c, {"Neg"}), next_to_constant(other, {}), x);
  EXPECT_EQ(folded.node, "Neg_1");
  EXPECT_EQ(folded.why.find("B holds a constant in place of what it makes: 3 of 3 elements differ"), 0U) << folded.why;
  const Cause unfolded = blame(next_to_constant(c, {}), next_to_constant(other, {"Identity"}), x);
  EXPECT_EQ(unfolded.node, "Identity_1");
  EXPECT_EQ(unfolded.why, "A holds a constant in place of what it makes: " + difference);
}

// By a node of the branch that hands it on, or as it is.
TEST_F(BlameSentences, AConstantThatABranchHandsOutIsNamedInTheBranch) {
  const auto branching = [](bool is_handed_on, float last) {
    const auto branch = [&](bool is_then, float element) {
      GraphBuilder builder(17);
      const std::string made = is_then ? "first" : "second";
      const Tensor constant = floats({1, 2, element});
      if (is_handed_on) {
        builder.initializer("c", constant).node("Identity", {"c"}, {made});
      } else {
        StoredTensor stored;
        stored.tensor = constant;
        builder.node("Constant", {}, {made}, {{"value", std::move(stored)}});
        builder.last_node().attributes.back().type = AttributeType::tensor;
      }
      const std::shared_ptr<Graph> body = builder.output(made).body();
      link_graph(*body);
      return body;
    };
    Tensor condition = Tensor::allocate(DType::bool_, Shape{}).take();
    condition.mutable_as<bool>()[0] = true;
    GraphBuilder builder(17);
    builder.input("x", "float32[4,4]").node("Relu", {"x"}, {"z"}).initializer("condition", std::move(condition));
    builder.node("If", {"condition"}, {"y"}, {{"then_branch", branch(true, last)}, {"else_branch", branch(false, 3)}});
    return builder.output("y").output("z"), builder;
  };
  const std::string difference = "element [2] is 5 in B and 3 in A";
  const auto blamed = [&](bool is_handed_on) {
    return blame_all(branching(is_handed_on, 3), branching(is_handed_on, 5), sines({4, 4}, 1, 0.7));
  };
  for (const bool is_handed_on : {true, false}) {
    const std::vector<Cause> causes = blamed(is_handed_on);
    ASSERT_EQ(causes.size(), 1U) << is_handed_on;
    EXPECT_EQ(causes[0].op, is_handed_on ? "Identity" : "Constant");
    EXPECT_EQ(causes[0].why,
              (is_handed_on ? "it reads another constant 'c': " : "it is another constant in B: ") + difference);
    EXPECT_EQ(causes[0].path, "If_1.then//first");
  }
}

TEST_F(BlameSentences, TextsThatDifferAreQuoted) {
  const std::string far(50, 'a');
  const auto why = [&](const std::vector<std::string>& a, const std::vector<std::string>& b) {
    return blame(next_to_constant(texts(a), {"Identity"}), next_to_constant(texts(b), {"Identity"}),
                 sines({4, 4}, 1, 0.7))
        .why;
  };
  EXPECT_EQ(why({"a", "b"}, {"a", "q"}), "it reads another constant 'c': element [1] is 'q' in B and 'b' in A");
  EXPECT_EQ(why({"a"}, {far}), "it reads another constant 'c': it is '" + far.substr(0, 40) + "...' in B and 'a' in A");
  EXPECT_EQ(why({"a", "b"}, {"c", "d"}),
            "it reads another constant 'c': 2 of 2 elements differ; element [0] is 'c' in B and 'a' in A");
}

TEST_F(BlameSentences, AConstantThatIsAnOutputIsSeen) {
  const Tensor x = sines({4, 4}, 1, 0.7);
  const auto graph = [](float last, float factor) {
    GraphBuilder builder = next_to_constant(floats({1, 2, last}), {});
    builder.initializer("factor", Tensor::scalar(factor)).node("Mul", {"z", "factor"}, {"scaled"});
    return builder.output("scaled"), builder;
  };
  const std::string why = "graph output 'y' is another constant in B: element [2] is 5 in B and 3 in A";
  EXPECT_EQ(blame(graph(3, 1), graph(5, 1), x).why, why);
  const std::vector<Cause> both = blame_all(graph(3, 1), graph(5, 2), x);
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0].op, "Mul");
  EXPECT_EQ(both[1].why, why);
  EXPECT_EQ(both[1].rank, 2);
  // It is read, too, to no effect.
  const auto read = [](float last) {
    GraphBuilder builder = next_to_constant(floats({1, 2, last, 4}), {});
    builder.initializer("low", Tensor::scalar(100.0F)).node("Max", {"y", "low"}, {"most"});
    builder.node("Add", {"z", "most"}, {"sum"});
    return builder.output("sum"), builder;
  };
  const Cause cause = blame(read(3), read(5), x);
  EXPECT_EQ(cause.op, "Max");
  EXPECT_EQ(cause.why, "it reads another constant 'y', a graph output as well: element [2] is 5 in B and 3 in A");
}

// A product, scaled; or scaled weights alone, as an optimizer leaves it, one of them wrong.
TEST_F(BlameSentences, WhatWasFoldedIntoAProductIsSaidToBeThat) {
  const auto product = [](bool is_folded, float wrong) {
    GraphBuilder builder(17);
    Tensor weights = sines({4, 4}, 1, 1.3), scale = sines({4}, 1, 0.9);
    for (size_t index = 0; is_folded && index < 16; ++index)
      weights.mutable_as<float>()[index] *= scale.as<float>()[index % 4];
    weights.mutable_as<float>()[5] += wrong;
    builder.input("x", "float32[4,4]").initializer(is_folded ? "w_scaled" : "w", std::move(weights));
    if (is_folded) {
      builder.node("MatMul", {"x", "w_scaled"}, {"y"});
    } else {
      builder.initializer("scale", std::move(scale));
      builder.node("MatMul", {"x", "w"}, {"product"}).node("Mul", {"product", "scale"}, {"y"});
    }
    return builder.output("y"), builder;
  };
  const Tensor x = sines({4, 4}, 1, 0.7);
  const std::string rest = " has no Mul 'Mul_1', and other constants here, which do not compensate it";
  EXPECT_EQ(blame(product(false, 0), product(true, 0.5F), x).why, "B" + rest);
  EXPECT_EQ(blame(product(true, 0), product(false, 0.5F), x).why, "A" + rest);
}

// A node that only B has is before or after the node that the sentence names.
TEST_F(BlameSentences, AnInsertedNodeStandsBeforeOrAfter) {
  const auto graph = [](const std::string& before, const std::string& after) {
    GraphBuilder builder(17);
    builder.input("x", "float32[4,4]").node("Tanh", {"x"}, {"bent"});
    std::string last = "bent";
    const auto add = [&](const std::string& op, const std::string& made) {
      std::vector<std::pair<std::string, Attribute::Value>> attributes;
      if (op == "Cast") attributes.emplace_back("to", int64_t{6});
      builder.node(op, {last}, {made}, attributes);
      last = made;
    };
    if (!before.empty()) add(before, "more");
    add("Exp", after.empty() ? "y" : "power");
    if (!after.empty()) add(after, "y");
    return builder.output("y"), builder;
  };
  const Tensor x = sines({4, 4}, 1, 0.7);
  const Cause before = blame(graph("", ""), graph("Neg", ""), x);
  EXPECT_EQ(before.op, "Neg");
  EXPECT_EQ(before.why, "B has this Neg node before what stands for A's 'Exp_1', and A has none");
  for (const std::string op : {"Neg", "Cast"}) {
    const Cause after = blame(graph("", ""), graph("", op), x);
    EXPECT_EQ(after.op, op);
    EXPECT_EQ(after.why, "B has this " + op + " node after what stands for A's 'Exp_1', and A has none");
  }
}

}  // namespace blame_sentences_test
}  // namespace parallax
