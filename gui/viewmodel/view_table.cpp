// SPDX-License-Identifier: Apache-2.0
// Cells, order, alerts.
#include "gui/viewmodel/view_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "inspector/render/compact_numbers.h"
#include "inspector/render/report_text.h"
#include "inspector/render/severity_style.h"

namespace parallax {
namespace {

constexpr std::array<TableColumnInfo, 11> kColumns = {{
    {TableColumn::order, "#", "execution order", false},
    {TableColumn::op, "op", "operator that makes the value", false},
    {TableColumn::name, "value", "value path", false},
    {TableColumn::severity, "sev", "largest difference as a multiple of its limit; 1 is the limit", true},
    {TableColumn::verdict, "verdict", "pass, diverged, mistrusted, or why it was not compared", true},
    {TableColumn::max_abs, "max |d|", "largest absolute difference", true},
    {TableColumn::max_rel, "max rel", "largest relative difference", true},
    {TableColumn::max_ulp, "ULP", "largest difference in units in the last place", true},
    {TableColumn::cosine, "cosine", "cosine similarity of the two values", true},
    {TableColumn::shape, "shape", "dimensions", false},
    {TableColumn::dtype, "dtype", "element type", false},
}};

// The sort key of a numeric column; NaN where there is no number.
double number_of(const Document& document, int32_t row, TableColumn column) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  if (column == TableColumn::order) return row;
  const ValueComparison* value = document.compared(row);
  if (value == nullptr || value->verdict == Verdict::not_compared) return kNone;
  if (column == TableColumn::severity) return value->severity;
  if (!value->metrics.has_value()) return kNone;
  switch (column) {
    case TableColumn::max_abs:
      return value->metrics->max_abs;
    case TableColumn::max_rel:
      return value->metrics->max_rel;
    case TableColumn::max_ulp:
      return value->metrics->max_ulp;
    case TableColumn::cosine:
      return value->metrics->cosine;
    default:
      return kNone;
  }
}

bool is_text(TableColumn column) {
  return column == TableColumn::op || column == TableColumn::name || column == TableColumn::verdict ||
         column == TableColumn::shape || column == TableColumn::dtype;
}

std::string short_text(double value, int digits) { return std::isnan(value) ? "" : short_number(value, digits); }

std::string severity_text(double severity) { return short_number(severity) + (std::isfinite(severity) ? "x" : ""); }

// An expectation that was not met follows its output, after the alerts of the two sides.
void add_expected_alerts(const Document& document, std::vector<Alert>& alerts) {
  for (const ValueComparison& value : document.comparison->expected) {
    const int32_t row = document.row_of_expected(value);
    if (row < 0 || !are_mismatched(value)) continue;
    const bool was_compared = value.verdict == Verdict::diverged;
    alerts.push_back({Alert::Kind::expected, row, missed_expectation(*document.comparison, value),
                      was_compared ? severity_text(value.severity) : ""});
  }
  std::ranges::stable_sort(alerts, {}, &Alert::row);
}

}  // namespace

std::span<const TableColumnInfo> table_columns() { return kColumns; }

std::string table_cell(const Document& document, int32_t row, TableColumn column) {
  const ValueRow& value = document.rows[static_cast<size_t>(row)];
  const ValueComparison* compared = document.compared(row);
  switch (column) {
    case TableColumn::order:
      return std::to_string(row + 1);
    case TableColumn::op:
      return value.op;
    case TableColumn::name:
      return value.is_only_b ? value.path + "  (only in B)" : value.path;
    case TableColumn::verdict:
      if (compared == nullptr) return "";
      return compared->verdict == Verdict::not_compared ? brief_reason(*compared)
                                                        : std::string(words_of(compared->verdict));
    case TableColumn::shape:
      return value.shape;
    case TableColumn::dtype:
      return value.dtype;
    case TableColumn::cosine:
      return short_text(number_of(document, row, column), 6);  // what is apart from 1 comes late
    default:
      return short_text(number_of(document, row, column), 3);
  }
}

std::string table_row_text(const Document& document, int32_t row) {
  std::string text;
  for (const TableColumnInfo& info : table_columns()) {
    if (info.needs_comparison && document.comparison == nullptr) continue;
    text += (text.empty() ? "" : "\t") + table_cell(document, row, info.column);
  }
  return text;
}

std::string table_title_text(const Document& document) {
  std::string text;
  for (const TableColumnInfo& info : table_columns()) {
    if (info.needs_comparison && document.comparison == nullptr) continue;
    text += (text.empty() ? "" : "\t") + std::string(info.title);
  }
  return text;
}

