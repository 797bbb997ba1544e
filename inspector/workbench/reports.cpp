// SPDX-License-Identifier: Apache-2.0
// Rendering of single runs, benchmarks and backend tests.
#include "inspector/workbench/reports.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

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

ordered_json single_run_json(const RunResult& result) {
  ordered_json json{{"parallax", PARALLAX_VERSION}, {"execution", execution_json(result.execution)}};
  json["outputs"] = ordered_json::array();
  for (const OutputSummary& output : result.outputs) json["outputs"].push_back(to_json(output));
  if (result.comparison.has_value()) {
    json["verdict"] = name_of(result.comparison->verdict);
    json["expected"] = expected_json(result.comparison->expected);
  }
  return json;
}

// Nothing where it is not known: an executor that is a program of its own does not say.
std::string peak_text(int64_t bytes) {
  return bytes > 0 ? fmt::format("; peak memory {}", bytes_rounded_up(bytes)) : "";
}

}  // namespace

std::string single_run_to_json(const RunResult& result, const Error* failure) {
  ordered_json json = single_run_json(result);
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
    text += fmt::format(" and {:.1f} ms of preparing{}", result.execution.costs->prepare_ms,
                        peak_text(result.execution.costs->peak_bytes));
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

namespace {

// The value of the largest severity, null where nothing was compared. Constants are the same in every sample, and so
// tell none from another.
const ValueComparison* worst_value(const SampleRun& run) {
  const ValueComparison* worst = nullptr;
  if (!run.result.comparison.has_value()) return worst;
  const auto rank = [](const ValueComparison& value) {
    return std::tuple(value.origin != Origin::constant, value.verdict == Verdict::diverged, value.severity);
  };
  for (const auto* values : {&run.result.comparison->values, &run.result.comparison->expected}) {
    for (const ValueComparison& value : *values) {
      if (value.verdict != Verdict::not_compared && (worst == nullptr || rank(value) > rank(*worst))) worst = &value;
    }
  }
  return worst;
}

// Order of badness: verdict, then severity.
std::pair<int, double> badness(const SampleRun& run) {
  if (!run.result.comparison.has_value()) return {0, 0};
  const OverallVerdict verdict = run.result.comparison->verdict;
  const ValueComparison* worst = worst_value(run);
  return {verdict == OverallVerdict::diverged       ? 2
          : verdict == OverallVerdict::inconclusive ? 1
                                                    : 0,
          worst == nullptr ? 0 : worst->severity};
}

}  // namespace

size_t worst_sample(const std::vector<SampleRun>& runs) {
  size_t worst = 0;
  for (size_t index = 1; index < runs.size(); ++index) {
    if (badness(runs[index]) > badness(runs[worst])) worst = index;
  }
  return worst;
}

std::string samples_to_text(const std::vector<SampleRun>& runs) {
  std::vector<const SampleRun*> order;
  size_t width = 0;
  for (const SampleRun& run : runs) {
    order.push_back(&run);
    width = std::max(width, printable(run.name).size());
  }
  std::ranges::stable_sort(order, std::greater(), [](const SampleRun* run) { return badness(*run); });
  std::string text = fmt::format("{} samples, worst first\n", runs.size());
  for (const SampleRun* run : order) {
    const auto& comparison = run->result.comparison;
    text += fmt::format("  {:<12}  {:<{}}", comparison.has_value() ? name_of(comparison->verdict) : "not compared",
                        printable(run->name), width);
    if (const ValueComparison* worst = worst_value(*run); worst != nullptr)
      text += fmt::format("  largest severity {:.3g}, at '{}'", worst->severity, printable(worst->path));
    text += '\n';
  }
  return text;
}

std::string samples_to_json(const std::vector<SampleRun>& runs, const Error* failure) {
  const SampleRun& worst = runs[worst_sample(runs)];
  ordered_json json{{"parallax", PARALLAX_VERSION}};
  json["verdict"] = worst.result.comparison.has_value() ? ordered_json(name_of(worst.result.comparison->verdict))
                                                        : ordered_json(nullptr);
  json["worst"] = worst.name;
  json["samples"] = ordered_json::array();
  for (const SampleRun& run : runs) {
    const bool has_two_sides = run.result.model_b != nullptr;
    json["samples"].push_back(
        {{"name", run.name},
         {"result", has_two_sides ? comparison_json(*run.result.comparison) : single_run_json(run.result)}});
  }
  if (failure != nullptr) json["error"] = error_json(*failure);
  return json_text(json);
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
      "{}: {} runs: min {:.3f} ms, median {:.3f} ms, p95 {:.3f} ms{}; before "
      "these, {:.1f} ms of loading and preparing\n",
      result.executor, result.iterations, result.min_ms, result.median_ms, result.p95_ms, peak_text(result.peak_bytes),
      result.load_ms);
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
