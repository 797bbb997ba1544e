// SPDX-License-Identifier: Apache-2.0
// Around what cannot be executed: the part before it, values in its stead, and rewrites that leave it as it is.
#include "inspector/transform/runnable.h"

#include <array>

#include <gtest/gtest.h>

#include "inspector/model/io/import.h"
#include "inspector/transform/hidden_faults.h"
#include "tests/inspector/transform/models.h"

namespace parallax::transform {
namespace {

// x -> Neg -> a -> Mystery -> (b, c) -> Add -> y, and aside = Abs(x). The If has a Mystery in a branch.
constexpr const char* kFaulty = R"(
ir_version: 8 opset_import { version: 17 } opset_import { domain: 'my' version: 1 }
graph { name: 'g'
  node { op_type: 'Neg' name: 'neg' input: 'x' output: 'a' }
  node { op_type: 'Mystery' domain: 'my' name: 'mystery' input: 'a' output: 'b' output: 'c' output: 'unused' }
  node { op_type: 'Add' name: 'add' input: 'b' input: 'c' output: 'y' }
  node { op_type: 'Abs' name: 'abs' input: 'x' output: 'aside' }
  node { op_type: 'If' name: 'if' input: 'flag' output: 'z'
    attribute { name: 'then_branch' type: GRAPH g { name: 't'
      node { op_type: 'Mystery' domain: 'my' input: 'aside' output: 't' } output { name: 't' } } }
    attribute { name: 'else_branch' type: GRAPH g { name: 'e'
      node { op_type: 'Neg' input: 'aside' output: 'e' } output { name: 'e' } } } }
  input { name: 'x' type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } }
  input { name: 'flag' type { tensor_type { elem_type: 9 shape { } } } }
  output { name: 'y' type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } }
  output { name: 'aside' type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } }
  output { name: 'z' type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } } })";

std::shared_ptr<const Model> faulty() {
  ImportOptions options;
  options.checks = ModelChecks::recorded;
  return import_model(std::as_bytes(std::span(std::string_view(kFaulty))), "", "model.textproto", options).take();
}

std::vector<std::string> names_of(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) names.push_back(node.display_name);
  return names;
}

std::vector<std::string> names_of(const Graph& graph, const std::vector<ValueId>& ids) {
  std::vector<std::string> names;
  for (const ValueId id : ids) names.push_back(value_at(graph, id).name);
  return names;
}

using Names = std::vector<std::string>;

TEST(Runnable, LeavesOutWhatNeedsAFaultyNode) {
  const auto model = faulty();
  ASSERT_EQ(model->problems.size(), 2U);
  const auto runnable = runnable_model(model);
  ASSERT_TRUE(runnable.ok()) << runnable.error().message;
  EXPECT_EQ(names_of((*runnable)->graph), (Names{"neg", "abs"}));
  EXPECT_EQ(names_of((*runnable)->graph, (*runnable)->graph.outputs), (Names{"a", "aside"}));
  EXPECT_EQ(names_of((*runnable)->graph, (*runnable)->graph.inputs), (Names{"x", "flag"}))
      << "those of the whole model";
  EXPECT_TRUE((*runnable)->is_part);
  EXPECT_TRUE(check_model(**runnable).empty());
  EXPECT_EQ(describe_left_out(*model, runnable_part(model).take()).substr(0, 25), "3 of 5 nodes are left out");
}

TEST(Runnable, WantsWhatTheGlobsMatch) {
  const auto model = faulty();
  EXPECT_EQ(names_of((*runnable_model(model, {"aside"}))->graph), (Names{"abs"}));
  EXPECT_EQ(names_of((*runnable_model(model, {"*"}))->graph), (Names{"neg", "abs"}));
  const auto blocked = runnable_model(model, {"y"});
  ASSERT_FALSE(blocked.ok());
  EXPECT_EQ(blocked.error().node, "mystery");
  EXPECT_TRUE(blocked.error().message.starts_with("value 'y' cannot be computed: node 'mystery' (my.Mystery)"))
      << blocked.error().message;
  const auto inside = runnable_model(model, {"if.else//e"});
  ASSERT_FALSE(inside.ok()) << "the If as a whole cannot be executed";
  EXPECT_EQ(runnable_model(model, {"nothing"}).error().code, ErrorCode::usage);
}

TEST(Runnable, ValuesStandIn) {
  const auto model = faulty();
  const Value pair(Tensor::vector<float>(std::array{1.0F, 2.0F}));
  EXPECT_FALSE(with_stand_ins(model, {{"b", pair}, {"c", pair}}).ok()) << "the If is left";
  const auto whole = with_stand_ins(model, {{"b", pair}, {"c", pair}, {"z", pair}});
  ASSERT_TRUE(whole.ok()) << whole.error().message;
  EXPECT_EQ(names_of((*whole)->graph), (Names{"neg", "add", "abs"}));
  EXPECT_EQ(names_of((*whole)->graph, (*whole)->graph.outputs), (Names{"y", "aside", "z", "a"}));
  EXPECT_EQ(with_stand_ins(model, {{"b", pair}}).take(), model) << "one of two outputs is no stand-in for the node";
  EXPECT_EQ(with_stand_ins(model, {{"a", pair}}).take(), model) << "what can be computed is";
}

TEST(HiddenFaults, ComeBackAsTheyWere) {
  const auto model = faulty();
  const HiddenFaults hidden(*model);
  EXPECT_EQ(hidden.model()->graph.nodes[1].schema, nullptr);
  EXPECT_NE(hidden.model()->graph.nodes[1].op_type, "Mystery");
  const auto restored = hidden.restored(*hidden.model());
  EXPECT_EQ(names_of(restored->graph), names_of(model->graph));
  EXPECT_EQ(restored->graph.nodes[1].op_type, "Mystery");
  EXPECT_EQ(restored->graph.nodes[1].domain, "my");
  EXPECT_EQ(check_model(*restored).size(), model->problems.size());
}

}  // namespace
}  // namespace parallax::transform
