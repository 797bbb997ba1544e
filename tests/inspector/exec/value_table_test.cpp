// SPDX-License-Identifier: Apache-2.0
// The value table: every value of every graph once, with scopes, outer values and constant-like marks.
#include "inspector/exec/value_table.h"

#include <map>

#include <gtest/gtest.h>

#include "inspector/model/io/import.h"

namespace parallax {
namespace {

std::shared_ptr<const Model> read_model(std::string_view text) {
  auto model = import_model(std::as_bytes(std::span(text)), "", "test model");
  EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.error().message);
  return model.take();
}

constexpr std::string_view kNested = R"(
ir_version: 8 opset_import { domain: "" version: 17 } opset_import { domain: "f" version: 1 }
graph { name: "g"
  node { input: "c" output: "k" op_type: "Identity" }
  node { input: "cond" output: "y" name: "a//b" op_type: "If"
    attribute { name: "then_branch" type: GRAPH g { name: "t"
      node { input: "x" output: "u" op_type: "F" domain: "f" name: "call" }
      output { name: "u" type { tensor_type { elem_type: 1 } } } } }
    attribute { name: "else_branch" type: GRAPH g { name: "e"
      node { input: "x" input: "k" output: "v" op_type: "Add" }
      output { name: "v" type { tensor_type { elem_type: 1 } } } } } }
  initializer { name: "c" data_type: 1 float_data: [1] }
  input { name: "x" type { tensor_type { elem_type: 1 } } }
  input { name: "cond" type { tensor_type { elem_type: 9 } } }
  output { name: "y" type { tensor_type { elem_type: 1 } } } }
functions { domain: "f" name: "F" input: "p" output: "q" opset_import { domain: "" version: 17 }
  node { input: "p" output: "q" op_type: "Neg" } }
)";

TEST(ValueTable, EveryValueOfEveryGraphOnce) {
  const auto model = read_model(kNested);
  const ValueTable table = ValueTable::build(model).take();
  std::vector<std::string> paths;
  for (const ValueInfo& value_info : table.value_infos()) {
    EXPECT_EQ(value_info.id, static_cast<int32_t>(paths.size()));
    paths.push_back(value_info.scope + value_info.escaped_name);
  }
  EXPECT_EQ(paths,
            (std::vector<std::string>{"x", "cond", "c", "k", "a%2F%2Fb.then//call.call//p",
                                      "a%2F%2Fb.then//call.call//q", "a%2F%2Fb.then//u", "a%2F%2Fb.else//v", "y"}));
}

TEST(ValueTable, OuterValuesLeadToTheirInfos) {
  const auto model = read_model(kNested);
  const ValueTable table = ValueTable::build(model).take();
  const NodeId branch = model->graph.find_node("a//b");
  const GraphValues* else_values = table.main().child(branch, "else_branch");
  ASSERT_NE(else_values, nullptr);
  const ValueId k = else_values->graph->find_value("k");
  ASSERT_NE(k, kNoValue);
  EXPECT_EQ(else_values->outer.at(k)->name, "k");
  EXPECT_EQ(else_values->outer.at(k)->scope, "");
  const auto pairs = else_values->outer_values();
  ASSERT_TRUE(pairs.ok());
  for (const auto& [inner, outer] : *pairs)
    EXPECT_EQ(value_at(*else_values->graph, inner).name, value_at(model->graph, outer).name);
  EXPECT_EQ(pairs->size(), 2U);
}

TEST(ValueTable, FindsBodiesByNodeAndValuesByName) {
  const auto model = read_model(kNested);
  const ValueTable table = ValueTable::build(model).take();
  EXPECT_EQ(table.main().children_of(model->graph.find_node("a//b")).size(), 2U);
  EXPECT_TRUE(table.main().children_of(model->graph.find_node("Identity_0")).empty());
  for (const ValueDef& value : model->graph.values)
    EXPECT_EQ(table.main().find_value(value.name), model->graph.find_value(value.name)) << value.name;
  EXPECT_EQ(table.main().find_value("nothing"), kNoValue);
}

TEST(ValueTable, MovedConstantsStayConstantLike) {
  const auto model = read_model(kNested);
  const ValueTable table = ValueTable::build(model).take();
  for (const ValueInfo& value_info : table.value_infos())
    EXPECT_EQ(value_info.is_constant_like, value_info.name == "c" || value_info.name == "k") << value_info.name;
}

