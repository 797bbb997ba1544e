// SPDX-License-Identifier: Apache-2.0
// Which inputs say where elements go, in the graph itself, in bodies and in called functions.
#include "inspector/model/placing_inputs.h"

#include <span>

#include <gtest/gtest.h>

#include "inspector/model/io/import.h"
#include "inspector/model/link.h"
#include "tests/inspector/model/graph_builder.h"

namespace parallax {
namespace {

using testing::GraphBuilder;

// The placing of `name` as the last node's input.
Placing placing_in(const GraphBuilder& builder, const std::string& name) {
  const Graph graph = builder.graph();
  return placing_of(graph, graph.nodes.back(), graph.find_value(name));
}

TEST(PlacingInputs, AreShapesAxesAndIndices) {
  GraphBuilder builder(18);
  builder.input("x", "float32[4,8]").numbers("n", {2, 16}).node("Reshape", {"x", "n"}, {"y"});
  EXPECT_EQ(placing_in(builder, "n"), Placing::by_shape);
  EXPECT_EQ(placing_in(builder, "x"), Placing::none);
  builder.node("Slice", {"x", "n", "n"}, {"z"});
  EXPECT_EQ(placing_in(builder, "n"), Placing::by_location);
  builder.node("ReduceSum", {"x", "n"}, {"s"});
  EXPECT_EQ(placing_in(builder, "n"), Placing::by_location);
  builder.node("Gather", {"x", "n"}, {"g"});
  EXPECT_EQ(placing_in(builder, "n"), Placing::none) << "indices choose";
  builder.node("Reshape", {"n", "n"}, {"r"});
  EXPECT_EQ(placing_in(builder, "n"), Placing::none) << "the least of two uses";
  builder.node("com.microsoft.Reshape", {"x", "n"}, {"other"});
  EXPECT_EQ(placing_in(builder, "n"), Placing::none) << "another domain's operator";
}

TEST(PlacingInputs, OfBodiesAreThoseOfTheirReaders) {
  const auto branch = [](const char* op) {
    GraphBuilder body(18);
    body.outer("x").outer("n").node(op, {"x", "n"}, {"inner"}).output("inner");
    auto graph = body.body();
    link_graph(*graph);
    return graph;
  };
  const auto chosen = [&](const char* otherwise) {
    GraphBuilder builder(18);
    builder.input("x", "float32[4,8]").input("c", "bool[]").numbers("n", {2, 16});
    builder.node("If", {"c"}, {"y"}, {{"then_branch", branch("Reshape")}, {"else_branch", branch(otherwise)}});
    return placing_in(builder, "n");
  };
  EXPECT_EQ(chosen("Expand"), Placing::by_location);
  EXPECT_EQ(chosen("Gather"), Placing::none);
}

TEST(PlacingInputs, OfCallsAreThoseOfTheFunction) {
  const std::string text =
      "ir_version: 8 opset_import { version: 17 } opset_import { domain: 'my' version: 1 } graph { name: 'g' "
      "node { input: 'x' input: 'n' input: 'm' output: 'y' op_type: 'Shaped' domain: 'my' name: 'call' } "
      "input { name: 'x' type { tensor_type { elem_type: 1 } } } input { name: 'n' type { tensor_type { elem_type: 7 } "
      "} } input { name: 'm' type { tensor_type { elem_type: 7 } } } "
      "output { name: 'y' type { tensor_type { elem_type: 1 } } } } "
      "functions { name: 'Shaped' domain: 'my' input: 'a' input: 's' input: 't' output: 'b' opset_import { version: 17 "
      "} node { input: 'a' input: 's' output: 'r' op_type: 'Reshape' } "
      "node { input: 'r' input: 't' output: 'b' op_type: 'Gather' } }";
  const auto model = import_model(std::as_bytes(std::span(text)), "", "call").take();
  const Graph& graph = model->graph;
  EXPECT_EQ(placing_of(graph, graph.nodes.front(), graph.find_value("n")), Placing::by_location);
  EXPECT_EQ(placing_of(graph, graph.nodes.front(), graph.find_value("m")), Placing::none);
}

}  // namespace
}  // namespace parallax
