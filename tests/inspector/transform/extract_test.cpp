// SPDX-License-Identifier: Apache-2.0
// The contents of an extracted part, and the errors of a request for one.
#include "inspector/transform/extract.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/inspector/transform/models.h"

namespace parallax::transform {
namespace {

using testing::kNestedModel;
using testing::model_of_text;
using Names = std::vector<std::string>;

Names names_of(const Graph& graph, const std::vector<ValueId>& ids) {
  Names names;
  for (const ValueId id : ids) names.push_back(graph.values[static_cast<size_t>(id)].name);
  return names;
}

Names node_names(const Graph& graph) {
  Names names;
  for (const NodeId id : graph.order) names.push_back(graph.nodes[static_cast<size_t>(id)].display_name);
  return names;
}

class Extract : public ::testing::Test {
 protected:
  void SetUp() override {
    auto model = model_of_text(kNestedModel);
    ASSERT_TRUE(model.ok()) << model.error().message;
    model_ = model.take();
  }

  Result<std::shared_ptr<Model>> part(const Names& from, const Names& to) const {
    return extract_model(model_, from, to);
  }
  std::string message(const Names& from, const Names& to) const {
    const auto result = part(from, to);
    if (result.ok()) return "(no error)";
    EXPECT_EQ(result.error().code, ErrorCode::usage);
    return result.error().message;
  }

