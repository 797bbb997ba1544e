// SPDX-License-Identifier: Apache-2.0
// Symbolic dimensions: expressions, what names suggest, and shapes that fit together.
#include "inspector/workbench/inputs/dimensions.h"

#include <gtest/gtest.h>

namespace parallax {
namespace {

TEST(Dimensions, ExpressionsAreComputed) {
  const DimSizes sizes = {{"past", 4}, {"sequence", 8}, {"b.0", 3}};
  EXPECT_EQ(evaluate_dimension("past + sequence", sizes), 12);
  EXPECT_EQ(evaluate_dimension("sequence+past", sizes), 12);
  EXPECT_EQ(evaluate_dimension("2*(past + sequence) - 1", sizes), 23);
  EXPECT_EQ(evaluate_dimension("sequence // 3", sizes), 2);
  EXPECT_EQ(evaluate_dimension("b.0", sizes), 3);
}

TEST(Dimensions, WhatCannotBeComputedIsNothing) {
  const DimSizes sizes = {{"a", 4}};
  for (const char* text : {"unknown", "a +", "(a", "a / 0", "", "a a", "9223372036854775807 + a", "((((((((((("}) {
    EXPECT_FALSE(evaluate_dimension(text, sizes).has_value()) << text;
  }
  EXPECT_FALSE(evaluate_dimension(std::string(100'000, '('), sizes).has_value());
}

Graph graph_with_inputs(const std::vector<std::vector<std::string>>& inputs) {
  Graph graph;
  for (const auto& names : inputs) {
    ValueDef value;
    value.name = "input_" + std::to_string(graph.values.size());
    value.type = TypeInfo::tensor(DType::float32);
    value.type.dims.emplace();
    for (const std::string& name : names) value.type.dims->push_back(Dim{-1, name});
    value.input_index = static_cast<int32_t>(graph.inputs.size());
    graph.inputs.push_back(static_cast<ValueId>(graph.values.size()));
    graph.values.push_back(value);
  }
  return graph;
}

TEST(Dimensions, ADecodersInputsFitTogether) {
  const Graph graph = graph_with_inputs({{"batch", "sequence"}, {"batch", "past + sequence"}, {"batch", "past"}});
  const DimSizes sizes = choose_dimensions(graph, {});
  const auto ids = concrete_shape(graph.values[0], sizes).take();
  const auto mask = concrete_shape(graph.values[1], sizes).take();
  const auto cache = concrete_shape(graph.values[2], sizes).take();
  EXPECT_EQ(mask[1], ids[1] + cache[1]);
  EXPECT_EQ(ids[0], mask[0]);
}

TEST(Dimensions, TotalsAreSums) {
  const Graph graph = graph_with_inputs({{"sequence_length"}, {"past_sequence_length"}, {"total_sequence_length"}});
  const DimSizes sizes = choose_dimensions(graph, {{"sequence_length", 5}});
  EXPECT_EQ(sizes.at("total_sequence_length"), 5 + sizes.at("past_sequence_length"));
}

TEST(Dimensions, JointNamesAreSums) {
  const Graph graph = graph_with_inputs({{"past_and_sequence"}, {"past"}, {"sequence"}, {"salt_and_pepper"}});
  const DimSizes sizes = choose_dimensions(graph, {{"sequence", 3}});
  EXPECT_EQ(sizes.at("past_and_sequence"), 3 + sizes.at("past"));
  EXPECT_EQ(sizes.at("salt_and_pepper"), 8);
}

TEST(Dimensions, GivenSizesAreKept) {
  const Graph graph = graph_with_inputs({{"batch", "sequence"}});
  EXPECT_EQ(concrete_shape(graph.values[0], choose_dimensions(graph, {{"batch", 7}})).take()[0], 7);
}

TEST(Dimensions, NegativeSizesAreRefused) {
  const Graph graph = graph_with_inputs({{"a - b"}});
  const auto shape = concrete_shape(graph.values[0], choose_dimensions(graph, {{"a", 1}, {"b", 2}}));
  ASSERT_FALSE(shape.ok());
  EXPECT_EQ(shape.error().code, ErrorCode::usage);
}

}  // namespace
}  // namespace parallax
