// SPDX-License-Identifier: Apache-2.0
// Two graphs that are one to a reader: renamed, reordered, folded, fused; and two that differ in one node, where all
// else must still be paired.
#include "inspector/diff/matching/matching.h"

#include <map>
#include <set>

#include <gtest/gtest.h>

#include "inspector/model/link.h"
#include "tests/inspector/model/graph_builder.h"

namespace parallax {
namespace {

using testing::GraphBuilder;

Tensor weight(float first, int64_t count = 4) {
  std::vector<float> values;
  for (int64_t index = 0; index < count; ++index) values.push_back(first + 0.5F * static_cast<float>(index));
  return Tensor::vector<float>(values);
}

std::shared_ptr<const Model> finished(const GraphBuilder& builder) {
  auto model = std::make_shared<Model>(builder.model());
  link_graph(model->graph);
  return model;
}

// Paths of B by paths of A, nearest counterparts only.
struct Matched {
  explicit Matched(const std::shared_ptr<const Model>& model_a, const std::shared_ptr<const Model>& model_b)
      : a(ValueTable::build(model_a).take()), b(ValueTable::build(model_b).take()), matching(match_models(a, b)) {
    for (const ValueMatch& match : matching.values) {
      if (match.is_extra) {
        extra.emplace(path(a, match.a), path(b, match.b));
      } else {
        pairs[path(a, match.a)] = path(b, match.b);
        how[path(a, match.a)] = match.how;
      }
    }
  }
  static std::string path(const ValueTable& table, int32_t id) {
    const ValueInfo& value_info = table.value_infos()[static_cast<size_t>(id)];
    return value_info.scope + value_info.escaped_name;
  }

  ValueTable a, b;
  ModelMatching matching;
  std::map<std::string, std::string> pairs;
  std::map<std::string, MatchedBy> how;
  std::set<std::pair<std::string, std::string>> extra;
};

// Four layers of MatMul, Add and an activation, with a residual around the last two; `name` gives every name.
struct Network {
  std::string (*name)(const std::string&) = [](const std::string& text) { return text; };
  std::string activation = "Relu";  // of layer 1
  std::string sum = "Add";          // of the residual
  float first_weight = 1;           // of layer 2
  bool swaps_operands = false;

