// SPDX-License-Identifier: Apache-2.0
// A comparison in other programs' formats: each document is read back and held against the comparison.
#include "inspector/render/report_exchange.h"

#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace parallax {
namespace {

using nlohmann::json;

ValueComparison value_of(std::string path, std::string node, Verdict verdict, double severity) {
  ValueComparison value;
  value.path = value.a = value.b = std::move(path);
  value.node = std::move(node);
  value.op = value.node.empty() ? "" : "Split";
  value.verdict = verdict;
  value.severity = severity;
  if (verdict == Verdict::not_compared) {
    value.reason = "fused into <add>";
  } else {
    value.metrics = Metrics{};
    value.metrics->max_abs = severity / 2;
  }
  return value;
}

Comparison exchanged() {
  Comparison comparison;
  comparison.values = {value_of("x", "", Verdict::pass, 0), value_of("left", "split", Verdict::pass, 0.25),
                       value_of("ri\"ght", "split", Verdict::diverged, std::numeric_limits<double>::infinity()),
                       value_of("loop.body[0]//x", "inner", Verdict::diverged, 3),
                       value_of("gone", "mul", Verdict::not_compared, 0)};
  conclude(comparison);
  Cause cause;
  cause.node = "split";
  cause.why = "sizes & order";
  comparison.causes = {cause};
  return comparison;
}

int64_t occurrences(const std::string& text, std::string_view part) {
  int64_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(ReportJunit, WhatIsDamagedIsAnError) {
  Comparison comparison = exchanged();
  comparison.values[2].verdict = comparison.values[3].verdict = Verdict::not_compared;
  comparison.values[2].note = "damaged in A";
  comparison.values[3].reason = "absent in B";
  comparison.damages = {{Side::a, "ri\"ght", "value 'right' is no more"}};
  comparison.causes.clear();
  conclude(comparison);
  const std::string text = comparison_to_junit(comparison);
  EXPECT_NE(text.find("tests=\"6\" failures=\"1\" errors=\"1\" skipped=\"2\""), std::string::npos) << text;
  EXPECT_NE(text.find("<error type=\"damaged\" message=\"damaged in A\"/>"), std::string::npos);
  EXPECT_NE(text.find("value 'right' is no more"), std::string::npos);
}

TEST(ReportJunit, CountsWhatItLists) {
  const std::string text = comparison_to_junit(exchanged());
  EXPECT_EQ(occurrences(text, "<testcase "), 6);
  EXPECT_EQ(occurrences(text, "<failure "), 3);  // the verdict and two values
  EXPECT_EQ(occurrences(text, "<skipped "), 1);
  EXPECT_NE(text.find("tests=\"6\" failures=\"3\" errors=\"0\" skipped=\"1\""), std::string::npos) << text;
  EXPECT_NE(text.find("not_compared: fused into &lt;add&gt;"), std::string::npos);
  EXPECT_NE(text.find("name=\"ri&quot;ght\""), std::string::npos);
  EXPECT_NE(text.find("sizes &amp; order"), std::string::npos);
}

TEST(ReportJunit, SaysWhichExpectedOutputWasMissed) {
  Comparison comparison;
  comparison.values = {value_of("y", "node", Verdict::pass, 0.5)};
  comparison.executions = {{"reference", Side::a, "", {}, "", 0, ""}, {"cpu", Side::b, "", {}, "", 0, ""}};
  for (const Side side : {Side::a, Side::b}) {
    ValueComparison& output =
        comparison.expected.emplace_back(value_of("y", "", side == Side::a ? Verdict::pass : Verdict::diverged, 4));
    output.held = side;
    output.metrics = Metrics{};
    output.metrics->count = 8;
    output.metrics->mismatches = 1;
    output.metrics->worst_index = {3};
    output.metrics->worst_a = 1.5;
    output.metrics->worst_b = 2.5;
  }
  conclude(comparison);
  const std::string text = comparison_to_junit(comparison);
  EXPECT_NE(text.find("message=\"output 'y' of B (cpu) is not as expected: 2.5 instead of 1.5 at [3], 1 of 8 elements "
                      "beyond the limit (severity 4)\""),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(">worst at [3]: expected 1.5, got 2.5</failure>"), std::string::npos) << text;
}

TEST(ReportJunit, APassFailsNothing) {
  Comparison comparison;
  comparison.values = {value_of("y", "node", Verdict::pass, 0.5)};
  conclude(comparison);
  const std::string text = comparison_to_junit(comparison);
  EXPECT_EQ(occurrences(text, "<failure "), 0);
  EXPECT_NE(text.find("tests=\"2\" failures=\"0\""), std::string::npos) << text;
}

json entries_of(const json& list, std::string_view kind, const std::string& target) {
  json found = json::object();
  for (const json& entry : list) {
    if (entry["kind"] == kind && entry["target"] == target) found[entry["name"].get<std::string>()] = entry["value"];
  }
  return found;
}

TEST(ReportNetron, TellsOfValuesAndTheirNodes) {
  const json document = json::parse(comparison_to_netron(exchanged()));
  EXPECT_EQ(document["signature"], "netron:attachment");
  EXPECT_EQ(entries_of(document["metrics"], "value", "left")["severity"], 0.25);
  EXPECT_EQ(entries_of(document["metrics"], "value", "left")["max_abs"], 0.125);
  EXPECT_EQ(entries_of(document["metrics"], "node", "split")["severity"], "inf");  // the worse of its two outputs
  EXPECT_EQ(entries_of(document["metadata"], "value", "gone")["parallax"], "not_compared: fused into <add>");
  EXPECT_EQ(entries_of(document["metadata"], "node", "split")["parallax cause 1"], "sizes & order");
  EXPECT_EQ(entries_of(document["metadata"], "model", "")["parallax verdict"], "diverged");
  for (const json& entry : document["metadata"]) EXPECT_NE(entry["target"], "inner") << "bodies are no nodes there";
}

// Its ONNX adapter has the names of nodes as ids, and "[value] NAME" for inputs, weights and outputs.
TEST(ReportModelExplorer, ColorsByIdsOfItsAdapter) {
  Comparison comparison = exchanged();
  comparison.values.push_back(value_of("x%2F%2Fin", "", Verdict::pass, 0.125));
  comparison.values.push_back(value_of("weight", "split", Verdict::pass, 0.5));
  comparison.values.back().node_reads_it = true;
  comparison.values.push_back(value_of("last", "end", Verdict::pass, 0.75));
  comparison.values.back().is_graph_output = true;
  const json results = json::parse(comparison_to_model_explorer(comparison))["results"];
  EXPECT_EQ(results["split"]["value"], "inf");  // the worse of its two outputs
  EXPECT_EQ(results["[value] x//in"]["value"], 0.125);
  EXPECT_EQ(results["[value] weight"]["value"], 0.5);
  EXPECT_EQ(results["end"]["value"], 0.75);
  EXPECT_EQ(results["[value] last"]["value"], 0.75);
  EXPECT_NE(results["split"]["bgColor"], results["end"]["bgColor"]);
  EXPECT_FALSE(results.contains("left")) << "names of values are no ids there";
}

// A file may leave names of nodes out, and have them again.
TEST(ReportModelExplorer, NodesThatTheFileDoesNotNameHaveTheAdaptersNames) {
  Graph graph;
  for (const auto& [name, shown] : {std::pair("", "Neg_0"), {"twin", "twin"}, {"twin", "twin#2"}, {"", "Neg_3"}}) {
    Node& node = graph.nodes.emplace_back();
    node.name = name;
    node.display_name = shown;
  }
  Comparison comparison;
  for (const char* node : {"Neg_0", "twin", "twin#2", "Neg_3"})
    comparison.values.push_back(value_of(std::string(node) + "%2F%2F", node, Verdict::pass, 0.5));
  const json results = json::parse(comparison_to_model_explorer(comparison, &graph))["results"];
  for (const char* id : {"node", "twin", "twin_1", "node_1"}) EXPECT_TRUE(results.contains(id)) << id;
  const json attachment = json::parse(comparison_to_netron(comparison, &graph));
  for (const json& entry : attachment["metrics"]) {
    EXPECT_TRUE(entry["kind"] == "value" || entry["target"] == "twin") << entry;
    EXPECT_TRUE(entry["kind"] != "value" || entry["target"].get<std::string>().ends_with("//")) << entry;
  }
}

}  // namespace
}  // namespace parallax