// Whatever computes them; but neither numbers drawn at random, nor what an input decides.
TEST(ValueTable, WhatFollowsFromConstantsAloneIsConstantLike) {
  constexpr std::string_view kComputed = R"(
ir_version: 8 opset_import { domain: "" version: 17 }
graph { name: "g"
  node { input: "steps" input: "step" output: "bias" op_type: "DequantizeLinear" }
  node { input: "bias" input: "bias" output: "twice" op_type: "Add" }
  node { input: "twice" output: "drawn" op_type: "RandomNormalLike" }
  node { input: "x" input: "twice" output: "moved" op_type: "Add" }
  node { input: "x" input: "step" output: "mask" op_type: "Greater" }
  node { input: "mask" output: "ones" op_type: "Cast" attribute { name: "to" type: INT i: 1 } }
  node { input: "ones" output: "bent" op_type: "Tanh" }
  node { input: "bent" input: "moved" output: "y" op_type: "Add" }
  initializer { name: "steps" data_type: 3 dims: 2 int32_data: [0, 0] }
  initializer { name: "step" data_type: 1 float_data: [1] }
  input { name: "x" type { tensor_type { elem_type: 1 } } }
  output { name: "y" type { tensor_type { elem_type: 1 } } } }
)";
  const auto model = read_model(kComputed);
  const ValueTable table = ValueTable::build(model).take();
  std::vector<std::string_view> constant_like;
  for (const ValueInfo& value_info : table.value_infos()) {
    if (value_info.is_constant_like) constant_like.push_back(value_info.name);
  }
  EXPECT_EQ(constant_like, (std::vector<std::string_view>{"steps", "step", "bias", "twice", "mask", "ones"}));
}

// Feature maps are the outputs of convolutions and pools, as long as the axes stay; in a body those that it computes or
// reads from outside.
TEST(ValueTable, FeatureMapsKeepTheAxesOfAConvolution) {
  constexpr std::string_view kFeatureMaps = R"(
ir_version: 8 opset_import { domain: "" version: 17 }
graph { name: "g"
  node { input: "x" output: "before" op_type: "Neg" }
  node { input: "before" input: "w" output: "made" op_type: "Conv" }
  node { input: "made" output: "bent" op_type: "Relu" }
  node { input: "x" input: "bent" output: "added" op_type: "Add" }
  node { input: "cond" output: "chosen" name: "if" op_type: "If"
    attribute { name: "then_branch" type: GRAPH g { name: "t"
      node { input: "added" output: "t0" op_type: "Sigmoid" }
      output { name: "t0" type { tensor_type { elem_type: 1 } } } } }
    attribute { name: "else_branch" type: GRAPH g { name: "e"
      node { input: "x" output: "e0" op_type: "Neg" }
      output { name: "e0" type { tensor_type { elem_type: 1 } } } } } }
  node { input: "added" output: "pooled" op_type: "GlobalAveragePool" }
  node { input: "pooled" output: "rows" op_type: "Flatten" }
  node { input: "rows" output: "y" op_type: "Tanh" }
  initializer { name: "w" data_type: 1 dims: 1 dims: 1 dims: 1 dims: 1 float_data: [1] }
  input { name: "x" type { tensor_type { elem_type: 1 } } }
  input { name: "cond" type { tensor_type { elem_type: 9 } } }
  output { name: "y" type { tensor_type { elem_type: 1 } } } }
)";
  const auto model = read_model(kFeatureMaps);
  const ValueTable table = ValueTable::build(model).take();
  std::vector<std::string_view> images;
  for (const ValueInfo& value_info : table.value_infos()) {
    if (value_info.is_feature_map) images.push_back(value_info.name);
  }
  EXPECT_EQ(images, (std::vector<std::string_view>{"made", "bent", "added", "t0", "pooled"}));
}

// An If gives a constant where both of its branches do, whatever decides between them.
TEST(ValueTable, BranchesThatBothGiveConstants) {
  constexpr std::string_view kBranches = R"(
ir_version: 8 opset_import { domain: "" version: 17 }
graph { name: "g"
  node { input: "cond" output: "fill" output: "half" name: "if" op_type: "If"
    attribute { name: "then_branch" type: GRAPH g { name: "t"
      node { input: "c" output: "t0" op_type: "Identity" }
      node { input: "c" output: "t1" op_type: "Identity" }
      output { name: "t0" type { tensor_type { elem_type: 1 } } }
      output { name: "t1" type { tensor_type { elem_type: 1 } } } } }
    attribute { name: "else_branch" type: GRAPH g { name: "e"
      node { output: "e0" op_type: "Constant" attribute { name: "value_float" type: FLOAT f: 2 } }
      node { input: "x" output: "e1" op_type: "Neg" }
      output { name: "e0" type { tensor_type { elem_type: 1 } } }
      output { name: "e1" type { tensor_type { elem_type: 1 } } } } } }
  initializer { name: "c" data_type: 1 float_data: [1] }
  input { name: "x" type { tensor_type { elem_type: 1 } } }
  input { name: "cond" type { tensor_type { elem_type: 9 } } }
  output { name: "fill" type { tensor_type { elem_type: 1 } } }
  output { name: "half" type { tensor_type { elem_type: 1 } } } }
)";
  const ValueTable table = ValueTable::build(read_model(kBranches)).take();
  std::map<std::string_view, bool> is_constant_like;
  for (const ValueInfo& value_info : table.value_infos())
    is_constant_like[value_info.name] = value_info.is_constant_like;
  EXPECT_TRUE(is_constant_like.at("fill"));
  EXPECT_FALSE(is_constant_like.at("half"));
}

}  // namespace
}  // namespace parallax
