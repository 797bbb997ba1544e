// SPDX-License-Identifier: Apache-2.0
// Reports of an audit as JSON, text and CSV.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "inspector/base/shown_text.h"
#include "inspector/render/markup.h"
#include "inspector/render/report_json.h"
#include "inspector/workbench/half_precision/audit.h"

namespace parallax {
namespace {

using Json = nlohmann::ordered_json;

Json figure(const std::optional<double>& value) { return value.has_value() ? Json(*value) : Json(nullptr); }

Json error_figure(double value) { return std::isfinite(value) ? Json(value) : Json("inf"); }

Json source_json(const SourceLocation& source) {
  if (source.module.empty() && source.line.empty() && source.operator_name.empty()) return nullptr;
  return {{"module", source.module}, {"line", source.line}, {"operator", source.operator_name}};
}

Json node_json(const NodeAudit& node) {
  Json json{{"node", node.path}, {"op", node.op}, {"class", name_of(node.half_class)}, {"why", node.why}};
  json["max_abs"] = figure(node.max_abs);
  json["min_abs"] = figure(node.min_abs);
  json["flushed_share"] = figure(node.flushed_share);
  json["accumulated_max"] = figure(node.accumulated_max);
  json["first_input"] = node.first_input;
  json["source"] = source_json(node.source);
  return json;
}

std::string csv_figure(const std::optional<double>& value) {
  return value.has_value() ? fmt::format("{}", *value) : std::string();
}

}  // namespace

std::string audit_to_json(const HalfAudit& audit) {
  Json json{{"to", name_of(audit.to)}, {"inputs", audit.inputs}};
  for (size_t index = 0; index < kHalfClassNames.size(); ++index)
    json["counts"][std::string(kHalfClassNames[index])] = audit.count(static_cast<HalfClass>(index));
  json["nodes"] = Json::array();
  for (const NodeAudit& node : audit.nodes) json["nodes"].push_back(node_json(node));
  json["keep"] = audit.keep;
  Json outputs = Json::object();
  for (const OutputError& output : audit.kept.per_output)
    outputs[output.name] = {{"rel_l2", error_figure(output.rel_l2)}};
  json["verification"] = {{"verdict", audit.kept.passed ? "pass" : "diverged"},
                          {"tolerance", audit.tolerance},
                          {"keep_io", audit.keep_io},
                          {"nothing_kept", {{"rel_l2", error_figure(audit.nothing_kept.rel_l2)}}},
                          {"kept", {{"rel_l2", error_figure(audit.kept.rel_l2)}}},
                          {"per_output", outputs}};
  json["stable_after"] = audit.stable_after.has_value() ? Json(*audit.stable_after) : Json(nullptr);
  json["observed_ms"] = audit.observed_ms;
  json["notes"] = audit.notes;
  return json_text(json);
}

std::string audit_to_text(const HalfAudit& audit) {
  std::string text =
      fmt::format("{} on {} input set{}:", name_of(audit.to), audit.inputs, audit.inputs == 1 ? "" : "s");
  for (size_t index = 0; index < kHalfClassNames.size(); ++index) {
    const int64_t count = audit.count(static_cast<HalfClass>(index));
    if (count > 0) text += fmt::format("{} {} {}", text.ends_with(':') ? "" : ",", count, kHalfClassNames[index]);
  }
  text += "\n";
  for (const NodeAudit& node : audit.nodes) {
    if (node.half_class == HalfClass::must)
      text += fmt::format("{:<10} {} ({}): {}\n", name_of(node.half_class), printable(node.path), printable(node.op),
                          printable(node.why));
  }
  if (audit.stable_after.has_value()) text += fmt::format("stable after {} input sets\n", *audit.stable_after);
  text += fmt::format(
      "relative error of the outputs: {:.3g} with nothing kept, {:.3g} with {} node{} kept (limit {:.3g})\n",
      audit.nothing_kept.rel_l2, audit.kept.rel_l2, audit.keep.size(), audit.keep.size() == 1 ? "" : "s",
      audit.tolerance);
  for (const std::string& path : audit.keep) text += fmt::format("keep {}\n", printable(path));
  return text + (audit.kept.passed ? "pass\n" : "DIVERGED\n");
}

std::string audit_to_csv(const HalfAudit& audit) {
  std::string text = "node,op,class,why,max_abs,min_abs,flushed_share,accumulated_max,first_input,module,line,keep\r\n";
  for (const NodeAudit& node : audit.nodes) {
    const bool kept = std::ranges::find(audit.keep, node.path) != audit.keep.end();
    text += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{}\r\n", csv_field(node.path), csv_field(node.op),
                        name_of(node.half_class), csv_field(node.why), csv_figure(node.max_abs),
                        csv_figure(node.min_abs), csv_figure(node.flushed_share), csv_figure(node.accumulated_max),
                        node.first_input, csv_field(node.source.module), csv_field(node.source.line), kept);
  }
  return text;
}

}  // namespace parallax
