// Runs the dump's or the model's own checks and prints what they find.
#include "inspector/workbench/checks.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "inspector/dump/dump_reader.h"
#include "inspector/model/import.h"
#include "inspector/render/report_json.h"
#include "inspector/workbench/open.h"

namespace parallax {
namespace {

Status check_model_file(CheckReport& report) {
  ImportOptions options;
  options.validate = false;
  const auto model = import_model(report.file, options);
  if (!model.ok()) {
    if (model.error().code == ErrorCode::io) return Status(Error(model.error()));
    report.problems.push_back(
        {model.error().node.empty() ? "file" : fmt::format("node '{}'", model.error().node), model.error().message});
    return {};
  }
  auto problems = check_model(**model);
  if (problems.empty()) problems = check_shapes(**model);
  for (const ModelProblem& problem : problems) report.problems.push_back({problem.where, problem.message});
  return {};
}

}  // namespace

Result<CheckReport> check_file(const std::string& path) {
  CheckReport report;
  report.file = path;
  report.is_dump = PX_TRY(is_dump_file(path));
  if (!report.is_dump) {
    report.is_dump = path.ends_with(".plx");  // a dump that lost its first bytes is a damaged dump, not a bad model
    if (!report.is_dump) {
      PX_TRY(check_model_file(report));
      return report;
    }
  }
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
    text += fmt::format("{}: {}: {}\n", report.file, problem.where, problem.message);
  return text +
         fmt::format("{} problem{} in this {}\n", report.problems.size(), report.problems.size() == 1 ? "" : "s", kind);
}

std::string quoted_json(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace parallax
