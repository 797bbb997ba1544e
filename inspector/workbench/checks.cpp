// SPDX-License-Identifier: Apache-2.0
// Runs the dump's or the model's own checks and prints what they find.
#include "inspector/workbench/checks.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "inspector/base/shown_text.h"
#include "inspector/dump/dump_reader.h"
#include "inspector/model/io/import.h"
#include "inspector/model/link.h"
#include "inspector/model/shape_inference/infer_types.h"
#include "inspector/render/report_json.h"
#include "inspector/workbench/open.h"

namespace parallax {
namespace {

// The first node of a graph that stands before one whose result it reads, which a run puts in order by itself.
void check_order(const Graph& graph, const std::string& location, CheckReport& report) {
  NodeId first = kNoNode;
  const ValueDef* read = nullptr;
  for (const ValueDef& value : graph.values) {
    for (const NodeId reader : value.readers) {
      if (value.producer <= reader || (first != kNoNode && first <= reader)) continue;
      first = reader;
      read = &value;
    }
  }
  if (first != kNoNode) {
    const Node &node = graph.nodes[static_cast<size_t>(first)],
               &producer = graph.nodes[static_cast<size_t>(read->producer)];
    report.problems.push_back({fmt::format("node '{}' ({}){}", node.display_name, node.op_type, location),
                               fmt::format("reads '{}', which node '{}' computes further down: nodes must be "
                                           "topologically sorted",
                                           read->name, producer.display_name)});
  }
  for (const Node& node : graph.nodes) {
    for (const Graph* body : bodies_of(node))
      check_order(*body, fmt::format(" in a body of node '{}'{}", node.display_name, location), report);
  }
}

// Compares the types that the file declares for the graph's outputs with those that follow from its inputs and
// constants alone: shapes of values in between may be stale.
void check_declared_outputs(const Model& model, CheckReport& report) {
  const std::vector<TypeInfo> computed = computed_output_types(model);
  for (size_t index = 0; index < computed.size(); ++index) {
    const ValueDef& output = value_at(model.graph, model.graph.outputs[index]);
    if (!are_contradictory(output.type, computed[index])) continue;
    report.problems.push_back(
        {fmt::format("output '{}'", output.name), fmt::format("is declared as {}, but the graph computes {}",
                                                              to_string(output.type), to_string(computed[index]))});
  }
}

// Finds defects of a file that can be read and run in spite of them.
void check_form(const Model& model, CheckReport& report) {
  if (model.graph.outputs.empty()) report.problems.push_back({"the graph", "has no outputs"});
  check_order(model.graph, "", report);
  for (const auto& function : model.functions)
    check_order(function->body, fmt::format(" in function '{}.{}'", function->domain, function->name), report);
  check_declared_outputs(model, report);
}

void check_model_file(CheckReport& report) {
  const auto model = import_model(report.file, {.checks = ModelChecks::recorded});
  if (!model.ok()) {
    if (model.error().code == ErrorCode::io) report.code = ErrorCode::io;
    report.problems.push_back(
        {model.error().node.empty() ? "file" : fmt::format("node '{}'", model.error().node), model.error().message});
    return;
  }
  std::vector<ModelProblem> problems = (*model)->problems;
  const auto is_missing_file = [](const ModelProblem& problem) { return problem.code == ErrorCode::io; };
  if (!problems.empty() && std::ranges::all_of(problems, is_missing_file)) report.code = ErrorCode::io;
  if (problems.empty()) problems = check_shapes(**model);
  for (const ModelProblem& problem : problems) report.problems.push_back({problem.where, problem.message});
  if (problems.empty()) check_form(**model, report);
}

}  // namespace

Result<CheckReport> check_file(const std::string& path) {
  CheckReport report;
  report.file = path;
  report.is_dump = PX_TRY(is_dump_file(path));
  if (!report.is_dump) {
    check_model_file(report);
    return report;
  }
  report.code = ErrorCode::corrupt_file;
  auto found = check_dump(path);
  if (!found.ok()) {
    if (found.error().code != ErrorCode::corrupt_file) return std::move(found).error();
    report.problems.push_back({"file", found.error().message});
    return report;
  }
  for (DumpProblem& problem : *found) report.problems.push_back({std::move(problem.where), std::move(problem.message)});
  return report;
}

std::string check_to_json(const CheckReport& report) {
  nlohmann::ordered_json json{{"ok", report.problems.empty()}};
  json["problems"] = nlohmann::ordered_json::array();
  for (const CheckReport::Problem& problem : report.problems)
    json["problems"].push_back({{"where", problem.where}, {"message", problem.message}});
  return json_text(json);
}

std::string check_to_text(const CheckReport& report) {
  const char* kind = report.is_dump ? "dump" : "model";
  if (report.problems.empty()) return fmt::format("{}: ok, a valid {}\n", report.file, kind);
  std::string text;
  for (const CheckReport::Problem& problem : report.problems)
    text += one_safe_line(fmt::format("{}: {}: {}", report.file, problem.where, problem.message)) + "\n";
  return text +
         fmt::format("{} problem{} in this {}\n", report.problems.size(), report.problems.size() == 1 ? "" : "s", kind);
}

std::string quoted_json(std::string_view text) { return json_text(text, -1); }

}  // namespace parallax
