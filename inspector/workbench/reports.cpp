// SPDX-License-Identifier: Apache-2.0
// Rendering of single runs, benchmarks and backend tests.
#include "inspector/workbench/reports.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "inspector/base/memory_budget.h"
#include "inspector/base/shown_text.h"
#include "inspector/exec/value_path.h"
#include "inspector/render/report_json.h"

namespace parallax {
namespace {

using nlohmann::ordered_json;

ordered_json to_json(const OutputSummary& output) {
  ordered_json json{{"name", output.name}, {"dtype", output.type}, {"shape", output.shape}};
  json["stats"] = output.statistics.has_value() ? exact_statistics_json(output.integers, *output.statistics)
                                                : ordered_json(nullptr);
  return json;
}

std::string shape_text(const std::vector<int64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ",")); }

struct OperatorCounts {
  int64_t passed = 0, failed = 0, unsupported = 0;
};

// A case counts for every operator of its model, so that the table says what each operator's cases did.
std::map<std::string, OperatorCounts> count_by_operator(const BackendTestResult& result) {
  std::map<std::string, OperatorCounts> counts;
  for (const CaseResult& test : result.cases) {
    for (const std::string& op : test.operators) {
      OperatorCounts& row = counts[op];
      if (test.status == CaseStatus::passed) {
        ++row.passed;
      } else if (test.status == CaseStatus::unsupported) {
        ++row.unsupported;
      } else {
        ++row.failed;
      }
    }
  }
  return counts;
}

}  // namespace

std::string single_run_to_json(const RunResult& result, const Error* failure) {
  ordered_json json{{"parallax", PARALLAX_VERSION}, {"execution", execution_json(result.execution)}};
  json["outputs"] = ordered_json::array();
  for (const OutputSummary& output : result.outputs) json["outputs"].push_back(to_json(output));
  if (result.comparison.has_value()) {
    json["verdict"] = name_of(result.comparison->verdict);
    json["expected"] = expected_json(result.comparison->expected);
  }
  if (failure != nullptr) json["error"] = error_json(*failure);
  return json_text(json);
}

std::string value_to_json(const ValueComparison& value) {
  ordered_json json = expected_json({value}).front();
  json.erase("side");
  return json_text(json);
}

std::string single_run_to_text(const RunResult& result) {
  std::string text = fmt::format("{} on {}: first run {:.2f} ms, after {:.1f} ms of loading", result.execution.name,
                                 result.execution.device, result.execution.wall_ms, result.load_ms);
  if (result.execution.costs.has_value()) {
    text += fmt::format(" and {:.1f} ms of preparing; peak memory {}", result.execution.costs->prepare_ms,
                        bytes_rounded_up(result.execution.costs->peak_bytes));
  }
  text += "\n(the time of a first run includes packing weights and taking memory: parallax bench measures latency)\n";
  size_t width = 6;
  const auto name_of_output = [](const OutputSummary& output) { return printable(escape_name(output.name)); };
  for (const OutputSummary& output : result.outputs) width = std::max(width, name_of_output(output).size());
  text += fmt::format("{:<{}}  {:<9} {:<18} {:>12} {:>12} {:>12} {:>12}\n", "output", width, "dtype", "shape", "min",
                      "max", "mean", "std");
  for (const OutputSummary& output : result.outputs) {
    text += fmt::format("{:<{}}  {:<9} {:<18}", name_of_output(output), width, output.type, shape_text(output.shape));
    if (output.statistics.has_value()) {
      const TensorStatistics& stats = *output.statistics;
      const std::string mean = fmt::format("{:.6g}", stats.mean), std = fmt::format("{:.6g}", stats.std);
      for (const std::string& figure : {output.min, output.max, mean, std})
        text += fmt::format(" {:>12}", stats.count == 0 ? "-" : figure);
      if (stats.nan > 0) text += fmt::format("  {} NaN", stats.nan);
      if (stats.positive_inf + stats.negative_inf > 0)
        text += fmt::format("  {} inf", stats.positive_inf + stats.negative_inf);
    }
    text += '\n';
  }
  return text;
}

std::string bench_to_json(const BenchResult& result) {
  const ordered_json json{
      {"exec", result.executor},
      {"iterations", result.iterations},
      {"latency_ms", {{"min", result.min_ms}, {"median", result.median_ms}, {"p95", result.p95_ms}}},
      {"peak_bytes", result.peak_bytes},
      {"load_ms", result.load_ms},
      {"arena",
       {{"bytes", result.memory.arena_bytes},
        {"bound_bytes", result.memory.bound_bytes},
        {"sum_bytes", result.memory.sum_bytes},
        {"plans", result.memory.plan_count}}}};
  return json_text(json);
}

std::string bench_to_text(const BenchResult& result) {
  std::string text = fmt::format(
      "{}: {} runs: min {:.3f} ms, median {:.3f} ms, p95 {:.3f} ms; peak memory {}; before "
      "these, {:.1f} ms of loading and preparing\n",
      result.executor, result.iterations, result.min_ms, result.median_ms, result.p95_ms,
      bytes_rounded_up(result.peak_bytes), result.load_ms);
  const MemoryReport& memory = result.memory;
  if (memory.arena_bytes == 0) return text;
  return text + fmt::format("planned memory {}: {} live at once, {} in all buffers\n", bytes_text(memory.arena_bytes),
                            bytes_text(memory.bound_bytes), bytes_text(memory.sum_bytes));
}

std::string backend_tests_to_json(const BackendTestResult& result) {
  ordered_json json{{"total", result.cases.size()},
                    {"passed", result.count(CaseStatus::passed)},
                    {"failed", result.count(CaseStatus::failed)},
                    {"unsupported", result.count(CaseStatus::unsupported)},
                    {"errors", result.count(CaseStatus::error)}};
  json["cases"] = ordered_json::array();
  for (const CaseResult& test : result.cases) {
    json["cases"].push_back({{"name", test.name},
                             {"status", name_of(test.status)},
                             {"reason", test.reason.empty() ? ordered_json(nullptr) : ordered_json(test.reason)}});
  }
  return json_text(json);
}

std::string backend_tests_to_text(const BackendTestResult& result) {
  std::string text = fmt::format("{:<28} {:>7} {:>7} {:>12}\n", "operator", "passed", "failed", "unsupported");
  for (const auto& [op, row] : count_by_operator(result)) {
    text += fmt::format("{:<28} {:>7} {:>7} {:>12}\n", printable(op), row.passed, row.failed, row.unsupported);
  }
  text += '\n';
  for (const CaseResult& test : result.cases) {
    if (test.status != CaseStatus::passed)
      text += fmt::format("{:<11} {}: {}\n", name_of(test.status), printable(test.name), one_safe_line(test.reason));
  }
  text += fmt::format("{} cases: {} passed, {} failed, {} unsupported, {} errors\n", result.cases.size(),
                      result.count(CaseStatus::passed), result.count(CaseStatus::failed),
                      result.count(CaseStatus::unsupported), result.count(CaseStatus::error));
  return text;
}

}  // namespace parallax