  std::shared_ptr<const Model> model_;
};

TEST_F(Extract, KeepsOnlyWhatIsNeeded) {
  const auto result = part({}, {"z"});
  ASSERT_TRUE(result.ok()) << result.error().message;
  const Model& model = **result;
  EXPECT_EQ(node_names(model.graph), Names({"aside"}));
  EXPECT_EQ(names_of(model.graph, model.graph.inputs), Names({"x"}));
  EXPECT_EQ(names_of(model.graph, model.graph.outputs), Names({"z"}));
  EXPECT_TRUE(model.graph.initializers.empty());
  EXPECT_TRUE(model.functions.empty());
  ASSERT_EQ(model.opset_imports.size(), 1U);
  EXPECT_EQ(model.opset_imports[0].version, 20);
  EXPECT_TRUE(check_model(model).empty());
}

TEST_F(Extract, KeepsFunctionsAndWhatBodiesReadFromOutside) {
  const auto result = part({"shifted"}, {"looped"});
  ASSERT_TRUE(result.ok()) << result.error().message;
  const Model& model = **result;
  EXPECT_EQ(names_of(model.graph, model.graph.inputs), Names({"shifted"}));
  Names stored = names_of(model.graph, model.graph.initializer_values);
  std::ranges::sort(stored);
  EXPECT_EQ(stored, Names({"go", "one", "scale", "trips"}));
  ASSERT_EQ(model.functions.size(), 1U);
  EXPECT_EQ(model.graph.nodes[0].name, "loop");
  EXPECT_EQ(model.opset_imports.size(), 2U);
}

TEST_F(Extract, KeepsTheNameANodeHadWithoutOne) {
  const auto result = part({}, {"shifted"});
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ((*result)->graph.nodes[0].name, "Add_0");
}

TEST_F(Extract, TakesABodysPartWithValuesFromAroundIt) {
  const auto result = part({"loop.body[1]//bent"}, {"loop.body[1]//next"});
  ASSERT_TRUE(result.ok()) << result.error().message;
  const Graph& graph = (*result)->graph;
  EXPECT_EQ(node_names(graph), Names({"feed"}));
  EXPECT_EQ(names_of(graph, graph.inputs), Names({"bent", "shifted"}));
  EXPECT_TRUE(graph.outer_values.empty());
  const auto found = find_part(model_, {"loop.body[1]//bent"}, {"loop.body[1]//next"});
  EXPECT_EQ(found->inputs[0].path, "loop.body[1]//bent");
  EXPECT_EQ(found->inputs[1].path, "shifted");
}

TEST_F(Extract, KeepsWeightsOfTheGraphAroundABodyAsWeights) {
  const auto result = part({}, {"loop.body[0]//weighed"});
  ASSERT_TRUE(result.ok()) << result.error().message;
  const Graph& graph = (*result)->graph;
  EXPECT_EQ(names_of(graph, graph.inputs), Names({"state"}));
  EXPECT_EQ(names_of(graph, graph.initializer_values), Names({"scale"}));
}

TEST_F(Extract, LeavesOutWhatACallLeavesOut) {
  const std::string inside = "loop.body[2]//bend.call//";
  const auto result = part({}, {inside + "clipped"});
  ASSERT_FALSE(result.ok());  // a function's values have no type before a run
  PartData data;
  const auto found = find_part(model_, {}, {inside + "clipped"});
  ASSERT_TRUE(found.ok()) << found.error().message;
  const float numbers[] = {1, 2};
  const Value vector(Tensor::vector<float>(numbers));
  data.inputs = {vector, Value(Tensor::scalar(1.0F))};
  data.outputs = {vector};
  const auto typed = extract_model(*found, data);
  ASSERT_TRUE(typed.ok()) << typed.error().message;
  const Graph& graph = (*typed)->graph;
  EXPECT_EQ(names_of(graph, graph.inputs), Names({"value", "low"}));
  EXPECT_EQ(graph.nodes[0].inputs.size(), 2U);
  EXPECT_EQ((*typed)->opset_imports[0].version, 20);
}

TEST_F(Extract, TakesTypesFromTheData) {
  const auto found = find_part(model_, {}, {"z"});
  ASSERT_TRUE(found.ok());
  const float numbers[] = {1, 2, 3};
  const Value vector(Tensor::vector<float>(numbers));
  const auto result = extract_model(*found, {{vector}, {vector}});
  ASSERT_TRUE(result.ok()) << result.error().message;
  const Graph& graph = (*result)->graph;
  EXPECT_EQ(to_string(graph.values[static_cast<size_t>(graph.inputs[0])].type), "float32[3]");
  EXPECT_EQ(to_string(graph.values[static_cast<size_t>(graph.outputs[0])].type), "float32[3]");
}

TEST_F(Extract, LeavesTheModelItWasCutFromAsItWas) {
  const size_t values = model_->graph.values.size();
  const std::string name = model_->graph.nodes[0].name;
  ASSERT_TRUE(part({"shifted"}, {"y"}).ok());
  EXPECT_EQ(model_->graph.values.size(), values);
  EXPECT_EQ(model_->graph.nodes[0].name, name);
  EXPECT_TRUE(check_model(*model_).empty());
}

TEST_F(Extract, TellsWhatIsWrongWithARequest) {
  EXPECT_NE(message({}, {"shiftet"}).find("did you mean 'shifted'"), std::string::npos) << message({}, {"shiftet"});
  EXPECT_NE(message({}, {"weighed"}).find("'loop.body[*]//weighed'"), std::string::npos) << message({}, {"weighed"});
  EXPECT_NE(message({}, {"loup.body[0]//weighed"}).find("no node 'loup'"), std::string::npos);
  EXPECT_NE(message({}, {"finish.body[0]//weighed"}).find("has no body"), std::string::npos);
  EXPECT_NE(message({}, {"scale"}).find("is an initializer"), std::string::npos);
  EXPECT_NE(message({}, {"x"}).find("is an input"), std::string::npos);
  EXPECT_NE(message({"shifted"}, {"z"}).find("'z' does not depend on --from 'shifted'"), std::string::npos);
  EXPECT_NE(message({"shifted"}, {"y", "z"}).find("'z' does not depend on"), std::string::npos);
  EXPECT_NE(message({"looped", "shifted"}, {"y"}).find("another --from"), std::string::npos);
  EXPECT_NE(message({"looped"}, {"looped"}).find("both --from and --to"), std::string::npos);
  EXPECT_NE(message({}, {"y", "loop.body[0]//next"}).find("one graph"), std::string::npos);
  EXPECT_NE(message({"loop.body[0]//next"}, {"y"}).find("one graph"), std::string::npos);
}

TEST_F(Extract, CutsAroundNodes) {
  const Location location = find_location(model_, {}).take();
  const Part alone = part_of_nodes(location, {model_->graph.find_node("loop")});
  ASSERT_EQ(alone.inputs.size(), 1U);
  EXPECT_EQ(alone.inputs[0].name, "shifted");
  EXPECT_EQ(alone.outputs[0].name, "looped");
  const Part pair = part_of_nodes(location, {model_->graph.find_node("finish"), model_->graph.find_node("loop")});
  ASSERT_EQ(pair.outputs.size(), 1U);  // `looped` is read by `finish` alone
  EXPECT_EQ(pair.outputs[0].name, "y");
  EXPECT_EQ(pair.nodes.front(), model_->graph.find_node("loop"));
}

}  // namespace
}  // namespace parallax::transform
