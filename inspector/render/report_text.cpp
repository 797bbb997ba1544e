// SPDX-License-Identifier: Apache-2.0
// The terminal's report.
#include "inspector/render/report_text.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "inspector/base/memory_budget.h"
#include "inspector/base/shown_text.h"
#include "inspector/exec/branches.h"
#include "inspector/exec/executor_names.h"
#include "inspector/render/markup.h"
#include "inspector/render/runs/different_models.h"
#include "inspector/render/severity_style.h"

namespace parallax {
namespace {

constexpr size_t kMaxPath = 60;

struct Colors {
  std::string_view bad, good, doubt, dim, bold, end;
};
constexpr Colors kColors = {"\033[31m", "\033[32m", "\033[33m", "\033[2m", "\033[1m", "\033[0m"};
constexpr Colors kPlain = {"", "", "", "", "", ""};

std::string verdict_line(const Comparison& comparison, const Colors& colors) {
  const ComparisonSummary& summary = comparison.summary;
  std::string_view color = colors.doubt;
  if (comparison.verdict == OverallVerdict::pass) color = colors.good;
  if (comparison.verdict == OverallVerdict::diverged) color = colors.bad;
  std::string counts = fmt::format("{} values: {} compared, {} passed, {} diverged", summary.values, summary.compared,
                                   summary.passed, summary.diverged);
  if (summary.mistrusted > 0) counts += fmt::format(", {} mistrusted", summary.mistrusted);
  if (summary.values == 0 && comparison.has_expected) {  // one side, besides the outputs it should have given
    const auto passed = std::ranges::count(comparison.expected, Verdict::pass, &ValueComparison::verdict);
    counts = fmt::format("{} of {} outputs as expected", passed, comparison.expected.size());
  }
  if (summary.not_compared > 0) counts += fmt::format(", {} not compared", summary.not_compared);
  std::string text = fmt::format("{}{}{}{}  {}\n", colors.bold, color, name_of(comparison.verdict), colors.end, counts);
  // A run of one side has its reason in the list of its outputs.
  if (const std::string models = different_models(comparison); !models.empty())
    text += fmt::format("  {}\n", printable(models));
  const std::string reason = summary.values == 0 ? comparison.reason : reason_of(comparison);
  return reason.empty() ? text : text + fmt::format("  {}\n", printable(reason));
}

bool is_import(const ComparedExecution& execution) { return execution.name == "import"; }  // has no device, no time

// "A = cpu (AMD EPYC): m.onnx; 0.1 ms to prepare, 33.5 ms to run (with capture), peak memory 104 KiB".
std::string execution_lines(const Comparison& comparison) {
  std::string text;
  for (const ComparedExecution& execution : comparison.executions) {
    text += fmt::format("  {} = {}", execution.side == Side::a ? "A" : "B", printable(execution_text(execution)));
    std::string costs = execution.costs ? fmt::format("{:.1f} ms to prepare", execution.costs->prepare_ms) : "";
    if (execution.wall_ms > 0 && !is_import(execution))
      costs += fmt::format("{}{:.1f} ms to run{}", costs.empty() ? "" : ", ", execution.wall_ms,
                           is_foreign_executor(execution.name) ? "" : " (with capture)");
    if (execution.costs.has_value() && execution.costs->peak_bytes > 0)
      costs += fmt::format(", peak memory {}", bytes_rounded_up(execution.costs->peak_bytes));
    text += costs.empty() ? "\n" : fmt::format("; {}\n", costs);
  }
  return text;
}

const ValueComparison* find_value(const Comparison& comparison, const std::string& path) {
  const auto found = std::ranges::find(comparison.values, path, &ValueComparison::path);
  return found == comparison.values.end() ? nullptr : &*found;
}

std::string location_text(const std::vector<int64_t>& index) { return fmt::format("[{}]", fmt::join(index, ",")); }

std::string divergence_lines(const Comparison& comparison, const Colors& colors) {
  if (!comparison.first_divergence.has_value()) return {};
  const FirstDivergence& first = *comparison.first_divergence;
  const ValueComparison* value = first.is_from_expected ? nullptr : find_value(comparison, first.path);
  std::string text = fmt::format("first divergence: {}{}{} ({})\n", colors.bold, printable(first.path), colors.end,
                                 origin_of_divergence(comparison));
  if (value != nullptr && !value->shape_a.empty())
    return text + fmt::format("  shape {} in A and {} in B\n", value->shape_a, value->shape_b);
  if (value == nullptr || !value->metrics.has_value()) return text;
  const Metrics& metrics = *value->metrics;
  if (are_texts(metrics)) {
    return text + fmt::format("  texts differ at {}; {} of {}\n", location_text(metrics.worst_index),
                              metrics.mismatches, metrics.count);
  }
  const std::string severity =
      fmt::format("severity {:.3g} (limit: rtol {:.3g}, atol {:.3g}, from {})", value->severity, value->limit.rtol,
                  value->limit.atol, name_of(value->limit.from));
  const bool is_by_sample = value->reason.ends_with(kBySample);
  if (metrics.severity <= 1 && value->severity > 1) {
    return text + fmt::format("  the {} sampled elements are within the limit, the statistics of all are not: {}\n",
                              metrics.count, severity);
  }
  const WorstElements worst = worst_elements(metrics);
  return text + fmt::format("  worst at {}: A {}, B {}; {}; {} of {} {}elements beyond it\n",
                            location_text(metrics.worst_index), worst.a, worst.b, severity, metrics.mismatches,
                            metrics.count, is_by_sample ? "sampled " : "");
}

// "aten.softmax.int in decoder.attention, model.py:13", as much of it as is known.
std::string source_text(const Cause& cause) {
  std::string text = printable(cause.source_operator);
  if (!cause.source_module.empty()) text += (text.empty() ? "" : " in ") + printable(cause.source_module);
  if (!cause.source_line.empty()) text += (text.empty() ? "" : ", ") + printable(cause.source_line);
  return text;
}

std::string cause_lines(const Comparison& comparison) {
  constexpr size_t kListed = 10;
  std::string text;
  for (size_t index = 0; index < std::min(kListed, comparison.causes.size()); ++index) {
    const Cause& cause = comparison.causes[index];
    text += fmt::format("cause {}: {}\n", cause.rank, printable(cause_text(cause)));
    if (cause.has_source()) text += fmt::format("  from {}\n", source_text(cause));
  }
  if (comparison.causes.size() > kListed)
    text += fmt::format("and {} more causes (--json lists them all)\n", comparison.causes.size() - kListed);
  return text;
}

std::vector<const ValueComparison*> values_to_list(const Comparison& comparison, int64_t top) {
  std::vector<const ValueComparison*> listed;
  for (const ValueComparison& value : comparison.values) {
    if (top < 0 || value.verdict != Verdict::not_compared) listed.push_back(&value);
  }
  if (top < 0) return listed;
  std::stable_sort(listed.begin(), listed.end(), [](const auto* a, const auto* b) { return is_worse(*a, *b); });
  if (static_cast<int64_t>(listed.size()) > top) listed.resize(static_cast<size_t>(top));
  return listed;
}

std::string value_row(const ValueComparison& value, size_t width, const Colors& colors) {
  std::string_view color = colors.dim;
  if (value.verdict == Verdict::diverged) color = colors.bad;
  if (value.verdict == Verdict::mistrusted) color = colors.doubt;
  if (value.verdict == Verdict::pass) color = colors.end;
  std::string text = fmt::format("{}{:<12}{} {:<{}}  {:<14}", color, words_of(value.verdict), colors.end,
                                 shorten(printable(value.path), kMaxPath), width, shorten(printable(value.op), 14));
  if (value.metrics.has_value()) {
    text += fmt::format(" {:>9.3g} {:>10.3g} {:>10.3g} {:>9.3g}", value.severity, value.metrics->max_abs,
                        shown_average(*value.metrics, value.metrics->rel_l2), value.metrics->max_ulp);
  }
  if (!value.reason.empty()) text += "  " + printable(reason_text(value));
  const std::string non_finite = value.metrics.has_value() ? non_finite_text(*value.metrics) : "";
  if (!non_finite.empty()) text += "  " + non_finite;
  return text + "\n";
}

std::string value_table(const Comparison& comparison, const TextReportOptions& options, const Colors& colors) {
  const auto listed = values_to_list(comparison, options.top);
  if (listed.empty()) return {};
  size_t width = 5;
  for (const ValueComparison* value : listed)
    width = std::max(width, std::min(kMaxPath, printable(value->path).size()));
  std::string text = fmt::format("{}{:<12} {:<{}}  {:<14} {:>9} {:>10} {:>10} {:>9}{}\n", colors.dim,
                                 options.top < 0 ? "verdict" : "worst first", "value", width, "op", "severity",
                                 "max abs", "rel l2", "max ulp", colors.end);
  for (const ValueComparison* value : listed) text += value_row(*value, width, colors);
  return text;
}

// Which branches ran on each side, as far as their values tell.
class BranchesTaken {
 public:
  explicit BranchesTaken(const Comparison& comparison) {
    for (const ValueComparison& value : comparison.values) {
      keep_frames(value.a, in_a_);
      keep_frames(value.b, in_b_);
    }
  }

