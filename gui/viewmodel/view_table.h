// SPDX-License-Identifier: Apache-2.0
// The node table and the list of alerts: which rows are listed, in which order.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gui/viewmodel/view_document.h"
#include "gui/viewmodel/view_search.h"

namespace parallax {

enum class TableColumn : uint8_t {
  order,
  op,
  name,
  severity,
  verdict,
  max_abs,
  max_rel,
  max_ulp,
  cosine,
  shape,
  dtype
};

struct TableColumnInfo {
  TableColumn column;
  std::string_view title;
  std::string_view meaning;
  bool needs_comparison;
};
std::span<const TableColumnInfo> table_columns();

// The text of a cell; "" where there is nothing to say.
std::string table_cell(const Document& document, int32_t row, TableColumn column);

// A row as text, its cells with tabs between them, as spreadsheets take it; and a line of the columns' titles.
std::string table_row_text(const Document& document, int32_t row);
std::string table_title_text(const Document& document);

struct TableOrder {
  TableColumn column = TableColumn::order;
  bool descending = false;
};
// Rows of `shown` sorted by a column, execution order where equal; what has no value in the column comes last.
std::vector<int32_t> sorted_rows(const Document& document, std::vector<int32_t> shown, TableOrder order);

// A value that deserves attention, in execution order.
struct Alert {
  enum class Kind : uint8_t { first_divergence, special_values, shape_or_dtype, diverged, missing, expected };
  Kind kind = Kind::diverged;
  int32_t row = 0;
  std::string text;             // one line
  std::string severity_text{};  // "3.2x"; empty where there is none
};
// Divergences, values that are not finite on one side only, values that could not be compared though both sides should
// have them, and outputs that are not as a test_data_set expects them. `missing` lists what fused, folded and absent
// values were left out, too.
std::vector<Alert> make_alerts(const Document& document, bool with_missing = false);

// The row of the largest error / limit, a divergence before what is explained; -1 where no value differs.
int32_t worst_row(const Document& document);
// The rows of values that pass beyond their limits, because their difference is explained, in execution order.
std::vector<int32_t> explained_rows(const Document& document);
// "33 explained: 30 near tie, 3 accumulated rounding"; "" where there are none.
std::string explained_text(const Comparison& comparison);

// Why the verdict is what it is, beyond the counts of values: what makes it inconclusive, or the first output that is
// not as a test_data_set expects it. Empty otherwise.
std::string explain_of(const Comparison& comparison);

}  // namespace parallax
