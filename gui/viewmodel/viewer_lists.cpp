// SPDX-License-Identifier: Apache-2.0
// The lists of the viewer and the search that fills them.
#include <algorithm>
#include <utility>

#include "gui/viewmodel/viewer.h"

namespace parallax {

void Viewer::refresh_lists() {
  alerts_ = make_alerts(*document_);
  explained_ = explained_rows(*document_);
  const bool is_empty =
      (left_tab == LeftTab::alerts && alerts_.empty()) || (left_tab == LeftTab::explained && explained_.empty()) ||
      (left_tab == LeftTab::runs && runs_.empty()) || (left_tab == LeftTab::differences && models() == nullptr);
  if (is_empty && document_->comparison != nullptr) left_tab = explained_.empty() ? LeftTab::table : LeftTab::explained;
  set_search(search_);
}

void Viewer::set_table_order(TableOrder order) {
  table_order_ = order;
  if (document_ != nullptr) table_rows_ = sorted_rows(*document_, std::move(table_rows_), order);
}

bool Viewer::step_hit(int step) {
  if (search_.empty() || table_rows_.empty()) return false;
  const auto count = static_cast<std::ptrdiff_t>(table_rows_.size());
  const auto at = std::find(table_rows_.begin(), table_rows_.end(), row_) - table_rows_.begin();
  const std::ptrdiff_t next = at == count ? (step > 0 ? 0 : count - 1) : (at + step + count) % count;
  return select_row(table_rows_[static_cast<size_t>(next)]);
}

void Viewer::set_search(std::string text) {
  search_ = std::move(text);
  search_problem_.clear();
  if (document_ == nullptr) return;
  auto query = SearchQuery::parse(search_);
  if (!query.ok()) {
    search_problem_ = query.error().message;
    return;
  }
  std::vector<int32_t> rows = find_rows(*document_, *query);
  hits_.assign(graph.has_graph() ? graph.items().items().size() : 0, false);
  hits_b_.assign(graph_b.has_graph() ? graph_b.items().items().size() : 0, false);
  const auto mark = [](const GraphItems& items, int32_t item, std::vector<bool>& hits) {
    for (int32_t at = item; at >= 0; at = items.item(at).parent) hits[static_cast<size_t>(at)] = true;
  };
  for (int32_t index : rows) {
    const ValueRow& row = document_->rows[static_cast<size_t>(index)];
    if (row.item >= 0) mark(graph.items(), row.item, hits_);
    if (row.row_b >= 0) mark(graph_b.items(), models()->b->rows[static_cast<size_t>(row.row_b)].item, hits_b_);
  }
  table_rows_ = sorted_rows(*document_, std::move(rows), table_order_);
}

bool Viewer::is_hit(int32_t item, bool in_b) const {
  const std::vector<bool>& hits = in_b ? hits_b_ : hits_;
  return !search_.empty() && static_cast<size_t>(item) < hits.size() && hits[static_cast<size_t>(item)];
}

}  // namespace parallax
