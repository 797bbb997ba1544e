// SPDX-License-Identifier: Apache-2.0
// Formats: JUnit as Jenkins' junit-10.xsd has it; Netron's "netron:attachment"; Model Explorer's custom node data.
#include "inspector/render/report_exchange.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "inspector/exec/value_path.h"
#include "inspector/render/markup.h"
#include "inspector/render/report_json.h"
#include "inspector/render/report_text.h"
#include "inspector/render/severity_style.h"

namespace parallax {
namespace {

using nlohmann::ordered_json;

std::string describe(const ValueComparison& value) {
  if (!value.shape_a.empty()) return reason_text(value);
  std::string text = fmt::format("severity {:.4g}", value.severity);
  if (value.metrics.has_value())
    text += fmt::format(", max |a-b| {:.4g}, {} of {} elements beyond the limit", value.metrics->max_abs,
                        value.metrics->mismatches, value.metrics->count);
  text += fmt::format(", limit rtol {:.4g} atol {:.4g}", value.limit.rtol, value.limit.atol);
  return text;
}

// The location to inspect: the node that computed the value, and its worst element.
std::string location_of(const ValueComparison& value) {
  std::string text = value.node.empty() ? "" : fmt::format("node {}", value.node);
  if (!value.metrics.has_value() || value.metrics->worst_index.empty()) return text;
  const std::string location =
      fmt::format("{}worst at [{}]", text.empty() ? "" : ", ", fmt::join(value.metrics->worst_index, ","));
  if (std::isnan(value.metrics->max_abs)) return text + location;  // texts, which have no distance
  const bool is_expected = value.held != Side::unknown;
  const WorstElements worst = worst_elements(*value.metrics);
  return text + location +
         fmt::format(": {} {}, {} {}", is_expected ? "expected" : "A", worst.a, is_expected ? "got" : "B", worst.b);
}

std::string test_case(const ValueComparison& value, const std::string& class_name, const std::string& name) {
  std::string text = fmt::format("    <testcase classname=\"{}\" name=\"{}\"", xml_text(class_name), xml_text(name));
  switch (value.verdict) {
    case Verdict::pass:
      return text + "/>\n";
    case Verdict::diverged:
      return text + fmt::format(">\n      <failure type=\"diverged\" message=\"{}\">{}</failure>\n    </testcase>\n",
                                xml_text(describe(value)), xml_text(location_of(value)));
    case Verdict::mistrusted:
      break;
    case Verdict::not_compared:
      if (!is_damaged(value)) break;
      return text + fmt::format(">\n      <error type=\"damaged\" message=\"{}\"/>\n    </testcase>\n",
                                xml_text(reason_text(value)));
  }
  return text + fmt::format(">\n      <skipped message=\"{}: {}\"/>\n    </testcase>\n", name_of(value.verdict),
                            xml_text(reason_text(value)));
}

std::string value_case(const ValueComparison& value) {
  return test_case(value, value.op.empty() ? "input" : value.op, value.path);
}

// An output against the expected one, once for each side that was held against it.
std::string expected_case(const ValueComparison& value, bool has_two_sides) {
  return test_case(value, "expected",
                   has_two_sides ? fmt::format("{}: {}", name_of(value.held), value.path) : value.path);
}

std::string verdict_case(const Comparison& comparison) {
  if (comparison.verdict == OverallVerdict::pass) return "    <testcase classname=\"parallax\" name=\"verdict\"/>\n";
  std::string where = comparison.reason;
  if (comparison.first_divergence.has_value() && !comparison.first_divergence->is_from_expected) {
    where = fmt::format("first divergence: {} ({}), value {}", comparison.first_divergence->node,
                        comparison.first_divergence->op, comparison.first_divergence->path);
  }
  if (const std::string missed = missed_expectation(comparison); !missed.empty())
    where += (where.empty() ? "" : "; ") + missed;
  for (const Cause& cause : comparison.causes) {
    const std::string in_b = cause.is_renamed_in_b() ? fmt::format(" (in B '{}')", cause.node_b) : "";
    where += fmt::format("; cause {}{}: {}", cause.rank, in_b, cause.why);
  }
  for (const std::string& sentence : damage_sentences(comparison)) where += "; " + sentence;
  return fmt::format(
      "    <testcase classname=\"parallax\" name=\"verdict\">\n      <failure type=\"{}\" message=\"{}\"/>\n"
      "    </testcase>\n",
      name_of(comparison.verdict), xml_text(where));
}

bool is_in_main_graph(const ValueComparison& value) { return value.path.find("//") == std::string::npos; }

// Netron matches the part of a name before its first line break, and reads no other.
std::string target_of(std::string_view name) { return std::string(name.substr(0, name.find('\n'))); }

// The ids by our names of nodes, as onnx-ir's NameFixPass, through which the adapter goes, makes them: "node" and
// "node_1" of those without a name, "twin_1" of a second "twin".
std::unordered_map<std::string, std::string> ids_of_adapter(const Graph* graph) {
  std::unordered_map<std::string, std::string> ids;
  if (graph == nullptr) return ids;
  std::unordered_set<std::string> used;
  std::unordered_map<std::string, int> counts;
  for (const Node& node : graph->nodes) {
    const std::string wanted = node.name.empty() ? "node" : node.name;
    std::string id = wanted;
    while (!used.insert(id).second) id = fmt::format("{}_{}", wanted, ++counts[wanted]);
    ids[node.display_name] = id;
  }
  return ids;
}

// Our names of nodes that a file has without one, or has again.
std::unordered_set<std::string> made_names(const Graph* graph) {
  std::unordered_set<std::string> names;
  if (graph == nullptr) return names;
  for (const Node& node : graph->nodes) {
    if (node.name != node.display_name) names.insert(node.display_name);
  }
  return names;
}

void add_entry(ordered_json& list, std::string_view kind, const std::string& target, std::string_view name,
               ordered_json value) {
  list.push_back({{"kind", kind}, {"target", target}, {"name", name}, {"value", std::move(value)}});
}

}  // namespace

std::string comparison_to_junit(const Comparison& comparison) {
  const ComparisonSummary& summary = comparison.summary;
  const int64_t verdict_fails = comparison.verdict == OverallVerdict::pass ? 0 : 1;
  double seconds = 0;
  for (const ComparedExecution& execution : comparison.executions) seconds += execution.wall_ms / 1e3;
  int64_t diverged = summary.diverged;
  std::string cases = verdict_case(comparison);
  for (const ValueComparison& value : comparison.values) cases += value_case(value);
  const auto& expected = comparison.expected;
  const bool has_two_sides = !expected.empty() && expected.front().held != expected.back().held;
  for (const ValueComparison& value : expected) {
    diverged += value.verdict == Verdict::diverged ? 1 : 0;
    cases += expected_case(value, has_two_sides);
  }
  const size_t total = 1 + comparison.values.size() + expected.size();
  const int64_t damaged = std::ranges::count_if(comparison.values, is_damaged);
  const std::string counts =
      fmt::format("tests=\"{}\" failures=\"{}\" errors=\"{}\"", total, diverged + verdict_fails, damaged);
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {}>\n  <testsuite name=\"parallax\" {} skipped=\"{}\" "
      "time=\"{:.3f}\">\n{}  </testsuite>\n</testsuites>\n",
      counts, counts, summary.mistrusted + summary.not_compared - damaged, seconds, cases);
}

