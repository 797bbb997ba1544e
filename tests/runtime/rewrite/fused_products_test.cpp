// SPDX-License-Identifier: Apache-2.0
// Patterns around products of matrices: what they make, and what stops them.
#include <span>

#include "inspector/model/io/export.h"
#include "inspector/model/io/import.h"
#include "runtime/rewrite/apply.h"
#include "runtime/rewrite/fuser.h"
#include "tests/runtime/rewrite/graph_text.h"

namespace parallax::runtime {
namespace {

using Ops = std::vector<std::string>;

std::string linear(const std::string& activation) {
  return graph_node("MatMul", {"x", "w"}, "p") + graph_node("Add", {"b", "p"}, "q") +
         graph_node(activation, {"q"}, "y") + weight_of("w", {2, 3}, {1, 2, 3, 4, 5, 6}) +
         weight_of("b", {3}, {1, 2, 3}) + graph_input("x", {5, 4, 2}) + graph_output("y", {5, 4, 3});
}

TEST(FusedProducts, ProductBiasAndActivation) {
  const auto model = model_text::model_of(linear("Relu"));
  ASSERT_NE(model, nullptr);
  const GraphEdit edit = rewritten(*model, {"matmul-bias", "linear-activation"});
  ASSERT_EQ(operators_of(edit), Ops{"Linear"});
  EXPECT_EQ(text_of(*edit.nodes[0].node, "activation", ""), "Relu");
  EXPECT_EQ(edit.nodes[0].sources.size(), 3U);
  ASSERT_EQ(edit.absences.size(), 1U);
  EXPECT_EQ(edit.absences[0].into, "y_node");
  const std::vector<ValueId> outputs{model->graph.find_value("y"), model->graph.find_value("q")};
  EXPECT_EQ(edit.nodes[0].node->outputs, outputs) << "what the activation is of can still be observed";
  expect_all_accounted(edit);
}

TEST(FusedProducts, ResidualGoesIntoTheProductBeforeItsNorm) {
  const auto model_of = [](const std::string& more) {
    return model_text::model_of(graph_node("MatMul", {"x", "w"}, "p") + graph_node("Add", {"r", "p"}, "y") +
                                weight_of("w", {2, 3}, {1, 2, 3, 4, 5, 6}) + graph_input("x", {5, 4, 2}) +
                                graph_output("y", {5, 4, 3}) + more);
  };
  const auto model = model_of(graph_input("r", {5, 4, 3}));
  ASSERT_NE(model, nullptr);
  const GraphEdit edit = rewritten(*model, {"matmul-add"});
  ASSERT_EQ(operators_of(edit), Ops{"Linear"});
  const std::vector<ValueId> inputs{model->graph.find_value("x"), model->graph.find_value("w"), kNoValue,
                                    model->graph.find_value("r")};
  EXPECT_EQ(edit.nodes[0].node->inputs, inputs);
  expect_all_accounted(edit);
  const auto is_left = [](const Model& other) { return rewritten(other, {"matmul-add"}).nodes.size() == 2; };
  EXPECT_TRUE(is_left(*model_of(graph_input("r", {4, 3})))) << "a residual of another shape";
  EXPECT_TRUE(is_left(*model_of(graph_input("r", {5, 4, 3}) + graph_output("p", {5, 4, 3})))) << "p is an output";
  EXPECT_TRUE(is_left(*model_of(graph_input("r", {5, 4, 3}) + graph_input("w", {2, 3})))) << "no constant matrix";

  const auto biased =
      model_text::model_of(graph_node("MatMul", {"x", "w"}, "product") + graph_node("Add", {"product", "b"}, "biased") +
                           graph_node("Add", {"biased", "r"}, "sum") + layer_norm("sum", "y") +
                           weight_of("w", {4, 4}, std::vector<double>(16, 0.5)) + weight_of("b", {4}, {1, 2, 3, 4}) +
                           graph_input("x", {2, 4}) + graph_input("r", {2, 4}) + graph_output("y", {2, 4}));
  ASSERT_NE(biased, nullptr);
  EXPECT_EQ(operators_of(rewritten(*biased, {"layer-norm", "matmul-bias", "matmul-add", "skip-norm"})),
            (Ops{"Linear", "LayerNormalization"}));
  EXPECT_EQ(operators_of(rewritten(*biased, {"layer-norm", "matmul-bias", "skip-norm"})),
            (Ops{"Linear", "SkipLayerNormalization"}));
}

TEST(FusedProducts, AWeightIsDequantizedInTheProduct) {
  const auto weighted = [](const std::string& more) {
    return model_text::model_of(
        graph_node("DequantizeLinear", {"w", "s"}, "d", more) + graph_node("MatMul", {"x", "d"}, "y") +
        "initializer { name: \"w\" data_type: 3 dims: 2 dims: 3 int32_data: [1, 2, 3, 4, 5, 6] } " +
        weight_of("s", {3}, {1, 2, 3}) + graph_input("x", {4, 2}) + graph_output("y", {4, 3}));
  };
  const auto by_columns = weighted("");
  const auto by_rows = weighted("attribute { name: \"axis\" type: INT i: 0 } ");
  ASSERT_TRUE(by_columns && by_rows);
  const GraphEdit edit = rewritten(*by_columns, {"matmul-dequantize"});
  ASSERT_EQ(operators_of(edit), Ops{"DequantizedMatMul"});
  expect_all_accounted(edit);
  EXPECT_EQ(rewritten(*by_rows, {"matmul-dequantize"}).nodes.size(), 2U) << "rows have no scale of their own";
}

TEST(FusedProducts, TransposeAndFactorGoIntoTheProduct) {
  const auto model = model_text::model_of(
      graph_node("Transpose", {"k"}, "t", ints("perm", {0, 2, 1})) + graph_node("MatMul", {"q", "t"}, "p") +
      graph_node("Div", {"p", "root"}, "y") + weight_of("root", {}, {4}) + graph_input("q", {2, 3, 4}) +
      graph_input("k", {2, 5, 4}) + graph_output("y", {2, 3, 5}));
  ASSERT_NE(model, nullptr);
  const GraphEdit edit = rewritten(*model, {"matmul-transpose", "matmul-scale"});
  ASSERT_EQ(operators_of(edit), Ops{"FusedMatMul"});
  EXPECT_EQ(int_of(*edit.nodes[0].node, "transB", 0), 1);
  EXPECT_EQ(float_of(*edit.nodes[0].node, "alpha", 0), 0.25);
  expect_all_accounted(edit);
}

// All patterns, one after the other.
TEST(FusedProducts, AppliedModelIsValidAndHoldsItsOwnOperatorsAsFunctions) {
  const auto model = model_text::model_of(linear("Relu"));
  ASSERT_NE(model, nullptr);
  std::vector<ChosenPattern> patterns;
  for (const Pattern& pattern : rewrite_patterns()) patterns.push_back({&pattern});
  const auto applied = apply_rewrite(*model, patterns, {});
  ASSERT_TRUE(applied.ok()) << applied.error().message;
  const Model& result = **applied;
  ASSERT_EQ(result.graph.nodes.size(), 1U);
  EXPECT_EQ(find_metadata(result.graph.nodes[0].metadata, "parallax.sources"), "p_node, q_node, y_node");
  ASSERT_EQ(result.functions.size(), 1U);
  EXPECT_EQ(result.functions[0]->body.nodes.size(), 3U);
  const auto bytes = export_model_bytes(result);
  ASSERT_TRUE(bytes.ok()) << bytes.error().message;
  const auto again = import_model(std::as_bytes(std::span(*bytes)), "", "again");
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_NE((*again)->graph.nodes[0].function, nullptr);
}

}  // namespace
}  // namespace parallax::runtime