  GraphBuilder build() const {
    GraphBuilder builder(17);
    builder.input(name("x"), "float32[2,4]");
    std::string last = name("x");
    for (int layer = 0; layer < 4; ++layer) {
      const auto at = [&](const char* text) { return name(text + std::to_string(layer)); };
      builder.initializer(at("w"), weight(layer == 2 ? first_weight : static_cast<float>(layer) + 2, 16));
      builder.initializer(at("b"), weight(static_cast<float>(layer) + 7));
      builder.node("MatMul", {last, at("w")}, {at("product")});
      builder.node("Add", {at("product"), at("b")}, {at("sum")});
      builder.node(layer == 1 ? activation : "Relu", {at("sum")}, {at("y")});
      last = at("y");
    }
    const std::string first = name("y1");
    builder.node(sum, swaps_operands ? std::vector{last, first} : std::vector{first, last}, {name("residual")});
    builder.node("Softmax", {name("residual")}, {name("z")}, {{"axis", int64_t{-1}}});
    builder.output(name("z"));
    return builder;
  }
};

std::string reversed(const std::string& text) { return "q" + std::string(text.rbegin(), text.rend()); }

// Every value of A is paired with its own renamed self, but for those in `but`.
void expect_all(const Matched& matched, std::string (*name)(const std::string&),
                const std::set<std::string>& but = {}) {
  for (const ValueInfo& value_info : matched.a.value_infos()) {
    const std::string path = std::string(value_info.name);
    const auto found = matched.pairs.find(path);
    if (but.contains(path)) continue;
    ASSERT_NE(found, matched.pairs.end()) << path << " has no counterpart";
    EXPECT_EQ(found->second, name(path));
  }
}

TEST(Matching, EqualGraphsMatchByPath) {
  const Matched matched(finished(Network{}.build()), finished(Network{}.build()));
  expect_all(matched, Network{}.name);
  EXPECT_EQ(matched.how.at("y2"), MatchedBy::path);
  EXPECT_TRUE(matched.matching.names_agree);
}

TEST(Matching, EveryNameChanged) {
  Network other;
  other.name = reversed;
  const Matched matched(finished(Network{}.build()), finished(other.build()));
  expect_all(matched, reversed);
  EXPECT_EQ(matched.how.at("y2"), MatchedBy::structure);
  EXPECT_FALSE(matched.matching.names_agree);
}

TEST(Matching, NamesThatMeanSomethingElse) {
  Network other;
  // The names of layers 1 and 2 are exchanged, and those of their weights.
  other.name = [](const std::string& text) {
    if (text.ends_with('1')) return text.substr(0, text.size() - 1) + "2";
    return text.ends_with('2') ? text.substr(0, text.size() - 1) + "1" : text;
  };
  const Matched matched(finished(Network{}.build()), finished(other.build()));
  expect_all(matched, other.name);
  other.first_weight = 3;
  expect_all(Matched(finished(Network{}.build()), finished(other.build())), other.name);
}

TEST(Matching, AChangedWeightUnmatchesNothing) {
  for (std::string (*name)(const std::string&) : {Network{}.name, +reversed}) {
    Network other;
    other.name = name;
    other.first_weight = 1.5F;
    const Matched matched(finished(Network{}.build()), finished(other.build()));
    expect_all(matched, name);
    size_t changed = 0;
    for (const NodeMatch& node : matched.matching.nodes) changed += node.is_same_definition ? 0 : 1;
    EXPECT_EQ(changed, 1U);
  }
}

TEST(Matching, AnotherOperatorUnmatchesNothing) {
  for (std::string (*name)(const std::string&) : {Network{}.name, +reversed}) {
    Network other;
    other.name = name;
    other.activation = "Tanh";
    expect_all(Matched(finished(Network{}.build()), finished(other.build())), name);
    other.sum = "Sub";
    expect_all(Matched(finished(Network{}.build()), finished(other.build())), name);
  }
}

TEST(Matching, OperandsOfASumMaySwap) {
  Network other;
  other.name = reversed;
  other.swaps_operands = true;
  const Matched matched(finished(Network{}.build()), finished(other.build()));
  expect_all(matched, reversed);
  for (const NodeMatch& node : matched.matching.nodes) EXPECT_TRUE(node.is_same_definition);
}

TEST(Matching, NodesInAnotherOrder) {
  const auto two_branches = [](bool first_left, std::string (*name)(const std::string&)) {
    GraphBuilder builder(17);
    builder.input(name("x"), "float32[4]").initializer(name("c"), weight(1)).initializer(name("d"), weight(2));
    const auto left = [&] { builder.node("Mul", {name("x"), name("c")}, {name("left")}); };
    const auto right = [&] { builder.node("Mul", {name("x"), name("d")}, {name("right")}); };
    first_left ? left() : right();
    first_left ? right() : left();
    builder.node("Sub", {name("left"), name("right")}, {name("y")}).output(name("y"));
    return finished(builder);
  };
  expect_all(Matched(two_branches(true, Network{}.name), two_branches(false, reversed)), reversed);
}

TEST(Matching, ANormalizationFoldedIntoAProduct) {
  for (const bool keeps_names : {true, false}) {
    GraphBuilder a(17), b(17);
    const auto n = [&](const std::string& text) { return keeps_names ? text : reversed(text); };
    a.input("x", "float32[1,4,6]").initializer("w", weight(1, 16)).initializer("bias", weight(3));
    for (const char* name : {"scale", "shift", "mean", "var"}) a.initializer(name, weight(static_cast<float>(name[1])));
    a.node("Conv", {"x", "w", "bias"}, {"conv"});
    a.node("BatchNormalization", {"conv", "scale", "shift", "mean", "var"}, {"normal"});
    a.node("Relu", {"normal"}, {"y"}).node("Exp", {"y"}, {"z"}).output("z");
    b.input(n("x"), "float32[1,4,6]").initializer(n("w"), weight(9, 16)).initializer(n("bias"), weight(5));
    b.node("Conv", {n("x"), n("w"), n("bias")}, {n("conv")});
    b.node("Relu", {n("conv")}, {n("y")}).node("Exp", {n("y")}, {n("z")}).output(n("z"));
    const Matched matched(finished(a), finished(b));
    EXPECT_EQ(matched.pairs.at("normal"), n("conv"));
    EXPECT_FALSE(matched.pairs.contains("conv"));
    EXPECT_EQ(matched.pairs.at("y"), n("y"));
  }
}

TEST(Matching, AProductAndASumAgainstGemm) {
  GraphBuilder a(17), b(17);
  a.input("x", "float32[2,4]").initializer("w", weight(1, 16)).initializer("b", weight(2));
  b.input("in", "float32[2,4]").initializer("v", weight(1, 16)).initializer("c", weight(2));
  a.node("MatMul", {"x", "w"}, {"product"}).node("Add", {"product", "b"}, {"sum"}).node("Relu", {"sum"}, {"y"});
  b.node("Gemm", {"in", "v", "c"}, {"g"}).node("Relu", {"g"}, {"out"});
  a.output("y");
  b.output("out");
  const Matched matched(finished(a), finished(b));
  EXPECT_EQ(matched.pairs.at("sum"), "g");
  EXPECT_EQ(matched.pairs.at("y"), "out");
  EXPECT_FALSE(matched.pairs.contains("product"));
}

TEST(Matching, IdentitiesStandNextToWhatTheyPassOn) {
  GraphBuilder a(17), b(17);
  a.input("x", "float32[4]").node("Exp", {"x"}, {"e"}).node("Neg", {"e"}, {"y"}).output("y");
  b.input("x", "float32[4]").node("Exp", {"x"}, {"e"}).node("Identity", {"e"}, {"same"}).node("Neg", {"same"}, {"y"});
  b.output("y");
  const Matched matched(finished(a), finished(b));
  EXPECT_EQ(matched.pairs.at("e"), "e");
  EXPECT_EQ(matched.pairs.at("y"), "y");
  EXPECT_TRUE(matched.extra.contains({"e", "same"}));
}

TEST(Matching, AnInsertedNodeHasNoCounterpart) {
  GraphBuilder a(17), b(17);
  a.input("x", "float32[4]").node("Exp", {"x"}, {"e"}).node("Neg", {"e"}, {"n"}).node("Tanh", {"n"}, {"y"}).output("y");
  b.input("i", "float32[4]").node("Exp", {"i"}, {"p"}).node("Abs", {"p"}, {"more"}).node("Neg", {"more"}, {"q"});
  b.node("Tanh", {"q"}, {"r"}).output("r");
  const Matched matched(finished(a), finished(b));
  EXPECT_EQ(matched.pairs.at("e"), "p");
  EXPECT_EQ(matched.pairs.at("n"), "q");
  EXPECT_EQ(matched.pairs.at("y"), "r");
}

TEST(Matching, BodiesOfLoops) {
  const auto looping = [](std::string (*name)(const std::string&), const std::string& activation) {
    GraphBuilder body(17);
    body.input(name("i"), "int64").input(name("go"), "bool").input(name("state"), "float32[4]").outer(name("step"));
    body.node("Add", {name("state"), name("step")}, {name("next")}).node(activation, {name("next")}, {name("bent")});
    body.node("Identity", {name("go")}, {name("on")}).output(name("on")).output(name("bent"));
    const std::shared_ptr<Graph> inner = body.body();
    link_graph(*inner);
    GraphBuilder builder(17);
    builder.input(name("x"), "float32[4]").initializer(name("step"), weight(1)).number(name("trips"), 3);
    builder.node("Loop", {name("trips"), "", name("x")}, {name("y")}, {{"body", inner}});
    builder.node("Neg", {name("y")}, {name("z")}).output(name("z"));
    return finished(builder);
  };
  for (const char* activation : {"Tanh", "Exp"}) {
    const Matched matched(looping(Network{}.name, "Tanh"), looping(reversed, activation));
    EXPECT_EQ(matched.pairs.at("Loop_0.body[*]//next"), "Loop_0.body[*]//" + reversed("next"));
    EXPECT_EQ(matched.pairs.at("Loop_0.body[*]//bent"), "Loop_0.body[*]//" + reversed("bent"));
    EXPECT_EQ(matched.pairs.at("z"), reversed("z"));
    EXPECT_EQ(matched.pairs.at("step"), reversed("step"));
  }
}

TEST(Matching, BranchesInWhicheverOrderTheyAreListed) {
  const auto branching = [](bool then_first) {
    const auto branch = [](const std::string& op, const std::string& output) {
      GraphBuilder body(17);
      body.outer("x").node(op, {"x"}, {output}).output(output);
      std::shared_ptr<Graph> graph = body.body();
      link_graph(*graph);
      return graph;
    };
    using Given = std::pair<std::string, Attribute::Value>;
    const Given then_branch{"then_branch", branch("Tanh", "t")}, else_branch{"else_branch", branch("Exp", "e")};
    GraphBuilder builder(17);
    builder.input("x", "float32[4]").input("c", "bool");
    builder.node("If", {"c"}, {"y"},
                 then_first ? std::vector{then_branch, else_branch} : std::vector{else_branch, then_branch});
    builder.node("Neg", {"y"}, {"z"}).output("z");
    return finished(builder);
  };
  const Matched matched(branching(true), branching(false));
  EXPECT_EQ(matched.pairs.at("If_0.then//t"), "If_0.then//t");
  EXPECT_EQ(matched.pairs.at("If_0.else//e"), "If_0.else//e");
  EXPECT_EQ(matched.pairs.at("y"), "y");
}

TEST(Matching, WeightsThatWereExchangedKeepTheirNames) {
  const auto model = [](float first, float second) {
    GraphBuilder builder(17);
    builder.input("x", "float32[4]").initializer("p", weight(first)).initializer("q", weight(second));
    builder.node("Exp", {"x"}, {"e"}).node("Mul", {"e", "p"}, {"s"}).node("Tanh", {"s"}, {"t"});
    builder.node("Mul", {"t", "q"}, {"u"}).node("Neg", {"u"}, {"y"}).output("y");
    return finished(builder);
  };
  const Matched matched(model(1, 5), model(5, 1));
  for (const char* name : {"p", "q", "s", "t", "u"}) EXPECT_EQ(matched.pairs.at(name), name);
}

// The values that two branches compute with the weights keep their names, too, where later nodes use them by name.
TEST(Matching, BranchesWhoseWeightsWereExchangedKeepTheirNames) {
  const auto model = [](float first, float second, bool is_reordered) {
    GraphBuilder builder(17);
    builder.input("x", "float32[4]").initializer("p", weight(first)).initializer("q", weight(second));
    builder.node("Exp", {"x"}, {"e"}).node("Mul", {"e", "p"}, {"s"}).node("Mul", {"e", "q"}, {"t"});
    builder.node("Neg", {is_reordered ? "t" : "s"}, {"u"}).node("Tanh", {is_reordered ? "s" : "t"}, {"v"});
    builder.node("Sub", {"u", "v"}, {"d"}).node("Sigmoid", {"d"}, {"y"}).output("y");
    return finished(builder);
  };
  const Matched exchanged(model(1, 5, false), model(5, 1, false));
  for (const char* name : {"p", "q", "s", "t", "u", "v", "d"}) EXPECT_EQ(exchanged.pairs.at(name), name);
  // Numbers in names that follow another order of nodes: the content decides.
  const Matched numbered(model(1, 5, false), model(5, 1, true));
  EXPECT_EQ(numbered.pairs.at("s"), "t");
  EXPECT_EQ(numbered.pairs.at("t"), "s");
  EXPECT_EQ(numbered.pairs.at("u"), "u");
}

TEST(Matching, ASharedConstantSaysLittle) {
  const auto model = [](bool has_last) {  // two sums over one axis; the second is left out of the total
    GraphBuilder builder(17);
    builder.input("x", "float32[2,4]").initializer("axis", Tensor::vector<int64_t>(std::vector<int64_t>{1}));
    builder.initializer("v", weight(1, 16)).initializer("w", weight(3, 16)).initializer("bias", weight(9));
    builder.node("MatMul", {"x", "v"}, {"a"}).node("ReduceSum", {"a", "axis"}, {"first"});
    builder.node("MatMul", {"a", "w"}, {"b"}).node("ReduceSum", {"b", "axis"}, {"second"}).node("Exp", {"b"}, {"z"});
    if (has_last) builder.node("Add", {"first", "second"}, {"total"});
    builder.node("Sub", {has_last ? "total" : "first", "bias"}, {"y"}).output("y").output("z");
    return finished(builder);
  };
  const Matched matched(model(true), model(false));
  EXPECT_EQ(matched.pairs.at("first"), "first");
  EXPECT_EQ(matched.pairs.at("second"), "second");
  EXPECT_EQ(matched.pairs.at("b"), "b");
}

TEST(Matching, SignaturesByNameElseInOrderByType) {
  GraphBuilder a(17), b(17), c(17);
  a.input("ids", "int64[1,4]").input("mask", "float32[1,4]");
  b.input("mask", "float32[1,4]").input("ids", "int64[1,4]");
  c.input("p", "float32[1,4]").input("q", "int64[1,4]");
  const Graph in_a = a.graph(), in_b = b.graph(), in_c = c.graph();
  EXPECT_EQ(match_inputs(in_a, in_b).a_of_b, (std::vector<int32_t>{1, 0}));
  EXPECT_FALSE(match_inputs(in_a, in_b).by_position);
  EXPECT_EQ(match_inputs(in_a, in_c).a_of_b, (std::vector<int32_t>{1, 0}));
  EXPECT_TRUE(match_inputs(in_a, in_c).by_position);
}

// Three layers alike, two of which an optimizer has fused: what is left of the third keeps its name, and its parts are
// not taken for those of another layer.
TEST(Matching, WhatKeptItsNameIsNotTakenForItsTwinInAnotherLayer) {
  const auto layers = [](bool is_optimized) {
    GraphBuilder builder(17);
    builder.input("x", "float32[2,4]").initializer("half", weight(0.5F, 1));
    builder.node("Exp", {"x"}, {"grown"}).node("Neg", {"grown"}, {"less"}).node("Softplus", {"less"}, {"given"});
    if (is_optimized) builder.initializer("one0", weight(1, 1));  // one of three that were equal
    std::string last = "given";
    for (int layer = 0; layer < 3; ++layer) {
      const auto at = [&](const char* text) { return text + std::to_string(layer); };
      const std::string one = is_optimized ? "one0" : at("one");
      builder.initializer(at("w"), weight(static_cast<float>(layer) + 2, 16)).initializer(at("b"), weight(7));
      if (is_optimized) {
        builder.node("Gemm", {last, at("w"), at("b")}, {at("product")});
      } else {
        builder.node("MatMul", {last, at("w")}, {at("scaled")}).node("Add", {at("scaled"), at("b")}, {at("product")});
      }
      if (is_optimized && layer != 1) {
        builder.node("com.microsoft.Gelu", {at("product")}, {at("y")});
      } else {
        if (!is_optimized) builder.initializer(one, weight(1, 1));
        builder.node(is_optimized ? "Tanh" : "Erf", {at("product")}, {at("bent")});
        builder.node("Add", {at("bent"), one}, {at("more")}).node("Mul", {at("product"), at("more")}, {at("twice")});
        builder.node("Mul", {at("twice"), "half"}, {at("y")});
      }
      last = at("y");
    }
    return builder.output(last), builder;
  };
  const Matched matched(finished(layers(false)), finished(layers(true)));
  for (const char* path : {"bent1", "more1", "twice1", "product1"}) {
    ASSERT_TRUE(matched.pairs.contains(path)) << path;
    EXPECT_EQ(matched.pairs.at(path), path);
  }
  for (const char* path : {"bent0", "more0", "bent2", "more2"}) EXPECT_FALSE(matched.pairs.contains(path)) << path;
  for (const NodeMatch& node : matched.matching.nodes) {
    const Node& in_a = node.location_a->graph->nodes[static_cast<size_t>(node.a)];
    const Node& in_b = node.location_b->graph->nodes[static_cast<size_t>(node.b)];
    const auto made = [](const NodeMatch& match, bool is_a, const Node& by) {
      const Graph& graph = *(is_a ? match.location_a : match.location_b)->graph;
      return graph.values[static_cast<size_t>(by.outputs.front())].name;
    };
    EXPECT_EQ(made(node, true, in_a), made(node, false, in_b));
  }
}

// Two products with a sum after each; in B the second is fused with its sum, and a node was inserted after the first,
// under the first one's name. It is read as the second product of A is.
TEST(Matching, AnInsertedNodeIsNotTakenForAnotherThanItsName) {
  const auto products = [](bool is_changed) {
    GraphBuilder builder(17);
    builder.input("x", "float32[2,4]").initializer("w", weight(2, 16)).initializer("v", weight(3, 16));
    builder.initializer("b", weight(7)).initializer("c", weight(8)).initializer("factor", weight(1.5F, 1));
    builder.node("Softmax", {"x"}, {"first"}, {{"axis", int64_t{-1}}}).node("Exp", {"first"}, {"second"});
    builder.node("Neg", {"second"}, {"third"});
    builder.node("MatMul", {"third", "w"}, {is_changed ? "product_before" : "product"});
    if (is_changed) builder.node("Mul", {"product_before", "factor"}, {"product"});
    builder.node("Add", {"product", "b"}, {"sum"}).node("Add", {"third", "sum"}, {"whole"});
    builder.node("Relu", {"whole"}, {"bent"});
    if (is_changed) {
      builder.node("Gemm", {"bent", "v", "c"}, {"last_sum"});
    } else {
      builder.node("MatMul", {"bent", "v"}, {"last"}).node("Add", {"last", "c"}, {"last_sum"});
    }
    builder.node("Add", {"whole", "last_sum"}, {"all"}).node("Relu", {"all"}, {"y"});
    return builder.output("y"), builder;
  };
  const Matched matched(finished(products(false)), finished(products(true)));
  EXPECT_EQ(matched.pairs.at("product"), "product_before");
  EXPECT_EQ(matched.pairs.at("last_sum"), "last_sum");
  EXPECT_FALSE(matched.pairs.contains("last")) << matched.pairs.at("last");
}

// A product that lost its bias, and after it an activation that an optimizer put together: nothing around it is alike.
TEST(Matching, AFaultyNodeAmongChangedNeighborsKeepsItsName) {
  const auto gated = [](bool is_changed) {
    GraphBuilder builder(24);
    builder.input("x", "float32[2,4]").initializer("w", weight(2, 16)).initializer("b", weight(7));
    builder.node("Softmax", {"x"}, {"first"}, {{"axis", int64_t{-1}}}).node("Exp", {"first"}, {"second"});
    builder.node("Neg", {"second"}, {"third"}).node("Abs", {"third"}, {"fourth"});
    if (is_changed) {
      builder.node("Gemm", {"fourth", "w"}, {"sum"}).node("Swish", {"sum"}, {"bent"});
    } else {
      builder.node("Gemm", {"fourth", "w", "b"}, {"sum"}).node("Sigmoid", {"sum"}, {"gate"});
      builder.node("Mul", {"sum", "gate"}, {"bent"});
    }
    builder.node("Tanh", {"bent"}, {"y"});
    return builder.output("y"), builder;
  };
  const Matched matched(finished(gated(false)), finished(gated(true)));
  ASSERT_TRUE(matched.pairs.contains("sum"));
  EXPECT_EQ(matched.pairs.at("sum"), "sum");
  EXPECT_EQ(matched.pairs.at("bent"), "bent");
}

// Another operator of the same operands, under the same name, read by what an optimizer made: as A reads a later value.
TEST(Matching, AnotherOperatorOfTheSameOperandsKeepsItsName) {
  const auto permuted = [](bool is_changed) {
    GraphBuilder builder(17);
    builder.input("x", "float32[4,4]").initializer("w", weight(2, 16));
    builder.node("Softmax", {"x"}, {"first"}, {{"axis", int64_t{-1}}}).node("Exp", {"first"}, {"a"});
    builder.node("Abs", {"first"}, {"b"}).node(is_changed ? "Sub" : "Add", {"a", "b"}, {"sum"});
    if (!is_changed) builder.node("MatMul", {"sum", "w"}, {"product"}).node("Tanh", {"product"}, {"late"});
    builder.node("Transpose", {is_changed ? "sum" : "late"}, {"transposed"}).node("Relu", {"transposed"}, {"bent"});
    builder.node("LogSoftmax", {"bent"}, {"y"}, {{"axis", int64_t{-1}}});
    return builder.output("y"), builder;
  };
  const Matched matched(finished(permuted(false)), finished(permuted(true)));
  ASSERT_TRUE(matched.pairs.contains("sum"));
  EXPECT_EQ(matched.pairs.at("sum"), "sum");
}

// Nothing is computed of inputs, and neither content nor names say which constants these are.
TEST(Matching, WhatIsHandedOutStandsForWhatIsHandedOut) {
  const auto handed_out = [](const std::string& name, float first, bool is_scaled) {
    GraphBuilder builder(17);
    builder.initializer(name, weight(first)).initializer("other", weight(9));
    if (is_scaled) builder.initializer("factor", weight(7)).node("Mul", {name, "factor"}, {"scaled"});
    builder.node("Identity", {is_scaled ? "scaled" : name}, {"y"}).node("Neg", {"other"}, {"z"});
    return builder.output("y").output("z"), builder;
  };
  for (const bool is_scaled : {false, true}) {
    const Matched matched(finished(handed_out("c", 1, is_scaled)), finished(handed_out("d", 2, is_scaled)));
    ASSERT_TRUE(matched.pairs.contains("c")) << is_scaled;
    EXPECT_EQ(matched.pairs.at("c"), "d") << is_scaled;
    EXPECT_EQ(matched.pairs.at("y"), "y") << is_scaled;
    EXPECT_EQ(matched.pairs.at("other"), "other") << is_scaled;
  }
}

}  // namespace
}  // namespace parallax
