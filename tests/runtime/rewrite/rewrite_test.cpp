// SPDX-License-Identifier: Apache-2.0
// The patterns on small graphs: what they drop, what they record, and what they must leave alone.
#include "runtime/rewrite/rewrite.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/runtime/model_text.h"

namespace parallax::runtime {
namespace {

using model_text::model_of;
using model_text::node;

constexpr const char* kType = "type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } }";

std::string input(const std::string& name) { return "input { name: \"" + name + "\" " + kType + " } "; }
std::string output(const std::string& name) { return "output { name: \"" + name + "\" " + kType + " } "; }
std::string weight(const std::string& name) {
  return "initializer { name: \"" + name + "\" data_type: 1 dims: 2 float_data: 1 float_data: 2 } ";
}

std::vector<std::string> ops_of(const GraphEdit& edit) {
  std::vector<std::string> ops;
  for (const PlannedNode& planned : edit.nodes) ops.push_back(planned.node->op_type);
  return ops;
}

const ValueAbsence* absence_of(const GraphEdit& edit, std::string_view name) {
  const ValueId value = edit.source->find_value(name);
  const auto found =
      std::find_if(edit.absences.begin(), edit.absences.end(), [&](const auto& each) { return each.value == value; });
  return found == edit.absences.end() ? nullptr : &*found;
}

TEST(Rewrite, DropsIdentitiesAndSaysWhatTheyStandFor) {
  const auto model = model_of(node("Identity", {"x"}, {"a"}) + node("Identity", {"a"}, {"b"}) +
                              node("Relu", {"b"}, {"y"}) + input("x") + output("y"));
  ASSERT_NE(model, nullptr);
  GraphEdit edit = begin_edit(model->graph);
  find_pattern("identity")->apply(edit, {});
  EXPECT_EQ(ops_of(edit), std::vector<std::string>{"Relu"});
  ASSERT_NE(absence_of(edit, "b"), nullptr);
  EXPECT_EQ(absence_of(edit, "b")->kind, ValueAbsence::Kind::aliased);
  EXPECT_EQ(absence_of(edit, "b")->into, "x");
  EXPECT_EQ(edit.resolve(model->graph.find_value("b")), model->graph.find_value("x"));
}

TEST(Rewrite, LeavesGraphOutputsAndPinnedValues) {
  const auto model = model_of(node("Identity", {"x"}, {"y"}) + node("Identity", {"x"}, {"a"}) +
                              node("Relu", {"a"}, {"z"}) + input("x") + output("y") + output("z"));
  ASSERT_NE(model, nullptr);
  GraphEdit edit = begin_edit(model->graph);
  edit.pinned[static_cast<size_t>(model->graph.find_value("a"))] = true;
  find_pattern("identity")->apply(edit, {});
  EXPECT_EQ(edit.nodes.size(), 3U);
  EXPECT_TRUE(edit.absences.empty());
}

TEST(Rewrite, DropsDropoutOnlyInInference) {
  const std::string mode =
      "initializer { name: \"on\" data_type: 9 int32_data: 1 } initializer { name: \"off\" data_type: 9 int32_data: 0 "
      "} ";
  const auto model =
      model_of(node("Dropout", {"x"}, {"a"}) + node("Dropout", {"a", "", "off"}, {"b"}) +
               node("Dropout", {"b", "", "on"}, {"c"}) + node("Relu", {"c"}, {"y"}) + mode + input("x") + output("y"));
  ASSERT_NE(model, nullptr);
  GraphEdit edit = begin_edit(model->graph);
  find_pattern("dropout")->apply(edit, {});
  EXPECT_EQ(ops_of(edit), (std::vector<std::string>{"Dropout", "Relu"}));
  EXPECT_NE(absence_of(edit, "b"), nullptr);
  EXPECT_EQ(absence_of(edit, "c"), nullptr);
}

TEST(Rewrite, FoldsWhatDependsOnWeightsAlone) {
  const auto model = model_of(node("Neg", {"w"}, {"a"}) + node("Neg", {"a"}, {"b"}) + node("Add", {"x", "b"}, {"y"}) +
                              weight("w") + input("x") + output("y"));
  ASSERT_NE(model, nullptr);
  GraphEdit edit = begin_edit(model->graph);
  int evaluated = 0;
  const EvaluateNode evaluate = [&](const Node&, std::span<const Value> inputs) -> Result<std::vector<Value>> {
    ++evaluated;
    return std::vector<Value>{inputs[0]};
  };
  find_pattern("constant-folding")->apply(edit, {evaluate});
  EXPECT_EQ(ops_of(edit), std::vector<std::string>{"Add"});
  EXPECT_EQ(evaluated, 2);
  EXPECT_EQ(absence_of(edit, "a")->kind, ValueAbsence::Kind::folded);
  EXPECT_EQ(absence_of(edit, "b")->kind, ValueAbsence::Kind::folded);
}

TEST(Rewrite, LeavesNodesThatCannotBeEvaluated) {
  const auto model =
      model_of(node("Neg", {"w"}, {"a"}) + node("Add", {"x", "a"}, {"y"}) + weight("w") + input("x") + output("y"));
  ASSERT_NE(model, nullptr);
  GraphEdit edit = begin_edit(model->graph);
  const EvaluateNode evaluate = [](const Node&, std::span<const Value>) -> Result<std::vector<Value>> {
    return unsupported("no kernel");
  };
  find_pattern("constant-folding")->apply(edit, {evaluate});
  EXPECT_EQ(edit.nodes.size(), 2U);
  EXPECT_TRUE(edit.absences.empty());
}

// An initializer that is also an input may be replaced by the caller.
TEST(Rewrite, DoesNotFoldDefaultsOfInputs) {
  const auto model = model_of(node("Neg", {"w"}, {"a"}) + node("Add", {"x", "a"}, {"y"}) + weight("w") + input("x") +
                              input("w") + output("y"));
  ASSERT_NE(model, nullptr);
  GraphEdit edit = begin_edit(model->graph);
  const EvaluateNode evaluate = [](const Node&, std::span<const Value> inputs) -> Result<std::vector<Value>> {
    return std::vector<Value>{inputs[0]};
  };
  find_pattern("constant-folding")->apply(edit, {evaluate});
  EXPECT_EQ(edit.nodes.size(), 2U);
}

TEST(Rewrite, PatternNamesAreUnique) {
  for (const Pattern& pattern : rewrite_patterns()) {
    EXPECT_EQ(find_pattern(pattern.name), &pattern);
    EXPECT_FALSE(pattern.description.empty());
  }
  EXPECT_EQ(find_pattern("no-such-pattern"), nullptr);
}

}  // namespace
}  // namespace parallax::runtime
