// SPDX-License-Identifier: Apache-2.0
// One sentence for each change, which all forms share.
#include "inspector/render/structure_report.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "inspector/base/shown_text.h"
#include "inspector/exec/value_path.h"
#include "inspector/render/compact_numbers.h"
#include "inspector/render/graph_labels.h"
#include "inspector/render/graph_svg.h"
#include "inspector/render/markup.h"
#include "inspector/render/report_json.h"
#include "inspector/render/report_text.h"

namespace parallax {
namespace {

using nlohmann::ordered_json;

// Fill and border of a node, by NodeDifference::Kind.
constexpr std::pair<const char*, const char*> kColors[] = {
    {"#FFF3C4", "#B58900"}, {"#FBE3D6", "#C4441C"}, {"#DDF0E0", "#23803B"}};

std::string_view name_of(NodeChange::Kind kind) {
  constexpr std::string_view kNames[] = {"op", "attribute", "constant", "input", "outputs"};
  return kNames[static_cast<size_t>(kind)];
}

std::string tensor_text(const StoredTensor& stored) {
  const std::string type = std::string(name_of(stored.tensor.dtype())) + stored.tensor.shape().to_string();
  const std::string content = stored.absence.empty() ? small_tensor_text(stored.tensor) : "not here";
  return content.empty() ? type : type + " " + content;
}

std::string attribute_side(const Attribute* attribute, const std::string& default_text) {
  if (attribute != nullptr) return attribute_text(*attribute).substr(attribute->name.size() + 1);
  return default_text.empty() ? "left out" : default_text + " (the default)";
}

std::string distance_text(const NodeChange& change) {
  if (!change.metrics.has_value()) return {};
  const Metrics& metrics = *change.metrics;
  const std::string count = fmt::format("; {} of {} elements differ", metrics.mismatches, metrics.count);
  return are_texts(metrics) ? count : count + fmt::format(", max |a-b| {:.4g}", metrics.max_abs);
}

std::string path_of(const std::string& scope, const Node& node) { return scope + node.display_name; }

struct Counts {
  int64_t changed = 0, only_a = 0, only_b = 0;
};

Counts counts_of(const StructureComparison& comparison) {
  Counts counts;
  for (const NodeDifference& difference : comparison.nodes) {
    counts.changed += difference.kind == NodeDifference::Kind::changed;
    counts.only_a += difference.kind == NodeDifference::Kind::only_a;
    counts.only_b += difference.kind == NodeDifference::Kind::only_b;
  }
  return counts;
}

}  // namespace

std::string_view name_of(NodeDifference::Kind kind) {
  constexpr std::string_view kNames[] = {"changed", "only_a", "only_b"};
  return kNames[static_cast<size_t>(kind)];
}

const char* text_of(NodeDifference::Kind kind) {
  constexpr const char* kTexts[] = {"changed", "only in A", "only in B"};
  return kTexts[static_cast<size_t>(kind)];
}

std::pair<const char*, const char*> colors_of(NodeDifference::Kind kind) { return kColors[static_cast<size_t>(kind)]; }

std::pair<std::string, std::string> sides_of(const NodeChange& change) {
  switch (change.kind) {
    case NodeChange::Kind::attribute:
      return {attribute_side(change.attribute_a, change.text_a), attribute_side(change.attribute_b, change.text_b)};
    case NodeChange::Kind::constant:
      return {tensor_text(*change.tensor_a), tensor_text(*change.tensor_b)};
    case NodeChange::Kind::input:
      return {change.text_a.empty() ? "nothing" : change.text_a, change.text_b.empty() ? "nothing" : change.text_b};
    default:
      return {change.text_a, change.text_b};
  }
}

std::string change_text(const NodeChange& change) {
  const auto [a, b] = sides_of(change);
  switch (change.kind) {
    case NodeChange::Kind::op:
      return fmt::format("operator: {} in A, {} in B", a, b);
    case NodeChange::Kind::attribute:
      return fmt::format("attribute {}: {} in A, {} in B", change.name, a, b);
    case NodeChange::Kind::constant:
      return fmt::format("constant {}: {} in A, {} in B{}", change.name, a, b, distance_text(change));
    case NodeChange::Kind::input:
      return fmt::format("input {} reads {} in A, {} in B", change.name, a, b);
    case NodeChange::Kind::outputs:
      return fmt::format("{} outputs in A, {} in B", a, b);
  }
  return {};
}

std::string signature_text(const SignatureDifference& difference) {
  const char* what = difference.is_input ? "input" : "output";
  if (difference.name_a.empty())
    return fmt::format("only in B: {} '{}' {}", what, difference.name_b, difference.type_b);
  if (difference.name_b.empty())
    return fmt::format("only in A: {} '{}' {}", what, difference.name_a, difference.type_a);
  return fmt::format("{} '{}': {} in A, {} in B", what, difference.name_a, difference.type_a, difference.type_b);
}

std::string node_text(const NodeDifference& difference) {
  const Node& node = difference.node_a != nullptr ? *difference.node_a : *difference.node_b;
  const std::string& scope = difference.node_a != nullptr ? difference.scope_a : difference.scope_b;
  std::string text = fmt::format("{} '{}'", qualified_op(node), path_of(scope, node));
  if (difference.kind != NodeDifference::Kind::changed) return text;
  const std::string in_b = path_of(difference.scope_b, *difference.node_b);
  return in_b == path_of(scope, node) ? text : text + fmt::format(" (in B '{}')", in_b);
}

std::string summary_text(const StructureComparison& comparison) {
  const Counts counts = counts_of(comparison);
  return fmt::format("{} and {} nodes: {} matched ({} renamed), {} changed, {} only in A, {} only in B",
                     comparison.nodes_a, comparison.nodes_b, comparison.matched, comparison.renamed, counts.changed,
                     counts.only_a, counts.only_b);
}

namespace {

NodeMarks marks_of(const StructureComparison& comparison, Side side) {
  NodeMarks marks;
  for (const NodeDifference& difference : comparison.nodes) {
    const Node* node = side == Side::a ? difference.node_a : difference.node_b;
    if (node == nullptr) continue;
    const std::string& scope = side == Side::a ? difference.scope_a : difference.scope_b;
    const auto& [fill, border] = colors_of(difference.kind);
    marks[scope + escape_name(node->display_name)] = {fill, border, text_of(difference.kind)};
  }
  return marks;
}

std::string picture_of(const StructureComparison& comparison, Side side) {
  const Model& model = side == Side::a ? *comparison.a : *comparison.b;
  return graph_to_svg(model.graph, nullptr, marks_of(comparison, side));
}

// A number of an attribute of the picture's first tag.
double size_in(const std::string& svg, std::string_view name) {
  const size_t at = svg.find(fmt::format(" {}=\"", name));
  return at == std::string::npos ? 0 : std::strtod(svg.c_str() + at + name.size() + 3, nullptr);
}

ordered_json change_json(const NodeChange& change) {
  const auto [a, b] = sides_of(change);
  ordered_json json{{"kind", name_of(change.kind)}, {"name", change.name}, {"a", a}, {"b", b}};
  if (change.kind == NodeChange::Kind::constant) {
    json["value_a"] = change.text_a;
    json["value_b"] = change.text_b;
  }
  if (change.metrics.has_value()) {
    json["mismatches"] = change.metrics->mismatches;
    json["elements"] = change.metrics->count;
    json["max_abs"] = number_json(change.metrics->max_abs);
  }
  return json;
}

ordered_json difference_json(const NodeDifference& difference) {
  const auto name = [](const Node* node) {
    return node == nullptr ? ordered_json(nullptr) : ordered_json(node->display_name);
  };
  const auto op = [](const Node* node) {
    return node == nullptr ? ordered_json(nullptr) : ordered_json(versioned_op_name(*node));
  };
  ordered_json json{{"kind", name_of(difference.kind)},  {"scope_a", difference.scope_a},
                    {"node_a", name(difference.node_a)}, {"op_a", op(difference.node_a)},
                    {"scope_b", difference.scope_b},     {"node_b", name(difference.node_b)},
                    {"op_b", op(difference.node_b)}};
  json["changes"] = ordered_json::array();
  for (const NodeChange& change : difference.changes) json["changes"].push_back(change_json(change));
  return json;
}

}  // namespace

std::string structure_to_text(const StructureComparison& comparison, int64_t most) {
  std::string text =
      fmt::format("{}  {}\n  A: {}\n  B: {}\n", comparison.is_same() ? "same" : "different", summary_text(comparison),
                  printable(comparison.a->path), printable(comparison.b->path));
  for (const SignatureDifference& difference : comparison.signature)
    text += printable(signature_text(difference)) + "\n";
  for (const auto& [side, problem] : comparison.problems)
    text += fmt::format("problem in {} alone: {}\n", name_of(side), printable(problem));
  int64_t listed = 0;
  for (const NodeDifference& difference : comparison.nodes) {
    if (most >= 0 && listed++ >= most) break;
    text += fmt::format("{}: {}\n", text_of(difference.kind), printable(node_text(difference)));
    for (const NodeChange& change : difference.changes) text += "  " + printable(change_text(change)) + "\n";
  }
  const auto all = static_cast<int64_t>(comparison.nodes.size());
  if (most >= 0 && all > most) text += fmt::format("and {} more nodes (--top -1 lists all)\n", all - most);
  return text;
}

std::string structure_to_json(const StructureComparison& comparison) {
  const Counts counts = counts_of(comparison);
  ordered_json json{{"parallax", PARALLAX_VERSION},
                    {"verdict", comparison.is_same() ? "same" : "different"},
                    {"a", comparison.a->path},
                    {"b", comparison.b->path},
                    {"summary",
                     {{"nodes_a", comparison.nodes_a},
                      {"nodes_b", comparison.nodes_b},
                      {"matched", comparison.matched},
                      {"renamed", comparison.renamed},
                      {"changed", counts.changed},
                      {"only_a", counts.only_a},
                      {"only_b", counts.only_b}}}};
  json["signature"] = ordered_json::array();
  for (const SignatureDifference& difference : comparison.signature) {
    json["signature"].push_back({{"kind", difference.is_input ? "input" : "output"},
                                 {"a", difference.name_a},
                                 {"b", difference.name_b},
                                 {"type_a", difference.type_a},
                                 {"type_b", difference.type_b}});
  }
  json["problems"] = ordered_json::array();
  for (const auto& [side, problem] : comparison.problems)
    json["problems"].push_back({{"side", name_of(side)}, {"problem", problem}});
  json["nodes"] = ordered_json::array();
  for (const NodeDifference& difference : comparison.nodes) json["nodes"].push_back(difference_json(difference));
  return json_text(json);
}

std::string structure_to_svg(const StructureComparison& comparison) {
  constexpr double kGap = 24, kTitle = 28;
  const std::string a = picture_of(comparison, Side::a), b = picture_of(comparison, Side::b);
  const double width_a = size_in(a, "width"), width_b = size_in(b, "width");
  const double height = std::max(size_in(a, "height"), size_in(b, "height")) + kTitle;
  const double width = width_a + kGap + width_b;
  const auto column = [&](const std::string& svg, double x, const char* title, const Model& model) {
    return fmt::format(
        "<text x=\"{:.0f}\" y=\"19\" style=\"font:13px Helvetica,Arial,sans-serif;text-anchor:start\">{}: {}</text>\n"
        "<g transform=\"translate({:.0f} {:.0f})\">{}</g>\n",
        x + 16, title, xml_text(model.path), x, kTitle, svg);
  };
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
             "{1:.0f}\">\n<!-- parallax -->\n<rect width=\"100%\" height=\"100%\" fill=\"#FFFFFF\"/>\n",
             width, height) +
         column(a, 0, "A", *comparison.a) + column(b, width_a + kGap, "B", *comparison.b) + "</svg>\n";
}

