// SPDX-License-Identifier: Apache-2.0
// Whole models as SVG: every node is there once, bodies inside their nodes, colors as the comparison says.
#include "inspector/render/graph_svg.h"

#include <regex>
#include <set>

#include <gtest/gtest.h>

#include "inspector/model/io/import.h"
#include "inspector/model/link.h"
#include "inspector/render/dot.h"
#include "inspector/render/overview_svg.h"
#include "inspector/render/severity_style.h"
#include "tests/inspector/model/graph_builder.h"

namespace parallax {
namespace {

std::shared_ptr<const Model> sample(const std::string& name) {
  auto model = import_model(std::string(PX_SOURCE_DIR) + "/samples/" + name + "/model.onnx");
  EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.error().message);
  return model.take();
}

size_t count_of(const std::string& text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

struct Rectangle {
  double left, top, right, bottom;
};

// The box that follows the title of a node.
Rectangle box_of(const std::string& svg, const std::string& title) {
  const std::regex box("<title>" + title +
                       "</title><rect x=\"([0-9.-]+)\" y=\"([0-9.-]+)\" width=\"([0-9.]+)\" height=\"([0-9.]+)\"");
  std::smatch found;
  EXPECT_TRUE(std::regex_search(svg, found, box)) << title;
  const double x = std::stod(found[1]), y = std::stod(found[2]);
  return {x, y, x + std::stod(found[3]), y + std::stod(found[4])};
}

TEST(GraphSvg, HoldsEveryNodeOfEveryBody) {
  const auto model = sample("greedy_decoder");
  const std::string svg = graph_to_svg(model->graph, nullptr);
  const auto boxes = static_cast<int64_t>(count_of(svg, "<g>"));
  EXPECT_GT(boxes, count_nodes(model->graph));  // and inputs and outputs
  for (const char* node : {"norm", "decode", "move", "halve"})
    EXPECT_EQ(count_of(svg, std::string("<title>") + node + "</title>"), 1U);
  EXPECT_EQ(count_of(svg, "<g>"), count_of(svg, "</g>"));
  EXPECT_EQ(svg, graph_to_svg(model->graph, nullptr));
}

TEST(GraphSvg, BodiesLieInsideTheirNodes) {
  const std::string svg = graph_to_svg(sample("greedy_decoder")->graph, nullptr);
  const Rectangle loop = box_of(svg, "decode"), branch = box_of(svg, "rescale"), inner = box_of(svg, "halve");
  for (const auto& [outside, inside] : {std::pair(loop, branch), std::pair(branch, inner)}) {
    EXPECT_LT(outside.left, inside.left);
    EXPECT_LT(outside.top, inside.top);
    EXPECT_GT(outside.right, inside.right);
    EXPECT_GT(outside.bottom, inside.bottom);
  }
}

TEST(GraphSvg, ReadersLieBelowWhatTheyRead) {
  const std::string svg = graph_to_svg(sample("greedy_decoder")->graph, nullptr);
  EXPECT_LE(box_of(svg, "norm").bottom, box_of(svg, "decode").top);
  EXPECT_LE(box_of(svg, "move").bottom, box_of(svg, "squash").top);
}

TEST(GraphSvg, ColorsAndEscapes) {
  auto model = std::make_shared<Model>(*sample("greedy_decoder"));
  Comparison comparison;
  ValueComparison value;
  value.path = "decode.body[7]//moved";
  value.node = "move";
  value.verdict = Verdict::diverged;
  value.severity = 50;
  comparison.values = {value};
  model->graph.nodes.front().display_name = "a<b>&\"c\"";
  const std::string svg = graph_to_svg(model->graph, &comparison);
  EXPECT_NE(svg.find("a&lt;b&gt;&amp;&quot;c&quot;"), std::string::npos);
  EXPECT_EQ(svg.find("a<b>"), std::string::npos);
  const size_t node = svg.find("<title>move\n");
  ASSERT_NE(node, std::string::npos);
  EXPECT_NE(svg.substr(node, 400).find(style_of(value).fill), std::string::npos);
  EXPECT_EQ(count_of(svg, style_of(value).badge), 2U);  // in the box and in its title
}

// A chain of 3,000 nodes, without scopes.
Model long_chain() {
  testing::GraphBuilder builder(17);
  builder.input("v0", "float32[2]");
  for (int index = 0; index < 3000; ++index)
    builder.node("Relu", {"v" + std::to_string(index)}, {"v" + std::to_string(index + 1)});
  builder.output("v3000");
  Model model = builder.model();
  for (size_t index = 0; index < model.graph.nodes.size(); ++index)
    model.graph.nodes[index].name = "n" + std::to_string(index);
  link_graph(model.graph);
  return model;
}

TEST(OverviewSvg, LargeGraphsStaySmallAndShowWhatIsWrong) {
  const Model model = long_chain();
  Comparison comparison;
  ValueComparison& value = comparison.values.emplace_back();
  value.path = value.a = value.b = "v1501";
  value.node = "n1500";
  value.op = "Relu";
  value.verdict = Verdict::diverged;
  value.severity = 37;
  const std::string svg = overview_to_svg(model.graph, &comparison);
  EXPECT_LT(svg.size(), 500'000U);
  EXPECT_LE(count_of(svg, "<g>"), 620U);  // 600, and frames of open groups
  EXPECT_EQ(count_of(svg, "<g>"), count_of(svg, "</g>"));
  EXPECT_NE(svg.find("<title>n1500\nv1501: DIVERGED 37</title>"), std::string::npos);
  EXPECT_NE(svg.find("200 nodes"), std::string::npos);  // closed
  EXPECT_EQ(svg, overview_to_svg(model.graph, &comparison));
}

}  // namespace
}  // namespace parallax
