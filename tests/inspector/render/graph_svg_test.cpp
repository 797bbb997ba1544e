// Whole models as SVG: every node is there once, bodies inside their nodes, colours as the comparison says.
#include "inspector/render/graph_svg.h"

#include <regex>
#include <set>

#include <gtest/gtest.h>

#include "inspector/model/import.h"
#include "inspector/render/dot.h"
#include "inspector/render/severity_style.h"

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

TEST(GraphSvg, ColoursAndEscapes) {
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

}  // namespace
}  // namespace parallax
