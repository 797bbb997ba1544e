// SPDX-License-Identifier: Apache-2.0
// An audit as a page: counts, the nodes to keep, and a bar for each node.
#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "inspector/render/markup.h"
#include "inspector/tensor/float_formats.h"
#include "inspector/workbench/half_precision/audit.h"

namespace parallax {
namespace {

constexpr double kWidth = 420;  // of the axis, in pixels
constexpr double kLowestDecade = -12, kHighestDecade = 40;

constexpr std::string_view kHead = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Parallax: audit of half precision</title>
<style>
:root { --ground:#fbfbfa; --raised:#fff; --ink:#1d1f23; --dim:#63676e; --line:#dfe1e4; --must:#b2182b; --warn:#8a6a00;
  --ok:#1b7f5c; --bar:#2166ac; }
@media (prefers-color-scheme: dark) { :root { --ground:#16181b; --raised:#1e2125; --ink:#e7e8ea; --dim:#9aa0a8;
  --line:#33373d; --must:#f4a582; --warn:#e6c84f; --ok:#5fd3a6; --bar:#92c5de; } }
body { margin:0; background:var(--ground); color:var(--ink); font:14px/1.45 system-ui,"DejaVu Sans",sans-serif; }
main { max-width:1500px; margin:0 auto; padding:24px 20px 60px; }
h1 { margin:0 0 4px; font-size:26px; } h2 { margin:30px 0 10px; font-size:16px; }
.dim { color:var(--dim); } .mono, code { font-family:ui-monospace,"DejaVu Sans Mono",monospace; font-size:12.5px; }
.pass { color:var(--ok); } .diverged { color:var(--must); }
.cards { display:flex; flex-wrap:wrap; gap:10px; margin:14px 0; }
.card { background:var(--raised); border:1px solid var(--line); border-radius:8px; padding:10px 14px; min-width:90px; }
.card b { display:block; font-size:19px; }
details { border:1px solid var(--line); border-radius:8px; margin-top:8px; background:var(--raised); }
summary { cursor:pointer; padding:8px 12px; } table { border-collapse:collapse; width:100%; table-layout:fixed; }
col.class { width:90px; } col.range { width:440px; } col.kept { width:60px; } td { overflow-wrap:anywhere; }
td, th { text-align:left; padding:3px 10px; vertical-align:middle; border-top:1px solid var(--line); font-weight:normal; }
tr.must td.class, tr.wide_sum td.class { color:var(--must); font-weight:600; }
tr.mask td.class, tr.inexact td.class, tr.infinite td.class { color:var(--warn); }
svg text { font:10px system-ui,sans-serif; fill:var(--dim); } rect.range { fill:var(--bar); }
tr.must rect.range { fill:var(--must); } line.limit { stroke:var(--must); stroke-dasharray:3 2; }
line.axis { stroke:var(--line); }
</style></head><body><main>
)";

double position(double magnitude) {
  const double decade = std::clamp(std::log10(magnitude), kLowestDecade, kHighestDecade);
  return (decade - kLowestDecade) / (kHighestDecade - kLowestDecade) * kWidth;
}

std::string limit_lines(double height) {
  std::string lines;
  for (const DType type : {DType::float16, DType::bfloat16}) {
    const FloatLimits limits = float_limits(type);
    for (const double limit : {limits.min_normal, limits.max_finite})
      if (std::log10(limit) > kLowestDecade)
        lines += fmt::format("<line class=\"limit\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"0\" y2=\"{1}\"/>",
                             position(limit), height);
  }
  return lines;
}

std::string bar(const NodeAudit& node) {
  std::string drawn = fmt::format(
      "<svg width=\"{0}\" height=\"14\" role=\"img\"><line class=\"axis\" x1=\"0\" x2=\"{0}\" y1=\"7\" "
      "y2=\"7\"/>",
      kWidth);
  if (node.max_abs.has_value() && node.min_abs.has_value()) {
    const double begin = position(*node.min_abs), end = position(*node.max_abs);
    drawn += fmt::format(
        "<title>{:.3g} to {:.3g}</title><rect class=\"range\" x=\"{:.1f}\" y=\"3\" width=\"{:.1f}\" "
        "height=\"8\"/>",
        *node.min_abs, *node.max_abs, begin, std::max(end - begin, 1.0));
  }
  return drawn + limit_lines(14) + "</svg>";
}

std::string axis() {
  std::string drawn = fmt::format("<svg width=\"{}\" height=\"16\">", kWidth);
  for (const auto& [label, value] : {std::pair{"6.1e-5", 6.1e-5}, {"65504", 65504.0}, {"3.4e38", 3.4e38}})
    drawn += fmt::format("<text x=\"{:.1f}\" y=\"12\" text-anchor=\"middle\">{}</text>",
                         std::min(position(value), kWidth - 18), label);
  return drawn + "</svg>";
}

std::string row(const NodeAudit& node, bool kept) {
  std::string source = xml_text(node.source.line);
  if (!node.source.operator_name.empty()) source += " " + xml_text(node.source.operator_name);
  return fmt::format(
      "<tr class=\"{0}\"><td class=\"class\">{0}</td><td><code>{1}</code> <span class=\"dim\">{2}</span></td><td>{3}"
      "</td><td>{4}</td><td>{5}</td><td class=\"dim\">{6}</td></tr>\n",
      name_of(node.half_class), xml_text(node.path), xml_text(node.op), bar(node), kept ? "kept" : "",
      xml_text(node.why), source);
}

constexpr size_t kFewNodes = 200;  // of a model whose groups are all open at first

std::string group(const std::string& scope, const std::vector<const NodeAudit*>& nodes, const HalfAudit& audit) {
  const auto severe =
      std::ranges::count_if(nodes, [](const NodeAudit* node) { return node->half_class <= HalfClass::wide_sum; });
  std::string text = fmt::format(
      "<details{}><summary><code>{}</code> <span class=\"dim\">{} node{}, {} to keep or watch</span></summary>\n<table>"
      "<colgroup><col class=\"class\"><col><col class=\"range\"><col class=\"kept\"><col><col></colgroup>\n"
      "<tr><th>class</th><th>node</th><th>{}</th><th></th><th>reason</th><th>source</th></tr>\n",
      severe > 0 || audit.nodes.size() <= kFewNodes ? " open" : "", scope.empty() ? "(model)" : xml_text(scope),
      nodes.size(), nodes.size() == 1 ? "" : "s", severe, axis());
  for (const NodeAudit* node : nodes) text += row(*node, std::ranges::find(audit.keep, node->path) != audit.keep.end());
  return text + "</table></details>\n";
}

}  // namespace

std::string audit_to_html(const HalfAudit& audit, const std::string& title) {
  std::string text(kHead);
  const std::string_view verdict = audit.kept.passed ? "pass" : "diverged";
  text += fmt::format(
      "<h1>Verdict: <span class=\"{0}\">{0}</span></h1>\n<p><code>{1}</code> in {2}, on {3} input set{8}. Relative "
      "error "
      "of the outputs: {4:.3g} with nothing kept, {5:.3g} with {6} nodes kept; the limit is "
      "{7:.3g}.</p>\n<div class=\"cards\">\n",
      verdict, xml_text(title), name_of(audit.to), audit.inputs, audit.nothing_kept.rel_l2, audit.kept.rel_l2,
      audit.keep.size(), audit.tolerance, audit.inputs == 1 ? "" : "s");
  for (size_t index = 0; index < kHalfClassNames.size(); ++index)
    text += fmt::format("<div class=\"card\"><b>{}</b><span class=\"dim\">{}</span></div>\n",
                        audit.count(static_cast<HalfClass>(index)), kHalfClassNames[index]);
  text += "</div>\n";
  for (const std::string& note : audit.notes) text += fmt::format("<p>{}</p>\n", xml_text(note));
  text +=
      "<h2>Nodes</h2>\n<p class=\"dim\">A bar spans the magnitudes of a node's outputs that are not 0; dashed lines "
      "are the smallest normal and the largest finite number of float16, and the largest finite number of "
      "bfloat16.</p>\n";
  std::vector<std::string> order;
  std::map<std::string, std::vector<const NodeAudit*>> groups;
  for (const NodeAudit& node : audit.nodes) {
    if (node.half_class == HalfClass::not_float) continue;
    auto& nodes = groups[node.scope];
    if (nodes.empty()) order.push_back(node.scope);
    nodes.push_back(&node);
  }
  for (const std::string& scope : order) text += group(scope, groups[scope], audit);
  return text + "</main></body></html>\n";
}

}  // namespace parallax