std::vector<int32_t> sorted_rows(const Document& document, std::vector<int32_t> shown, TableOrder order) {
  if (is_text(order.column)) {
    std::vector<std::pair<std::string, int32_t>> keyed;
    for (int32_t row : shown) keyed.emplace_back(table_cell(document, row, order.column), row);
    std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
      if (a.first.empty() != b.first.empty()) return b.first.empty();
      return order.descending ? b.first < a.first : a.first < b.first;
    });
    for (size_t i = 0; i < keyed.size(); ++i) shown[i] = keyed[i].second;
    return shown;
  }
  std::vector<std::pair<double, int32_t>> keyed;
  for (int32_t row : shown) keyed.emplace_back(number_of(document, row, order.column), row);
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    if (std::isnan(a.first) || std::isnan(b.first)) return !std::isnan(a.first) && std::isnan(b.first);
    return order.descending ? b.first < a.first : a.first < b.first;
  });
  for (size_t i = 0; i < keyed.size(); ++i) shown[i] = keyed[i].second;
  return shown;
}

int32_t worst_row(const Document& document) {
  int32_t worst = -1;
  std::pair<double, double> largest{0, 0};
  for (size_t i = 0; i < document.rows.size(); ++i) {
    const ValueComparison* value = document.compared(static_cast<int32_t>(i));
    if (value == nullptr || value->verdict == Verdict::not_compared) continue;
    const std::pair own{judged_severity(*value), value->severity};
    if (!(own > largest)) continue;
    largest = own;
    worst = static_cast<int32_t>(i);
  }
  return worst;
}

std::vector<int32_t> explained_rows(const Document& document) {
  std::vector<int32_t> rows;
  for (size_t i = 0; i < document.rows.size(); ++i) {
    const ValueComparison* value = document.compared(static_cast<int32_t>(i));
    if (value != nullptr && is_explained(*value)) rows.push_back(static_cast<int32_t>(i));
  }
  return rows;
}

std::string explained_text(const Comparison& comparison) {
  std::map<std::string_view, int64_t> reasons;
  int64_t count = 0;
  for (const ValueComparison& value : comparison.values) {
    if (!is_explained(value)) continue;
    ++count;
    ++reasons[value.accepted->reason];
  }
  std::string text;
  for (const auto& [reason, of_reason] : reasons)
    text +=
        (text.empty() ? "" : ", ") + (reasons.size() > 1 ? fmt::format("{} ", of_reason) : "") + std::string(reason);
  return count == 0 ? text : fmt::format("{} explained: {}", count, text);
}

std::string explain_of(const Comparison& comparison) {
  return comparison.reason.empty() ? missed_expectation(comparison) : comparison.reason;
}

std::vector<Alert> make_alerts(const Document& document, bool with_missing) {
  std::vector<Alert> alerts;
  if (document.comparison == nullptr) return alerts;
  bool is_first = true;
  for (size_t i = 0; i < document.rows.size(); ++i) {
    const auto row = static_cast<int32_t>(i);
    const ValueComparison* value = document.compared(row);
    if (value == nullptr) continue;
    const std::string what = value->op.empty() ? value->path : value->op + "  " + value->path;
    if (value->verdict == Verdict::not_compared) {
      const bool conflicts = value->reason.starts_with("shape") || value->reason.starts_with("dtype");
      if (conflicts) alerts.push_back({Alert::Kind::shape_or_dtype, row, fmt::format("{}  {}", value->reason, what)});
      if (!conflicts && with_missing) alerts.push_back({Alert::Kind::missing, row, brief_reason(*value) + "  " + what});
      continue;
    }
    if (value->verdict != Verdict::diverged) continue;
    const bool special = value->metrics.has_value() && (value->metrics->nan_a != value->metrics->nan_b ||
                                                        value->metrics->inf_a != value->metrics->inf_b);
    const Alert::Kind kind = is_first  ? Alert::Kind::first_divergence
                             : special ? Alert::Kind::special_values
                                       : Alert::Kind::diverged;
    is_first = false;
    std::string text = fmt::format("{}x  {}", short_number(value->severity), what);
    if (special) {
      text = fmt::format("NaN {} | {}, inf {} | {}  {}", value->metrics->nan_a, value->metrics->nan_b,
                         value->metrics->inf_a, value->metrics->inf_b, what);
    }
    alerts.push_back({kind, row, std::move(text), severity_text(value->severity)});
  }
  add_expected_alerts(document, alerts);
  return alerts;
}

}  // namespace parallax