std::string comparison_to_netron(const Comparison& comparison, const Graph* graph) {
  const std::unordered_set<std::string> unknown = made_names(graph);
  ordered_json metrics = ordered_json::array();
  ordered_json metadata = ordered_json::array();
  add_entry(metadata, "model", "", "parallax verdict", name_of(comparison.verdict));
  for (const Cause& cause : comparison.causes) {
    const std::string title = fmt::format("parallax cause {}", cause.rank);
    if (!unknown.contains(cause.node)) add_entry(metadata, "node", target_of(cause.node), title, cause.why);
    if (cause.is_renamed_in_b()) add_entry(metadata, "node", target_of(cause.node_b), title, cause.why);
  }
  std::unordered_map<std::string, const ValueComparison*> worst_of_node;
  for (const ValueComparison& value : comparison.values) {
    if (!is_in_main_graph(value)) continue;
    const std::string target = target_of(unescape_name(value.path));
    add_entry(metadata, "value", target, "parallax",
              value.reason.empty() ? std::string(name_of(value.verdict))
                                   : fmt::format("{}: {}", name_of(value.verdict), reason_text(value)));
    if (value.metrics.has_value()) {
      add_entry(metrics, "value", target, "severity", number_json(value.severity));
      add_entry(metrics, "value", target, "max_abs", number_json(value.metrics->max_abs));
      add_entry(metrics, "value", target, "rmse", number_json(value.metrics->rmse));
    }
    const ValueComparison*& worst = worst_of_node[value.node];
    if (!value.node.empty() && (worst == nullptr || is_worse(value, *worst))) worst = &value;
  }
  for (const ValueComparison& value : comparison.values) {
    const auto worst = worst_of_node.find(value.node);
    if (value.node.empty() || worst == worst_of_node.end() || worst->second != &value || unknown.contains(value.node))
      continue;
    add_entry(metadata, "node", target_of(value.node), "parallax", style_of(value).badge);
    if (value.metrics.has_value())
      add_entry(metrics, "node", target_of(value.node), "severity", number_json(value.severity));
  }
  return json_text({{"signature", "netron:attachment"}, {"metadata", metadata}, {"metrics", metrics}});
}

std::string comparison_to_model_explorer(const Comparison& comparison, const Graph* graph) {
  const std::unordered_map<std::string, std::string> node_ids = ids_of_adapter(graph);
  std::vector<std::string> ids;
  std::unordered_map<std::string, const ValueComparison*> worst;
  const auto add = [&](std::string id, const ValueComparison& value) {
    const auto [known, is_new] = worst.emplace(id, &value);
    if (is_new) ids.push_back(std::move(id));
    if (is_worse(value, *known->second)) known->second = &value;
  };
  for (const ValueComparison& value : comparison.values) {
    if (!is_in_main_graph(value)) continue;
    const bool is_made_by_node = !value.node.empty() && !value.node_reads_it;
    const auto node_id = node_ids.find(value.node);
    if (is_made_by_node) add(node_id == node_ids.end() ? value.node : node_id->second, value);
    if (!is_made_by_node || value.is_graph_output) add("[value] " + unescape_name(value.path), value);
  }
  ordered_json results = ordered_json::object();
  for (const std::string& id : ids) {
    const ValueComparison& value = *worst.at(id);
    const SeverityStyle style = style_of(value);
    const bool is_judged = value.verdict == Verdict::pass || value.verdict == Verdict::diverged;
    results[id] = {{"value", is_judged ? number_json(value.severity) : ordered_json(style.badge)},
                   {"bgColor", style.fill},
                   {"textColor", style.text}};
  }
  return json_text({{"results", std::move(results)}});
}

}  // namespace parallax
