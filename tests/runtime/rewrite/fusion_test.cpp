// SPDX-License-Identifier: Apache-2.0
// Fusing patterns on graphs as exporters write them: what they make, what they announce, and what stops them.
#include "inspector/tensor/elements.h"
#include "runtime/rewrite/fuser.h"
#include "tests/runtime/rewrite/graph_text.h"

namespace parallax::runtime {
namespace {

using Ops = std::vector<std::string>;

std::string erf_gelu(const std::string& x, const std::string& y) {
  return graph_node("Div", {x, "sqrt2"}, "g1") + graph_node("Erf", {"g1"}, "g2") +
         graph_node("Add", {"g2", "one"}, "g3") + graph_node("Mul", {x, "g3"}, "g4") +
         graph_node("Mul", {"g4", "half"}, y) + weight_of("sqrt2", {}, {1.4142135}) + weight_of("one", {}, {1}) +
         weight_of("half", {}, {0.5});
}

TEST(Fusion, GeluFromItsPartsWithErf) {
  const auto model = model_text::model_of(erf_gelu("x", "y") + graph_input("x", {2, 3}) + graph_output("y", {2, 3}));
  ASSERT_NE(model, nullptr);
  const GraphEdit edit = rewritten(*model, {"gelu"});
  EXPECT_EQ(operators_of(edit), Ops{"Gelu"});
  EXPECT_EQ(edit.nodes[0].node->domain, "com.microsoft");
  EXPECT_EQ(edit.nodes[0].sources.size(), 5U);
  expect_all_accounted(edit);
}

TEST(Fusion, ValueThatIsNeededElsewhereStopsIt) {
  const std::string graph = erf_gelu("x", "y") + graph_input("x", {2, 3}) + graph_output("y", {2, 3});
  const auto as_output = model_text::model_of(graph + graph_output("g2", {2, 3}));
  const auto read = model_text::model_of(graph + graph_node("Neg", {"g3"}, "z") + graph_output("z", {2, 3}));
  const auto plain = model_text::model_of(graph);
  ASSERT_TRUE(as_output && read && plain);
  EXPECT_EQ(rewritten(*as_output, {"gelu"}).nodes.size(), 5U);
  EXPECT_EQ(rewritten(*read, {"gelu"}).nodes.size(), 6U);
  EXPECT_EQ(rewritten(*plain, {"gelu"}, {"g1"}).nodes.size(), 5U);
}

TEST(Fusion, OtherNumbersAreNoGelu) {
  std::string graph = erf_gelu("x", "y") + graph_input("x", {2, 3}) + graph_output("y", {2, 3});
  graph.replace(graph.find("1.41421"), 7, "1.42000");
  const auto model = model_text::model_of(graph);
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(rewritten(*model, {"gelu"}).nodes.size(), 5U);
}

TEST(Fusion, ResidualAndLayerNormKeepTheSumThatIsReadAgain) {
  const auto model = model_text::model_of(graph_node("Add", {"a", "b"}, "x") + layer_norm("x", "y") +
                                          graph_node("Mul", {"x", "y"}, "z") + graph_input("a", {2, 3, 4}) +
                                          graph_input("b", {2, 3, 4}) + graph_output("z", {2, 3, 4}));
  ASSERT_NE(model, nullptr);
  const GraphEdit edit = rewritten(*model, {"layer-norm", "skip-norm"});
  EXPECT_EQ(operators_of(edit), (Ops{"SkipLayerNormalization", "Mul"}));
  const Node& fused = *edit.nodes[0].node;
  ASSERT_EQ(fused.outputs.size(), 4U);
  EXPECT_EQ(fused.outputs[3], model->graph.find_value("x"));
  EXPECT_FLOAT_EQ(static_cast<float>(float_of(fused, "epsilon", 0)), 0.001F);
  expect_all_accounted(edit);
}

TEST(Fusion, MeanOverAnotherAxisIsNoLayerNorm) {
  std::string graph = layer_norm("x", "y") + graph_input("x", {2, 4, 4}) + graph_output("y", {2, 4, 4});
  graph.replace(graph.find("ints: -1"), 8, "ints: 1 ");
  const auto model = model_text::model_of(graph);
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(rewritten(*model, {"layer-norm"}).nodes.size(), 9U);
}

// Filters 2 and -3, factor 10 / sqrt(0.24 + 0.01) = 20: weights 40 and -60, bias (0.5 - 1) * 20 + 7 = -3.
TEST(Fusion, BatchNormalizationGoesIntoTheFilters) {
  const auto model = model_text::model_of(graph_node("Conv", {"x", "w", "b"}, "c") +
                                          graph_node("BatchNormalization", {"c", "scale", "shift", "mean", "variance"},
                                                     "y", "attribute { name: \"epsilon\" type: FLOAT f: 0.01 } ") +
                                          weight_of("w", {1, 2, 1, 1}, {2, -3}) + weight_of("b", {1}, {0.5}) +
                                          weight_of("scale", {1}, {10}) + weight_of("shift", {1}, {7}) +
                                          weight_of("mean", {1}, {1}) + weight_of("variance", {1}, {0.24}) +
                                          graph_input("x", {1, 2, 3, 3}) + graph_output("y", {1, 1, 3, 3}));
  ASSERT_NE(model, nullptr);
  const GraphEdit edit = rewritten(*model, {"conv-batchnorm"});
  ASSERT_EQ(operators_of(edit), Ops{"Conv"});
  const Node& conv = *edit.nodes[0].node;
  ASSERT_TRUE(edit.is_added(conv.inputs[1]) && edit.is_added(conv.inputs[2]));
  EXPECT_NEAR(element_as_double(edit.constant(conv.inputs[1])->view(), 0), 40, 1e-3);
  EXPECT_NEAR(element_as_double(edit.constant(conv.inputs[1])->view(), 1), -60, 1e-3);
  EXPECT_NEAR(element_as_double(edit.constant(conv.inputs[2])->view(), 0), -3, 1e-3);
  expect_all_accounted(edit);
}

std::string normalized(const std::string& activation) {
  return graph_node("BatchNormalization", {"x", "scale", "shift", "mean", "variance"}, "n",
                    "attribute { name: \"epsilon\" type: FLOAT f: 0.01 } ") +
         graph_node(activation, {"n"}, "y") + weight_of("scale", {1}, {10}) + weight_of("shift", {1}, {7}) +
         weight_of("mean", {1}, {0.5}) + weight_of("variance", {1}, {0.24}) + graph_input("x", {1, 1, 3, 3}) +
         graph_output("y", {1, 1, 3, 3});
}

// Factor 10 / sqrt(0.24 + 0.01) = 20, offset 7 - 0.5 * 20 = -3.
TEST(Fusion, BatchNormalizationAndItsActivationBecomeOneNode) {
  const auto model = model_text::model_of(normalized("Relu")), other = model_text::model_of(normalized("Sin"));
  ASSERT_TRUE(model && other);
  const GraphEdit edit = rewritten(*model, {"batchnorm-activation"});
  ASSERT_EQ(operators_of(edit), Ops{"ChannelAffine"});
  const Node& affine = *edit.nodes[0].node;
  EXPECT_NEAR(element_as_double(edit.constant(affine.inputs[1])->view(), 0), 20, 1e-4);
  EXPECT_NEAR(element_as_double(edit.constant(affine.inputs[2])->view(), 0), -3, 1e-4);
  EXPECT_EQ(text_of(affine, "activation", ""), "Relu");
  expect_all_accounted(edit);
  EXPECT_EQ(operators_of(rewritten(*other, {"batchnorm-activation"})), (Ops{"BatchNormalization", "Sin"}));
}

std::string dims_in(const std::string& name, const std::vector<int>& dims) {
  std::string text = "initializer { name: \"" + name + "\" data_type: 7 dims: " + std::to_string(dims.size()) + " ";
  for (int dim : dims) text += "int64_data: " + std::to_string(dim) + " ";
  return text + "} ";
}
std::string inner_value(const std::string& name, const std::vector<int>& dims) {
  return "value_info { name: \"" + name + "\" " + tensor_type(dims) + "} ";
}

std::string shuffled(const std::vector<int>& order) {
  return graph_node("Concat", {"p", "q"}, "c", "attribute { name: \"axis\" type: INT i: 1 } ") +
         graph_node("Reshape", {"c", "five"}, "r") + graph_node("Transpose", {"r"}, "t", ints("perm", order)) +
         graph_node("Reshape", {"t", "four"}, "y") + dims_in("five", {1, 2, 4, 3, 3}) + dims_in("four", {1, 8, 3, 3}) +
         inner_value("c", {1, 8, 3, 3}) + inner_value("r", {1, 2, 4, 3, 3}) + inner_value("t", {1, 4, 2, 3, 3}) +
         graph_input("p", {1, 4, 3, 3}) + graph_input("q", {1, 4, 3, 3}) + graph_output("y", {1, 8, 3, 3});
}

TEST(Fusion, InterleavedChannelsAreAShuffleOfTheirGroups) {
  const auto model = model_text::model_of(shuffled({0, 2, 1, 3, 4}));
  const auto other = model_text::model_of(shuffled({0, 2, 1, 4, 3}));
  ASSERT_TRUE(model && other);
  const GraphEdit edit = rewritten(*model, {"channel-shuffle"});
  ASSERT_EQ(operators_of(edit), Ops{"ChannelShuffle"});
  EXPECT_EQ(edit.nodes[0].node->inputs.size(), 2U);
  EXPECT_EQ(int_of(*edit.nodes[0].node, "groups", 0), 2);
  expect_all_accounted(edit);
  EXPECT_EQ(operators_of(rewritten(*other, {"channel-shuffle"})), (Ops{"Concat", "Reshape", "Transpose", "Reshape"}));
}

// y = Relu(Conv(x) + z)
std::string residual_block(const std::vector<int>& z_dims, const std::string& more = "") {
  return graph_node("Conv", {"x", "w"}, "c") + graph_node("Add", {"z", "c"}, "s") + graph_node("Relu", {"s"}, "y") +
         weight_of("w", {1, 2, 1, 1}, {2, -3}) + graph_input("x", {1, 2, 3, 3}) + graph_input("z", z_dims) +
         graph_output("y", {1, 1, 3, 3}) + more;
}

TEST(Fusion, ResidualAndActivationGoIntoTheConvolution) {
  const auto model = model_text::model_of(residual_block({1, 1, 3, 3}));
  ASSERT_NE(model, nullptr);
  const GraphEdit edit = rewritten(*model, {"conv-add", "conv-activation"});
  ASSERT_EQ(operators_of(edit), Ops{"FusedConv"});
  const Node& conv = *edit.nodes[0].node;
  ASSERT_EQ(conv.inputs.size(), 4U);
  EXPECT_EQ(conv.inputs[2], kNoValue);
  EXPECT_EQ(conv.inputs[3], model->graph.find_value("z"));
  EXPECT_NE(find_attribute(conv, "activation"), nullptr);
  EXPECT_EQ(edit.nodes[0].sources.size(), 3U);
  expect_all_accounted(edit);
}

TEST(Fusion, ConvolutionsThatAreNeededWithoutTheResidualKeepTheirAdd) {
  const Ops untouched{"Conv", "Add", "Relu"};
  const auto plain = model_text::model_of(residual_block({1, 1, 3, 3}));
  const auto broadcast = model_text::model_of(residual_block({1, 1, 3, 1}));
  const auto as_output = model_text::model_of(residual_block({1, 1, 3, 3}, graph_output("c", {1, 1, 3, 3})));
  const auto read = model_text::model_of(
      residual_block({1, 1, 3, 3}, graph_node("Neg", {"c"}, "n") + graph_output("n", {1, 1, 3, 3})));
  ASSERT_TRUE(plain && broadcast && as_output && read);
  EXPECT_EQ(operators_of(rewritten(*plain, {"conv-add"}, {"c"})), untouched);
  EXPECT_EQ(operators_of(rewritten(*broadcast, {"conv-add"})), untouched);
  EXPECT_EQ(operators_of(rewritten(*as_output, {"conv-add"})), untouched);
  EXPECT_EQ(rewritten(*read, {"conv-add"}).nodes.size(), 4U);
}

// Keys transposed and scaled before the product; the mask comes after.
std::string attention(const std::string& after_scores, const std::string& masked) {
  return graph_node("Transpose", {"k"}, "t", ints("perm", {0, 2, 1})) + graph_node("Mul", {"t", "root"}, "r") +
         graph_node("MatMul", {"q", "r"}, "s") + after_scores +
         graph_node("Softmax", {masked}, "p", "attribute { name: \"axis\" type: INT i: -1 } ") +
         graph_node("MatMul", {"p", "v"}, "y") + weight_of("root", {}, {0.25}) + graph_input("q", {2, 3, 4}) +
         graph_input("k", {2, 5, 4}) + graph_input("v", {2, 5, 6}) + graph_input("mask", {3, 5}) +
         graph_output("y", {2, 3, 6});
}

TEST(Fusion, AttentionFromItsParts) {
  const auto model = model_text::model_of(attention(graph_node("Add", {"mask", "s"}, "m"), "m"));
  ASSERT_NE(model, nullptr);
  const GraphEdit edit = rewritten(*model, {"attention"});
  ASSERT_EQ(operators_of(edit), Ops{"Attention"});
  const Node& fused = *edit.nodes[0].node;
  EXPECT_EQ(edit.nodes[0].sources.size(), 6U);
  EXPECT_EQ(float_of(fused, "scale", 0), 0.25);
  EXPECT_EQ(ints_of(fused, "k_order"), (std::vector<int64_t>{0, 2, 1}));
  ASSERT_EQ(fused.inputs.size(), 4U);
  EXPECT_EQ(fused.inputs[3], model->graph.find_value("mask"));
  for (const ValueAbsence& absence : edit.absences) EXPECT_EQ(absence.into, "y_node");
  expect_all_accounted(edit);
}

TEST(Fusion, ScoresThatAreNeededKeepAttentionApart) {
  const std::string mask = graph_node("Add", {"mask", "s"}, "m");
  const auto shown = model_text::model_of(attention(mask, "m") + graph_output("p", {2, 3, 5}));
  const auto read =
      model_text::model_of(attention(mask, "m") + graph_node("Neg", {"s"}, "z") + graph_output("z", {2, 3, 5}));
  const auto scaled_late = model_text::model_of(
      attention(mask + graph_node("Mul", {"m", "root"}, "n"), "n"));  // the mask would be scaled too
  ASSERT_TRUE(shown && read && scaled_late);
  EXPECT_EQ(rewritten(*shown, {"attention"}).nodes.size(), 6U);
  EXPECT_EQ(rewritten(*read, {"attention"}).nodes.size(), 7U);
  EXPECT_EQ(rewritten(*scaled_late, {"attention"}).nodes.size(), 7U);
}

TEST(Fusion, RepeatedNodesAreComputedOnce) {
  const auto model =
      model_text::model_of(graph_node("Neg", {"x"}, "a") + graph_node("Neg", {"x"}, "b") +
                           graph_node("Abs", {"x"}, "c") + graph_node("Add", {"a", "b"}, "d") +
                           graph_node("Add", {"d", "c"}, "y") + graph_input("x", {2}) + graph_output("y", {2}));
  ASSERT_NE(model, nullptr);
  const GraphEdit edit = rewritten(*model, {"duplicate"});
  EXPECT_EQ(operators_of(edit), (Ops{"Neg", "Abs", "Add", "Add"}));
  ASSERT_EQ(edit.absences.size(), 1U);
  EXPECT_EQ(edit.absences[0].into, "a");
}

TEST(Fusion, OpposedTransposesVanish) {
  const auto model =
      model_text::model_of(graph_node("Transpose", {"x"}, "a", ints("perm", {1, 2, 0})) +
                           graph_node("Transpose", {"a"}, "b", ints("perm", {2, 0, 1})) +
                           graph_node("Relu", {"b"}, "y") + graph_input("x", {2, 3, 4}) + graph_output("y", {2, 3, 4}));
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(operators_of(rewritten(*model, {"transpose", "dead"})), Ops{"Relu"});
}

TEST(Fusion, GateOfAFeedForwardLayer) {
  const auto model = model_text::model_of(graph_node("Sigmoid", {"g"}, "s") + graph_node("Mul", {"g", "s"}, "a") +
                                          graph_node("Mul", {"a", "u"}, "y") + graph_input("g", {2, 3}) +
                                          graph_input("u", {2, 3}) + graph_output("y", {2, 3}));
  ASSERT_NE(model, nullptr);
  const GraphEdit edit = rewritten(*model, {"swish", "swiglu"});
  ASSERT_EQ(operators_of(edit), Ops{"Gated"});
  EXPECT_EQ(text_of(*edit.nodes[0].node, "activation", ""), "QuickGelu");
  EXPECT_EQ(edit.nodes[0].sources.size(), 3U);
  expect_all_accounted(edit);
}

std::string rotary(int end) {
  return graph_node("Slice", {"x", "zero", "two", "axis"}, "a") +
         graph_node("Slice", {"x", "two", "end", "axis"}, "b") + graph_node("Neg", {"b"}, "n") +
         graph_node("Concat", {"n", "a"}, "r", "attribute { name: \"axis\" type: INT i: -1 } ") +
         graph_node("Mul", {"x", "cos"}, "p") + graph_node("Mul", {"sin", "r"}, "q") +
         graph_node("Add", {"p", "q"}, "y") + index_of("zero", 0) + index_of("two", 2) + index_of("axis", 2) +
         index_of("end", end) + weight_of("cos", {3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}) +
         weight_of("sin", {1, 4}, {0.5, 1, 2, 4}) + graph_input("x", {2, 3, 4}) + graph_output("y", {2, 3, 4});
}

TEST(Fusion, RotaryEmbeddingFromItsParts) {
  const auto model = model_text::model_of(rotary(9));
  ASSERT_NE(model, nullptr);
  const GraphEdit edit = rewritten(*model, {"rotary"});
  ASSERT_EQ(operators_of(edit), Ops{"Rotary"});
  EXPECT_EQ(edit.nodes[0].node->inputs[1], model->graph.find_value("cos"));
  EXPECT_EQ(edit.nodes[0].sources.size(), 7U);
  expect_all_accounted(edit);
}

// The Transpose before it is taken in as the order of X's axes, unless its result is read elsewhere, too.
TEST(Fusion, RotaryEmbeddingReadsItsOperandBeforeTheTranspose) {
  std::string graph = rotary(9);
  graph.replace(graph.find("input { name: \"x\""), std::string("input { name: \"x\"").size(), "input { name: \"t\"");
  graph.replace(graph.find("dim_value: 2 } dim { dim_value: 3 } dim { dim_value: 4 }"), 12, "dim_value: 3");
  graph.replace(graph.find("dim_value: 3 } dim { dim_value: 3 } dim { dim_value: 4 }") + 21, 12, "dim_value: 2");
  const std::string transposed = graph_node("Transpose", {"t"}, "x", ints("perm", {1, 0, 2})) + graph;
  const auto model = model_text::model_of(transposed);
  const auto read = model_text::model_of(transposed + graph_node("Neg", {"x"}, "z") + graph_output("z", {2, 3, 4}));
  ASSERT_TRUE(model && read);
  const GraphEdit edit = rewritten(*model, {"rotary"});
  ASSERT_EQ(operators_of(edit), Ops{"Rotary"});
  EXPECT_EQ(edit.nodes[0].node->inputs[0], model->graph.find_value("t"));
  EXPECT_EQ(ints_of(*edit.nodes[0].node, "x_order"), (std::vector<int64_t>{1, 0, 2}));
  expect_all_accounted(edit);
  const GraphEdit other = rewritten(*read, {"rotary"});
  EXPECT_EQ(operators_of(other), (Ops{"Transpose", "Rotary", "Neg"}));
  EXPECT_EQ(ints_of(*other.nodes[1].node, "x_order"), std::nullopt);
}

TEST(Fusion, PartsOfOtherSizesAreNoRotation) {
  const auto model = model_text::model_of(rotary(3));
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(rewritten(*model, {"rotary"}).nodes.size(), 7U);
}

TEST(Fusion, ChainOfPointwiseNodes) {
  const auto model =
      model_text::model_of(graph_node("Add", {"x", "row"}, "a") + graph_node("Tanh", {"a"}, "t") +
                           graph_node("Mul", {"t", "a"}, "m") + graph_node("Neg", {"m"}, "y") +
                           weight_of("row", {3}, {1, 2, 3}) + graph_input("x", {2, 3}) + graph_output("y", {2, 3}));
  ASSERT_NE(model, nullptr);
  const GraphEdit edit = rewritten(*model, {"pointwise"});
  ASSERT_EQ(operators_of(edit), Ops{"Pointwise"});
  EXPECT_EQ(ints_of(*edit.nodes[0].node, "operands"), (std::vector<int64_t>{0, 1, 2, -1, 3, 2, 4, -1}));
  expect_all_accounted(edit);
}

// `a` is an output: the chain begins after it. `small` has another shape: it stays outside.
TEST(Fusion, ChainsKeepToOneShapeAndToTheirOwnValues) {
  const auto model =
      model_text::model_of(graph_node("Exp", {"row"}, "small") + graph_node("Add", {"x", "small"}, "a") +
                           graph_node("Tanh", {"a"}, "t") + graph_node("Neg", {"t"}, "y") + graph_input("row", {3}) +
                           graph_input("x", {2, 3}) + graph_output("y", {2, 3}) + graph_output("a", {2, 3}));
  ASSERT_NE(model, nullptr);
  const GraphEdit edit = rewritten(*model, {"pointwise"});
  EXPECT_EQ(operators_of(edit), (Ops{"Exp", "Add", "Pointwise"}));
  expect_all_accounted(edit);
}

}  // namespace
}  // namespace parallax::runtime
