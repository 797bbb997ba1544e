// SPDX-License-Identifier: Apache-2.0
// Names with control characters and bytes that are no UTF-8: no document holds them.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "inspector/base/shown_text.h"
#include "inspector/model/link.h"
#include "inspector/render/dot.h"
#include "inspector/render/graph_svg.h"
#include "inspector/render/graph_text.h"
#include "inspector/render/overview_svg.h"
#include "inspector/render/report_exchange.h"
#include "inspector/render/report_html.h"
#include "inspector/render/report_json.h"
#include "inspector/render/report_text.h"
#include "tests/inspector/model/graph_builder.h"

namespace parallax {
namespace {

// ESC, a line that looks like ours, DEL, NEL of C1, a lone continuation byte, and an entity of Graphviz.
const std::string kHostile = "h\x1B[2J\nverdict: pass\x7F\xC2\x85\x8E&#1;<";

Comparison hostile_comparison() {
  Comparison comparison;
  for (const Side side : {Side::a, Side::b})
    comparison.executions.push_back({kHostile, side, kHostile, {{"threads", kHostile}}, "", 1, kHostile});
  ValueComparison value;
  value.path = value.a = value.b = value.node = value.op = value.dtype = kHostile;
  value.verdict = Verdict::diverged;
  value.severity = 7;
  value.metrics = Metrics{};
  value.metrics->worst_index = {0};
  ValueComparison missing = value;
  missing.path = kHostile + "2";
  missing.verdict = Verdict::not_compared;
  missing.metrics.reset();
  missing.reason = "fused into " + kHostile;
  comparison.values = {value, missing};
  comparison.expected = {value};
  comparison.has_expected = true;
  comparison.damages = {{Side::a, kHostile, "value '" + kHostile + "' is damaged"}};
  conclude(comparison);
  Cause cause;
  cause.node = cause.op = cause.path = cause.why = cause.source_module = cause.source_line = cause.source_operator =
      kHostile;
  comparison.causes = {cause};
  return comparison;
}

Model hostile_model() {
  testing::GraphBuilder builder(17);
  builder.input(kHostile, "float32[" + kHostile + "]").node("Relu", {kHostile}, {"y" + kHostile});
  builder.output("y" + kHostile);
  Model model = builder.model();
  model.graph.name = model.producer_name = model.path = kHostile;
  model.graph.nodes[0].name = kHostile;
  link_graph(model.graph);
  return model;
}

void expect_safe(const std::string& kind, const std::string& text) {
  EXPECT_EQ(text, printable(text, "\n\t")) << kind;
  EXPECT_EQ(text.find("\nverdict: pass"), std::string::npos) << kind << ": a line of a name";
}

TEST(SafeOutput, ReportsSpellTheControlCharactersOfNames) {
  const Comparison comparison = hostile_comparison();
  expect_safe("text", comparison_to_text(comparison, {}));
  expect_safe("CSV", comparison_to_csv(comparison));
  expect_safe("HTML", comparison_to_html(comparison, {{}, {}, "parallax diff", ""}));
  expect_safe("JUnit", comparison_to_junit(comparison));
  for (const std::string& document :
       {comparison_to_json(comparison), comparison_to_netron(comparison), comparison_to_model_explorer(comparison),
        error_to_json(execution_error(kHostile).at_node(kHostile, kHostile))}) {
    expect_safe("JSON", document);
    EXPECT_TRUE(nlohmann::json::accept(document)) << document;
  }
  const auto read = nlohmann::json::parse(comparison_to_json(comparison));
  EXPECT_TRUE(read["values"][0]["node"].get<std::string>().starts_with("h\x1B[2J\nverdict: pass\x7F\xC2\x85"));
}

TEST(SafeOutput, GraphsSpellTheControlCharactersOfNames) {
  const Model model = hostile_model();
  Comparison comparison = hostile_comparison();
  comparison.values[0].path = "y" + kHostile;
  expect_safe("text", graph_to_text(model, {.shapes = true}));
  expect_safe("JSON", graph_to_json(model, {.shapes = true}));
  DotOptions options;
  options.comparison = &comparison;
  const std::string dot = graph_to_dot(model.graph, options).value();
  expect_safe("dot", dot);
  EXPECT_NE(dot.find("&amp;#1;"), std::string::npos) << dot;
  expect_safe("SVG", graph_to_svg(model.graph, &comparison));
  expect_safe("overview", overview_to_svg(model.graph, &comparison));
}

}  // namespace
}  // namespace parallax
