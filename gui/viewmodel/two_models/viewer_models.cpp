// SPDX-License-Identifier: Apache-2.0
// Two models next to each other: what is selected and opened in one of them is in the other, too.
#include <algorithm>

#include "gui/viewmodel/viewer.h"
#include "inspector/exec/path_parts.h"

namespace parallax {

namespace {

// Brings the counterpart of a neighbor into sight in the other graph, where one graph alone has the item.
void show_neighborhood(GraphView& graph, int32_t item, const std::vector<int32_t>& counterparts, GraphView& other) {
  std::vector<int32_t> neighbors = graph.producers_of(item);
  for (const int32_t reader : graph.readers_of(item)) neighbors.push_back(reader);
  for (const int32_t neighbor : neighbors) {
    const int32_t counterpart = counterparts[static_cast<size_t>(neighbor)];
    if (counterpart <= 0) continue;
    other.reveal(counterpart);
    return other.center_on(counterpart);
  }
}

}  // namespace

void Viewer::show_models() {
  const ColorBy by = document_->is_pair() ? ColorBy::severity : ColorBy::structure;
  graph.set_color_by(by);
  graph_b.set_color_by(by);
  if (left_tab != LeftTab::runs) left_tab = document_->is_pair() ? LeftTab::alerts : LeftTab::differences;
  if (document_->weights != nullptr) {  // the models' files are known
    run_form.model = models()->name_a;
    run_form.against = models()->name_b;
  }
  for (size_t i = 1; i < models()->b_of_a.size(); ++i) {
    const int32_t other = models()->b_of_a[i];
    if (other >= 0 && graph.is_open(static_cast<int32_t>(i)) && !graph_b.is_open(other)) graph_b.set_open(other, true);
  }
  graph_b.fit();
}

void Viewer::follow_in_b() {
  difference_ = -1;
  is_b_active_ = false;
  item_b_ = -1;
  if (models() == nullptr) return;
  if (item_ >= 0) item_b_ = models()->b_of_a[static_cast<size_t>(item_)];
  const int32_t row_b = row_ < 0 ? -1 : document_->rows[static_cast<size_t>(row_)].row_b;
  if (item_b_ < 0 && row_b >= 0) {
    item_b_ = models()->b->rows[static_cast<size_t>(row_b)].item;
    is_b_active_ = item_ < 0;
    if (item_ < 0 && item_b_ >= 0) item_ = models()->a_of_b[static_cast<size_t>(item_b_)];
  }
  if (item_b_ < 0 && item_ > 0) show_neighborhood(graph, item_, models()->b_of_a, graph_b);
  if (item_b_ <= 0) return;
  graph_b.reveal(item_b_);
  graph_b.center_on(item_b_);
}

bool Viewer::select_item_b(int32_t item) {
  if (models() == nullptr || item < 0) return false;
  const int32_t other = models()->a_of_b[static_cast<size_t>(item)];
  if (other >= 0) {
    graph.reveal(other);
    select_item(other);
    is_b_active_ = true;
    return true;
  }
  was_touched_ = true;
  item_ = difference_ = -1;
  item_b_ = item;
  is_b_active_ = true;
  const int32_t shown = graph_b.summary(item).worst_row;
  const auto own =
      std::ranges::find_if(document_->rows, [&](const ValueRow& row) { return row.row_b >= 0 && row.row_b == shown; });
  row_ = own == document_->rows.end() ? -1 : static_cast<int32_t>(own - document_->rows.begin());
  load_tensor();
  graph_b.center_on(item);
  show_neighborhood(graph_b, item, models()->a_of_b, graph);
  remember();
  return true;
}

bool Viewer::select_path_in_b(const std::string& path) {
  if (models() == nullptr) return false;
  const Document& b = *models()->b;
  const int32_t in_b = b.find_any_row(path);
  const auto row = std::ranges::find_if(document_->rows, [&](const ValueRow& known) { return known.row_b == in_b; });
  if (in_b >= 0 && row != document_->rows.end()) return select_row(static_cast<int32_t>(row - document_->rows.begin()));
  const int32_t item = b.items->find_node(static_scope_of(path), path.substr(name_begin(path)));
  if (item < 0) return false;
  graph_b.reveal(item);
  return select_item_b(item);
}

bool Viewer::select_difference(int index) {
  if (models() == nullptr || index < 0 || static_cast<size_t>(index) >= models()->differences.size()) return false;
  const ModelDifference& difference = models()->differences[static_cast<size_t>(index)];
  if (difference.item_a >= 0) {
    graph.reveal(difference.item_a);
    select_item(difference.item_a);
  } else if (difference.item_b >= 0) {
    graph_b.reveal(difference.item_b);
    select_item_b(difference.item_b);
  }
  difference_ = index;
  return true;
}

int Viewer::difference_at() const {
  if (models() == nullptr || difference_ >= 0) return difference_;
  if (item_ > 0) return models()->difference_of_a[static_cast<size_t>(item_)];
  return item_b_ > 0 ? models()->difference_of_b[static_cast<size_t>(item_b_)] : -1;
}

bool Viewer::walks_differences() const {
  return models() != nullptr && (document_->comparison == nullptr || left_tab == LeftTab::differences);
}

// From what is no difference on: to the next one in A's order of execution.
bool Viewer::step_difference(int step) {
  const auto count = static_cast<int>(models()->differences.size());
  if (const int at = difference_at(); at >= 0) return select_difference(at + step);
  if (item_ <= 0) return select_difference(step > 0 ? 0 : count - 1);
  const auto is_ahead = [&](int index) {
    const int32_t item = models()->differences[static_cast<size_t>(index)].item_a;
    return item < 0 ? step > 0 : (item - item_) * step > 0;
  };
  for (int index = step > 0 ? 0 : count - 1; index >= 0 && index < count; index += step) {
    if (is_ahead(index)) return select_difference(index);
  }
  return false;
}

int32_t Viewer::changed_constant(int32_t item) const {
  const int32_t index = models() == nullptr ? -1 : models()->difference_of_a[static_cast<size_t>(item)];
  if (index < 0) return -1;
  const NodeDifference* node = models()->differences[static_cast<size_t>(index)].node;
  if (node == nullptr) return -1;
  for (const NodeChange& change : node->changes) {
    const int32_t row = change.kind == NodeChange::Kind::constant ? document_->find_row(change.text_a) : -1;
    if (row >= 0) return row;
  }
  return -1;
}

bool Viewer::is_weight_in_b(const ValueRow& row) const {
  return row.row_b >= 0 && models()->b->rows[static_cast<size_t>(row.row_b)].weight >= 0;
}

Result<Value> Viewer::value_in_b(const ValueRow& row) const {
  const Document& b = *models()->b;
  const int32_t weight = b.rows[static_cast<size_t>(row.row_b)].weight;
  return weight < 0 ? captured_value(b.a.get(), b.rows[static_cast<size_t>(row.row_b)].entry_a)
                    : b.weights->load_copy(weight);
}

void Viewer::set_open(GraphView& shown, int32_t item, bool open, bool recursive) {
  shown.set_open(item, open, recursive);
  if (models() == nullptr) return;
  const bool is_b = &shown == &graph_b;
  const int32_t other = (is_b ? models()->a_of_b : models()->b_of_a)[static_cast<size_t>(item)];
  if (other > 0) (is_b ? graph : graph_b).set_open(other, open, recursive);
}

}  // namespace parallax