std::string structure_to_html(const StructureComparison& comparison) {
  std::string rows;
  for (const SignatureDifference& difference : comparison.signature)
    rows += fmt::format("<tr><td>signature</td><td colspan=\"2\">{}</td></tr>\n", xml_text(signature_text(difference)));
  for (const auto& [side, problem] : comparison.problems)
    rows += fmt::format("<tr><td>problem in {} alone</td><td colspan=\"2\">{}</td></tr>\n", name_of(side),
                        xml_text(problem));
  for (const NodeDifference& difference : comparison.nodes) {
    std::string changes;
    for (const NodeChange& change : difference.changes)
      changes += fmt::format("<div>{}</div>", xml_text(change_text(change)));
    rows += fmt::format("<tr class=\"{}\"><td>{}</td><td>{}</td><td>{}</td></tr>\n", name_of(difference.kind),
                        text_of(difference.kind), xml_text(node_text(difference)), changes);
  }
  constexpr const char* kStyle =
      ":root{--ground:#fbfbfa;--raised:#fff;--ink:#1d1f23;--dim:#63676e;--line:#dfe1e4}"
      "@media (prefers-color-scheme:dark){:root{--ground:#16181b;--raised:#1e2125;--ink:#e7e8ea;--dim:#9aa0a8;"
      "--line:#33373d}}body{margin:0;background:var(--ground);color:var(--ink);font:14px/1.45 system-ui,sans-serif}"
      "main{max-width:1500px;margin:0 auto;padding:24px 20px 60px}h1{font-size:26px;margin:0 0 4px}"
      ".dim{color:var(--dim)}table{border-collapse:collapse;width:100%;background:var(--raised)}"
      "td{border-bottom:1px solid var(--line);padding:5px 10px;vertical-align:top}td:first-child{white-space:nowrap}"
      ".picture{overflow:auto;max-height:85vh;border:1px solid var(--line);background:#fff;margin-top:24px}";
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><!-- parallax --><title>Parallax: two "
      "models</title>"
      "<style>{}</style></head><body><main>\n<h1>{}</h1>\n<p>{}</p>\n<p class=\"dim\">A: {}<br>B: {}</p>\n"
      "<table>{}</table>\n<div class=\"picture\">{}</div>\n</main></body></html>\n",
      kStyle, comparison.is_same() ? "The same structure" : "The structures differ", summary_text(comparison),
      xml_text(comparison.a->path), xml_text(comparison.b->path), rows, structure_to_svg(comparison));
}

}  // namespace parallax
