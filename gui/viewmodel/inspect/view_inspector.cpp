// SPDX-License-Identifier: Apache-2.0
// Writes the inspector's sections.
#include "gui/viewmodel/inspect/view_inspector.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gui/viewmodel/inspect/view_properties.h"
#include "inspector/render/compact_numbers.h"
#include "inspector/render/report_text.h"

namespace parallax {
namespace {

using Kind = InspectorLine::Kind;

std::string number_text(double number) { return short_number(number, 6); }

}  // namespace

std::string shell_word(const std::string& text) {
  const bool is_plain = !text.empty() && std::ranges::all_of(text, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_./-+=:,%").find(c) != std::string_view::npos;
  });
  if (is_plain) return text;
  std::string quoted = "'";
  for (char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

namespace {

void add_verdict(const Document& document, const ValueComparison& value, InspectorView& view) {
  InspectorSection section{"Verdict", {}};
  const bool bad = value.verdict == Verdict::diverged;
  const bool was_compared = value.verdict != Verdict::not_compared;
  section.lines.push_back({"verdict", std::string(words_of(value.verdict)), "",
                           bad                              ? Kind::bad
                           : value.verdict == Verdict::pass ? Kind::good
                                                            : Kind::text,
                           ""});
  if (!value.reason.empty()) section.lines.push_back({"why", reason_text(value), "", Kind::text, ""});
  if (was_compared) {
    section.lines.push_back(
        {"severity", short_number(value.severity, 4) + " x limit", "", bad ? Kind::bad : Kind::text, ""});
    section.lines.push_back(
        {"limit", fmt::format("rtol {}, atol {}", short_number(value.limit.rtol), short_number(value.limit.atol)), "",
         Kind::text, ""});
    constexpr std::array<std::string_view, 3> kFrom = {"table of rounding bounds", "measured noise", "user"};
    section.lines.push_back(
        {"limit from", std::string(kFrom[static_cast<size_t>(value.limit.from)]), "", Kind::text, ""});
  }
  if (value.noise_rel_l2.has_value())
    section.lines.push_back({"noise", "rel L2 " + short_number(*value.noise_rel_l2), "", Kind::text, ""});
  if (!value.b.empty() && value.b != value.a)
    section.lines.push_back(
        {"matched", fmt::format("{} by {}", value.b, name_of(value.matched_by)), "", Kind::text, ""});
  for (const Cause& cause : document.comparison->causes) {
    // Dumps without a graph name no node: then the cause is of the value alone.
    const bool is_of_it = cause.node.empty() ? cause.path == value.path : cause.node == value.node;
    if (!is_of_it || cause.why.empty()) continue;
    section.lines.push_back({fmt::format("cause {}", cause.rank), cause.why, "", Kind::bad, ""});
  }
  view.sections.push_back(std::move(section));
}

std::string element_type_of(const DumpReader* dump, int32_t entry) {
  return dump == nullptr || entry < 0 ? "" : dtype_text(dump->entries()[static_cast<size_t>(entry)].type);
}

void add_metrics(const Document& document, const ValueRow& row, const ValueComparison& value, InspectorView& view) {
  if (!value.metrics.has_value()) return;
  const std::string type_a = element_type_of(document.a.get(), row.entry_a),
                    type_b = element_type_of(document.b.get(), row.entry_b);
  const Metrics& m = *value.metrics;
  InspectorSection section{"Difference", {}};
  if (are_texts(m)) {  // that they differ, and where, is all there is
    section.lines.push_back({"differ at", fmt::format("[{}]", fmt::join(m.worst_index, ",")), "", Kind::text, ""});
    section.lines.push_back({"mismatches", fmt::format("{} of {}", m.mismatches, m.count), "", Kind::text, ""});
    view.sections.push_back(std::move(section));
    return;
  }
  const auto add = [&](std::string key, std::string text) {
    section.lines.push_back({std::move(key), std::move(text), "", Kind::text, ""});
  };
  if (const std::string non_finite = non_finite_text(m); !non_finite.empty())
    section.lines.push_back({"not finite", non_finite, "", Kind::bad, ""});
  add("max |a-b|", number_text(m.max_abs));
  add("max rel", number_text(m.max_rel));
  add("mean |a-b|", number_text(shown_average(m, m.mean_abs)));
  add("RMS", number_text(shown_average(m, m.rmse)));
  add("rel L2", number_text(shown_average(m, m.rel_l2)));
  add("cosine", short_number(shown_average(m, m.cosine), 9));
  add("SNR", number_text(shown_average(m, m.snr_db)) + " dB");
  // Floats of two widths were compared as doubles.
  const bool is_widened = !type_a.empty() && !type_b.empty() && type_a != type_b;
  add("max ULP", number_text(m.max_ulp) + (is_widened ? " (of the narrower type)" : ""));
  add("mismatches", fmt::format("{} of {}", m.mismatches, m.count));
  if (!m.worst_index.empty()) {
    add("worst at", fmt::format("[{}]", fmt::join(m.worst_index, ",")));
    const WorstElements worst = worst_elements(m);
    const bool is_exact = m.worst_integers.has_value();
    add("  a, b", is_exact ? worst.a + ", " + worst.b : short_number(m.worst_a, 9) + ", " + short_number(m.worst_b, 9));
  }
  view.sections.push_back(std::move(section));
}

// The output compared with what a test_data_set expects, for each compared side.
void add_expected_output(const Document& document, int32_t row, InspectorView& view) {
  InspectorSection section{"Expected output", {}};
  for (const ValueComparison& value : document.comparison->expected) {
    if (document.row_of_expected(value) != row) continue;
    const bool is_bad = are_mismatched(value);
    section.lines.push_back({fmt::format("side {}", name_of(value.held)), std::string(words_of(value.verdict)), "",
                             is_bad                           ? Kind::bad
                             : value.verdict == Verdict::pass ? Kind::good
                                                              : Kind::text,
                             ""});
    if (is_bad) section.lines.push_back({"", missed_expectation(*document.comparison, value), "", Kind::bad, ""});
  }
  if (!section.lines.empty()) view.sections.push_back(std::move(section));
}

void add_statistics(const Document& document, const ValueRow& row, const WeightFigures& weight, InspectorView& view) {
  const TensorStatistics* a = weight.statistics.has_value() ? &*weight.statistics : document.statistics_a(row);
  const TensorStatistics* b = document.statistics_b(row);
  if (a == nullptr && b == nullptr) return;
  InspectorSection section{"Statistics", {}};
  if (document.b != nullptr) section.lines.push_back({"", "A", "B", Kind::header, ""});
  const auto add = [&](const char* key, auto text) {
    section.lines.push_back({key, a == nullptr ? "-" : text(*a), b == nullptr ? "" : text(*b), Kind::text, ""});
  };
  add("count", [](const TensorStatistics& s) { return std::to_string(s.count); });
  const auto add_figure = [&](const char* key, double TensorStatistics::*figure) {
    add(key, [figure](const TensorStatistics& s) { return s.count == 0 ? "-" : number_text(s.*figure); });
  };
  add_figure("min", &TensorStatistics::min);
  add_figure("max", &TensorStatistics::max);
  add_figure("mean", &TensorStatistics::mean);
  add_figure("std", &TensorStatistics::std);
  add("zeros", [](const TensorStatistics& s) { return std::to_string(s.zeros); });
  add("NaN", [](const TensorStatistics& s) { return std::to_string(s.nan); });
  add("+Inf", [](const TensorStatistics& s) { return std::to_string(s.positive_inf); });
  add("-Inf", [](const TensorStatistics& s) { return std::to_string(s.negative_inf); });
  view.sections.push_back(std::move(section));
}

std::string command_for(const Document& document, const ValueRow& row) {
  if (document.run.has_value()) return command_of(*document.run);
  if (document.a != nullptr && document.b != nullptr) {
    return fmt::format("parallax diff {} {}", shell_word(document.a->path()), shell_word(document.b->path()));
  }
  if (document.a != nullptr) {
    return fmt::format("parallax tensor {} {}", shell_word(document.a->path()), shell_word(row.path));
  }
  if (row.weight >= 0) {
    const std::string& path = document.weights->entries()[static_cast<size_t>(row.weight)].path;
    return fmt::format("parallax tensor {} {}", shell_word(document.weights->path()), shell_word(path));
  }
  if (document.comparison != nullptr && document.model != nullptr && document.comparison->executions.size() == 2) {
    return fmt::format("parallax run {} --with {},{}", shell_word(document.model->path),
                       document.comparison->executions[0].name, document.comparison->executions[1].name);
  }
  return document.model == nullptr ? "" : fmt::format("parallax show {}", shell_word(document.model->path));
}

}  // namespace

std::string key_text(const InspectorLine& line) { return line.name.empty() ? line.key : line.key + " " + line.name; }

InspectorView inspect(const Document& document, int32_t item, int32_t row, const WeightFigures& weight) {
  InspectorView view;
  if (document.items != nullptr && (item == 0 || (item < 0 && row < 0))) {
    add_model(document, view);
  } else if (item > 0 && document.items != nullptr) {
    add_item(*document.items, item, view);
  }
  if (row < 0) return view;
  const ValueRow& value = document.rows[static_cast<size_t>(row)];
  if (view.title.empty()) {
    view.title = value.node.empty() ? value.path : value.node;
    view.subtitle = value.op;
  }
  InspectorSection identity{"Value", {}};
  identity.lines.push_back({"path", value.path, "", Kind::text, ""});
  identity.lines.push_back({"type", value.dtype + (value.shape.empty() ? "" : " " + value.shape), "", Kind::text, ""});
  if (!weight.problem.empty()) identity.lines.push_back({"elements", weight.problem, "", Kind::bad, ""});
  view.sections.insert(view.sections.begin(), std::move(identity));
  const ValueComparison* compared = document.compared(row);
  if (compared != nullptr) {
    const size_t before = view.sections.size();
    add_verdict(document, *compared, view);
    add_expected_output(document, row, view);
    add_metrics(document, value, *compared, view);
    add_statistics(document, value, weight, view);
    // The verdict is what people look for first.
    std::rotate(view.sections.begin() + 1, view.sections.begin() + static_cast<std::ptrdiff_t>(before),
                view.sections.end());
  } else {
    const size_t before = view.sections.size();
    add_statistics(document, value, weight, view);
    // A weight's figures stand next to its name, before the node that reads it.
    if (value.weight >= 0)
      std::rotate(view.sections.begin() + 1, view.sections.begin() + static_cast<std::ptrdiff_t>(before),
                  view.sections.end());
  }
  view.command = command_for(document, value);
  return view;
}

}  // namespace parallax