  // The reason for a value that a side lacks: the branch that this side did not take, where that is why.
  std::optional<std::string> not_taken(const ValueComparison& value) const {
    if (!value.reason.starts_with("absent in ")) return std::nullopt;
    const std::set<std::string>& frames = value.reason.ends_with("A") ? in_a_ : in_b_;
    return branch_not_taken(value.path, [&](const std::string& prefix) { return frames.contains(prefix); });
  }

 private:
  static void keep_frames(const std::string& path, std::set<std::string>& frames) {
    for (size_t end = path.find("//"); end != std::string::npos; end = path.find("//", end + 2))
      frames.insert(path.substr(0, end + 2));
  }

  std::set<std::string> in_a_, in_b_;
};

// Silence on what was not compared is how a report misleads: every reason, with its count.
std::string not_compared_lines(const Comparison& comparison) {
  const BranchesTaken branches(comparison);
  std::map<std::string, int64_t> reasons;
  for (const ValueComparison& value : comparison.values) {
    if (value.verdict != Verdict::not_compared) continue;
    const auto branch = branches.not_taken(value);
    const std::string& reason = brief_reason(value);
    ++reasons[reason.starts_with("fused into") ? "fused into other nodes"
              : branch.has_value()             ? fmt::format("{} (branch '{}' not taken)", reason, *branch)
                                               : reason];
  }
  std::string text;
  for (const auto& [reason, count] : reasons)
    text += fmt::format("{}{} {}", text.empty() ? "not compared: " : ", ", count, printable(reason));
  return text.empty() ? text : text + "\n";
}

std::string damage_lines(const Comparison& comparison, const Colors& colors) {
  std::string text;
  for (const std::string& sentence : damage_sentences(comparison))
    text += fmt::format("{}{}{}\n", colors.bad, printable(sentence), colors.end);
  return text;
}

std::string expected_lines(const Comparison& comparison, const Colors& colors) {
  std::string text;
  for (const ValueComparison& value : comparison.expected) {
    const bool good = value.verdict == Verdict::pass || value.verdict == Verdict::mistrusted;
    // "A reference: y": the side that made it, where there are two.
    const size_t colon = value.b == value.path ? std::string::npos : value.b.find(": ");
    const std::string side = colon == std::string::npos ? "" : " of " + value.b.substr(0, colon);
    text += fmt::format("expected output {}{}: {}{}{}", printable(value.path), side, good ? colors.good : colors.bad,
                        words_of(value.verdict), colors.end);
    if (value.metrics.has_value())
      text += fmt::format(", severity {:.3g}, max abs {:.3g}", value.severity, value.metrics->max_abs);
    text += value.reason.empty() ? "\n" : fmt::format(" ({})\n", printable(reason_text(value)));
  }
  return text;
}

// A column of the CSV form; it is empty where the value was not compared, or has no metrics, but needs that.
enum class Needs : uint8_t { nothing, comparison, metrics };
struct CsvColumn {
  const char* name;
  Needs needs;
  std::string (*text)(const ValueComparison& value);
};
using enum Needs;
constexpr CsvColumn kCsvColumns[] = {
    {"path", nothing, [](const ValueComparison& v) { return csv_field(v.path); }},
    {"a", nothing, [](const ValueComparison& v) { return csv_field(v.a); }},
    {"b", nothing, [](const ValueComparison& v) { return csv_field(v.b); }},
    {"matched_by", nothing, [](const ValueComparison& v) { return std::string(name_of(v.matched_by)); }},
    {"node", nothing, [](const ValueComparison& v) { return csv_field(v.node); }},
    {"op", nothing, [](const ValueComparison& v) { return csv_field(v.op); }},
    {"dtype", nothing, [](const ValueComparison& v) { return csv_field(v.dtype); }},
    {"shape", nothing, [](const ValueComparison& v) { return fmt::format("{}", fmt::join(v.shape, "x")); }},
    {"verdict", nothing, [](const ValueComparison& v) { return std::string(name_of(v.verdict)); }},
    {"severity", comparison, [](const ValueComparison& v) { return fmt::format("{}", v.severity); }},
    {"rtol", comparison, [](const ValueComparison& v) { return fmt::format("{}", v.limit.rtol); }},
    {"atol", comparison, [](const ValueComparison& v) { return fmt::format("{}", v.limit.atol); }},
    {"limit_from", comparison, [](const ValueComparison& v) { return std::string(name_of(v.limit.from)); }},
    {"reason", nothing, [](const ValueComparison& v) { return csv_field(brief_reason(v)); }},
    {"elements", metrics, [](const ValueComparison& v) { return fmt::format("{}", v.metrics->count); }},
    {"finite_pairs", metrics, [](const ValueComparison& v) { return fmt::format("{}", v.metrics->finite_pairs); }},
    {"max_abs", metrics, [](const ValueComparison& v) { return fmt::format("{}", v.metrics->max_abs); }},
    {"max_rel", metrics, [](const ValueComparison& v) { return fmt::format("{}", v.metrics->max_rel); }},
    {"mean_abs", metrics,
     [](const ValueComparison& v) { return fmt::format("{}", shown_average(*v.metrics, v.metrics->mean_abs)); }},
    {"rmse", metrics,
     [](const ValueComparison& v) { return fmt::format("{}", shown_average(*v.metrics, v.metrics->rmse)); }},
    {"rel_l2", metrics,
     [](const ValueComparison& v) { return fmt::format("{}", shown_average(*v.metrics, v.metrics->rel_l2)); }},
    {"cosine", metrics,
     [](const ValueComparison& v) { return fmt::format("{}", shown_average(*v.metrics, v.metrics->cosine)); }},
    {"snr_db", metrics,
     [](const ValueComparison& v) { return fmt::format("{}", shown_average(*v.metrics, v.metrics->snr_db)); }},
    {"max_ulp", metrics, [](const ValueComparison& v) { return fmt::format("{}", v.metrics->max_ulp); }},
    {"mismatches", metrics, [](const ValueComparison& v) { return fmt::format("{}", v.metrics->mismatches); }},
    {"nan_a", metrics, [](const ValueComparison& v) { return fmt::format("{}", v.metrics->nan_a); }},
    {"nan_b", metrics, [](const ValueComparison& v) { return fmt::format("{}", v.metrics->nan_b); }},
    {"inf_a", metrics, [](const ValueComparison& v) { return fmt::format("{}", v.metrics->inf_a); }},
    {"inf_b", metrics, [](const ValueComparison& v) { return fmt::format("{}", v.metrics->inf_b); }},
    {"worst_index", metrics,
     [](const ValueComparison& v) { return fmt::format("{}", fmt::join(v.metrics->worst_index, "x")); }},
    {"worst_a", metrics, [](const ValueComparison& v) { return worst_elements(*v.metrics, 0).a; }},
    {"worst_b", metrics, [](const ValueComparison& v) { return worst_elements(*v.metrics, 0).b; }},
};

std::string csv_row(const ValueComparison& value) {
  std::string row;
  for (const CsvColumn& column : kCsvColumns) {
    const bool is_empty = (column.needs == comparison && value.verdict == Verdict::not_compared) ||
                          (column.needs == metrics && !value.metrics.has_value());
    row += (&column == kCsvColumns ? "" : ",") + (is_empty ? "" : column.text(value));
  }
  return row + "\n";
}

std::string side_text(const Comparison& comparison, Side side) {
  for (const ComparedExecution& execution : comparison.executions) {
    if (execution.side == side) return fmt::format(" of {} ({})", name_of(side), execution.name);
  }
  return comparison.executions.empty() ? "" : fmt::format(" of {}", name_of(side));
}

}  // namespace

bool are_texts(const Metrics& metrics) { return std::isnan(metrics.max_abs); }

WorstElements worst_elements(const Metrics& metrics, int digits) {
  const auto text = [digits](double number) {
    return digits > 0 ? fmt::format("{:.{}g}", number, digits) : fmt::format("{}", number);
  };
  if (!metrics.worst_integers.has_value()) return {text(metrics.worst_a), text(metrics.worst_b)};
  const auto& [a, b, is_unsigned] = *metrics.worst_integers;
  return is_unsigned ? WorstElements{std::to_string(static_cast<uint64_t>(a)), std::to_string(static_cast<uint64_t>(b))}
                     : WorstElements{std::to_string(a), std::to_string(b)};
}

std::string missed_expectation(const Comparison& comparison, const ValueComparison& missed) {
  std::string text = fmt::format("output '{}'{} is not as expected", missed.path, side_text(comparison, missed.held));
  if (missed.verdict == Verdict::not_compared || !missed.shape_a.empty()) return text + ": " + reason_text(missed);
  if (missed.metrics.has_value()) {
    const Metrics& metrics = *missed.metrics;
    const WorstElements worst = worst_elements(metrics);
    // Texts have no distance: only the fact that they differ is shown.
    text += are_texts(metrics) ? ": another text" : fmt::format(": {} instead of {}", worst.b, worst.a);
    text += fmt::format(" at {}, {} of {} elements beyond the limit", location_text(metrics.worst_index),
                        metrics.mismatches, metrics.count);
  }
  return text + fmt::format(" (severity {:.3g})", missed.severity);
}

std::string missed_expectation(const Comparison& comparison) {
  const auto& expected = comparison.expected;
  const auto first = std::ranges::find(expected, Verdict::diverged, &ValueComparison::verdict);
  if (first == expected.end()) return {};
  std::string text = missed_expectation(comparison, *first);
  const auto more = std::ranges::count(expected, Verdict::diverged, &ValueComparison::verdict) - 1;
  if (more > 0) text += fmt::format("; {} more {} not, either", more, more == 1 ? "is" : "are");
  return text;
}

std::string execution_text(const ComparedExecution& execution) {
  std::string text = is_import(execution) ? "imported tensors" : execution.name;
  if (!execution.device.empty() && !is_import(execution)) text += fmt::format(" ({})", execution.device);
  return execution.model.empty() ? text : text + ": " + execution.model;
}

std::string cause_text(const Cause& cause) {
  std::string location =
      cause.node.empty() ? fmt::format("value '{}'", cause.path) : fmt::format("{} '{}'", cause.op, cause.node);
  if (cause.is_renamed_in_b()) location += fmt::format(" (in B '{}')", cause.node_b);
  return fmt::format("{}, side {}, introduced {:.3g} (inherited {:.3g}): {}", location, name_of(cause.side),
                     cause.introduced, cause.inherited, cause.why);
}

std::string origin_of_divergence(const Comparison& comparison) {
  const FirstDivergence& first = *comparison.first_divergence;
  if (first.node.empty()) return "not made by a node";
  const ValueComparison* value = find_value(comparison, first.path);
  const std::string_view relation = value != nullptr && value->node_reads_it ? "read" : "made";
  return fmt::format("{} by {} '{}'", relation, printable(first.op), printable(first.node));
}

std::string reason_of(const Comparison& comparison) {
  if (!comparison.reason.empty() || first_diverged(comparison) != nullptr) return comparison.reason;
  return missed_expectation(comparison);
}

std::string comparison_to_text(const Comparison& comparison, const TextReportOptions& options) {
  const Colors& colors = options.color ? kColors : kPlain;
  std::string text = verdict_line(comparison, colors) + execution_lines(comparison) +
                     divergence_lines(comparison, colors) + cause_lines(comparison);
  text += expected_lines(comparison, colors);
  const std::string table = options.top == 0 ? "" : value_table(comparison, options, colors);
  if (!table.empty()) text += "\n" + table;
  return text + not_compared_lines(comparison) + damage_lines(comparison, colors);
}

std::vector<std::string> damage_sentences(const Comparison& comparison) {
  constexpr size_t kListed = 10;
  std::vector<std::string> sentences;
  for (const DamagedValue& damage : comparison.damages) {
    if (sentences.size() == kListed) {
      sentences.push_back(fmt::format("and {} more damaged values", comparison.damages.size() - kListed));
      break;
    }
    const bool is_known = damage.side != Side::unknown;
    sentences.push_back(
        fmt::format("damaged{}: {}", is_known ? fmt::format(" in {}", name_of(damage.side)) : "", damage.message));
  }
  return sentences;
}

std::string comparison_to_csv(const Comparison& comparison) {
  std::string text;
  for (const CsvColumn& column : kCsvColumns) text += (text.empty() ? "" : ",") + std::string(column.name);
  text += "\n";
  for (const ValueComparison& value : comparison.values) text += csv_row(value);
  return text;
}

}  // namespace parallax
