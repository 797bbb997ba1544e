// SPDX-License-Identifier: Apache-2.0
// Patterns within a target: what they make, and what they then leave as it was.
#include "tests/runtime/rewrite/graph_text.h"

namespace parallax::runtime {
namespace {

using Ops = std::vector<std::string>;

std::string convolved(const std::string& activation) {
  return graph_node("Conv", {"x", "w"}, "c") + graph_node(activation, {"c"}, "y") +
         weight_of("w", {1, 1, 1, 1}, {0.5}) + graph_input("x", {1, 1, 2, 2}) + graph_output("y", {1, 1, 2, 2});
}

Ops operators_within(const Model& model, std::string_view pattern, OperatorSet limit) {
  GraphEdit edit = begin_edit(model.graph);
  apply_pattern({find_pattern(pattern), limit}, edit, {});
  expect_all_accounted(edit);
  return operators_of(edit);
}

TEST(Targets, PatternWritesItsResultWithinTheLimitOrNotAtAll) {
  const auto relu = model_text::model_of(convolved("Relu"));
  const auto hard = model_text::model_of(convolved("HardSwish"));
  ASSERT_TRUE(relu && hard);
  EXPECT_EQ(operators_within(*relu, "conv-activation", OperatorSet::standard), (Ops{"Conv", "Relu"}));
  EXPECT_EQ(operators_within(*relu, "conv-activation", OperatorSet::microsoft), Ops{"FusedConv"});
  EXPECT_EQ(operators_within(*hard, "conv-activation", OperatorSet::microsoft), (Ops{"Conv", "HardSwish"}));
  EXPECT_EQ(operators_within(*hard, "conv-activation", OperatorSet::own), Ops{"Conv"});
}

}  // namespace
}  // namespace parallax::runtime
