// SPDX-License-Identifier: Apache-2.0
// Selection, lists, and what follows from them.
#include "gui/viewmodel/viewer.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "gui/viewmodel/file_chooser.h"
#include "inspector/exec/path_parts.h"

namespace parallax {

Viewer::Viewer(ExecutorFactory make_executor) : make_executor_(std::move(make_executor)) {}

Viewer::~Viewer() {
  job_.reset();  // it may be writing to run_folders_
}

// ---- files and jobs ----

void Viewer::open(std::vector<std::string> files) {
  files = with_pair(std::move(files));
  files_ = files;
  was_touched_ = false;
  old_messages_ = messages.size();
  job_ = DocumentJob::open(take_runs(std::move(files)), {}, make_executor_, wake);
}

void Viewer::close() {
  job_.reset();
  wants_times_ = false;
  document_.reset();
  files_.clear();
  runs_.clear();
  item_ = row_ = item_b_ = difference_ = -1;
  is_b_active_ = false;
  history_.clear();
  bookmarks_.clear();
  alerts_.clear();
  explained_.clear();
  table_rows_.clear();
  messages.clear();
  note.clear();
  const bool shows_shapes = graph.shows_shapes;
  graph = GraphView();
  graph.shows_shapes = shows_shapes;
  graph_b = GraphView();
  const int64_t next = std::max(tensor_.version, tensor_.range_version) + 1;  // of what windows keep
  tensor_ = TensorPane();
  tensor_.version = tensor_.range_version = next;
  was_cut_short_ = shows_run_ = false;
  old_messages_ = 0;
  set_search("");
}

void Viewer::reload() {
  if (files_.empty()) return;
  open(files_);
  was_touched_ = true;
}

Status Viewer::run(const RunForm& form) {
  RunRequest request = PX_TRY(request_of(form));
  if (form.keep_values && form.dumps.empty()) {
    auto folder = PX_TRY(TemporaryPath::make_folder("parallax-gui"));
    if (run_folders_.size() == 2) run_folders_.erase(run_folders_.begin());
    request.dump_directory = run_folders_.emplace_back(std::move(folder))->path();
  }
  was_touched_ = shows_run_ = false;
  old_messages_ = messages.size();
  runs_.clear();
  job_ = DocumentJob::run(std::move(request), more_options(form), make_executor_, wake);
  return {};
}

bool Viewer::is_running() const { return job_ != nullptr && job_->title() == DocumentJob::kRunning; }

void Viewer::cancel_job() {
  wants_times_ = false;
  if (job_ != nullptr) job_->cancel();
}

void Viewer::set_color_by(ColorBy by) {
  graph.set_color_by(by);
  graph_b.set_color_by(by);
  if (by == ColorBy::time && document_ != nullptr && document_->ms_of_item.empty()) measure_times();
}

void Viewer::measure_times() {
  if (document_ == nullptr || !make_executor_ || !graph.has_graph()) return;
  wants_times_ = job_ != nullptr;
  if (wants_times_) return;
  const auto request = request_to_time(*document_, run_form.executor_b);
  if (!request.ok()) return fail(request.error());
  job_ = DocumentJob::time(document_, *request, make_executor_, wake);
}

bool Viewer::poll() {
  if (job_ == nullptr) return false;
  const bool has_ended = !job_->is_running();  // looked at first: what it posts at its end is taken below
  const bool was_opening = job_->title() != DocumentJob::kTiming;
  bool changed = false;
  for (auto& news : job_->take()) {
    changed = true;
    if (news.ok()) {
      if (was_opening && keep_run(*news)) continue;
      shows_run_ = is_running();
      was_cut_short_ = was_cut_short_ && !was_opening;
      show(std::move(news).take());
    } else {
      if (is_running() && shows_run_) was_cut_short_ = document_->comparison != nullptr;
      fail(news.error());
    }
  }
  if (!has_ended) return changed;
  job_.reset();
  if (document_ != nullptr && row_ >= 0 && !tensor_.model.has_value() && !tensor_.texts.has_value())
    load_tensor();  // why not, now that nothing runs
  if (was_opening && surveyed_run_ < 0 && document_ != nullptr && opened && !files_.empty()) opened(files_);
  if (was_opening) survey_next_run();
  if (std::exchange(wants_times_, false)) measure_times();
  return true;
}

void Viewer::wait_idle() {
  while (job_ != nullptr) {
    job_->wait();
    poll();
  }
}

void Viewer::fail(const Error& error) {
  messages.push_back(error.message);
  last_error = error;
}

void Viewer::show(std::shared_ptr<const Document> document) {
  const std::string path = row_ >= 0 && document_ != nullptr ? document_->rows[static_cast<size_t>(row_)].path : "";
  const bool same_graph = document_ != nullptr && document_->items == document->items;
  const bool had_comparison = document_ != nullptr && document_->comparison != nullptr;
  const bool had_causes = had_comparison && !document_->comparison->causes.empty();
  const std::shared_ptr<const Document> before = std::exchange(document_, std::move(document));
  if (const size_t old = std::min(std::exchange(old_messages_, 0), messages.size()); old > 0) {
    messages.erase(messages.begin(), messages.begin() + static_cast<std::ptrdiff_t>(old));
    last_error.reset();
  }
  if (document_->files.size() == 1 && (document_->a == nullptr || document_->run))
    run_form.model = document_->files.front();
  if (before != nullptr && before->models != nullptr && models() == nullptr && !is_running()) run_form.against.clear();
  graph.set_document(document_);
  graph_b.set_document(models() == nullptr ? nullptr : models()->b);
  std::vector<std::string> marked;
  for (int32_t row : bookmarks_) marked.push_back(before->rows[static_cast<size_t>(row)].path);
  set_bookmarks(marked);
  history_.clear();
  history_at_ = 0;
  item_ = same_graph ? item_ : -1;
  row_ = item_b_ = difference_ = -1;
  is_b_active_ = false;
  for (const std::string& remark : document_->remarks) {
    if (std::find(messages.begin(), messages.end(), remark) == messages.end()) messages.push_back(remark);
  }
  // Error colors say nothing of one side alone.
  const bool by_error = colorings()[static_cast<size_t>(graph.color_by())].needs_comparison;
  const bool by_structure = graph.color_by() == ColorBy::structure;
  if (!same_graph && !document_->is_pair() && (by_error || (by_structure && models() == nullptr)))
    graph.set_color_by(ColorBy::op);
  if (document_->is_pair() && (before == nullptr || !before->is_pair()) &&
      (graph.color_by() == ColorBy::op || by_structure)) {
    graph.set_color_by(ColorBy::severity);
    graph_b.set_color_by(ColorBy::severity);
  }
  if (!document_->is_pair() && models() == nullptr && left_tab != LeftTab::marks)
    left_tab = LeftTab::table;  // there are no others
  refresh_lists();
  if (models() != nullptr && !same_graph) show_models();
  if (was_touched_ && select_path(path)) return;
  const bool newly_compared = document_->comparison != nullptr && !had_comparison;
  const bool newly_blamed = document_->comparison != nullptr && !document_->comparison->causes.empty() && !had_causes;
  const bool run_has_ended = document_->a != nullptr && before != nullptr && before->a == nullptr;
  const bool is_other_run = document_->run.has_value() && !same_graph;
  const bool has_news = newly_compared || newly_blamed || run_has_ended || is_other_run;
  if (path.empty() || has_news || !select_path(path)) select_first();
  was_touched_ = false;
}

// The cause that explains most, where its value shows it, else the first divergence, else what is not as expected, else
// the value that comes nearest to its limit. A cause may be in a value that only one side has.
void Viewer::select_first() {
  find_first();
  if (item_ >= 0) graph.focus_on(item_);
  if (item_b_ > 0) graph_b.focus_on(item_b_);
}

void Viewer::find_first() {
  row_ = item_ = -1;
  load_tensor();
  if (document_->comparison == nullptr) return static_cast<void>(select_difference(0));
  if (!alerts_.empty()) left_tab = LeftTab::alerts;
  const Comparison& comparison = *document_->comparison;
  const int32_t cause = comparison.causes.empty() ? -1 : document_->find_row(comparison.causes.front().path);
  if (cause >= 0 && are_mismatched(*document_->compared(cause)) && select_row(cause)) return;
  if (comparison.first_divergence.has_value() && select_path(comparison.first_divergence->path)) return;
  if (!alerts_.empty() && select_row(alerts_.front().row)) return;  // an output that is not as expected
  if (const int32_t worst = worst_row(*document_); worst >= 0) return static_cast<void>(select_row(worst));
  for (const ValueComparison& value : comparison.values) {  // nothing differs
    const bool is_result = value.is_graph_output && value.verdict == Verdict::pass;
    if (is_result && select_path(value.path)) return;
  }
}

// ---- selection ----

void Viewer::remember() {
  if (is_walking_) return;
  const std::array selected{item_, row_, item_b_};
  if (!history_.empty() && history_[history_at_] == selected) return;
  history_.resize(history_.empty() ? 0 : history_at_ + 1);
  history_.push_back(selected);
  history_at_ = history_.size() - 1;
}

bool Viewer::select_row(int32_t row) {
  if (document_ == nullptr || row < 0 || static_cast<size_t>(row) >= document_->rows.size()) return false;
  const bool is_new = row != row_;
  row_ = row;
  was_touched_ = true;
  item_ = document_->rows[static_cast<size_t>(row)].item;
  if (item_ >= 0) {
    graph.reveal(item_);
    graph.center_on(item_);
  }
  follow_in_b();
  if (is_new || !tensor_.model.has_value()) load_tensor();
  remember();
  return true;
}

bool Viewer::select_item(int32_t item) {
  if (!graph.has_graph() || item < 0) return false;
  was_touched_ = true;
  item_ = item;
  const int32_t before = std::exchange(row_, row_to_show(item));
  if (before != row_) load_tensor();
  if (item > 0) graph.center_on(item);
  follow_in_b();
  remember();
  return true;
}

bool Viewer::select_path(const std::string& path) {
  if (document_ == nullptr) return false;
  const int32_t row = document_->find_any_row(path, graph.iteration());
  if (row >= 0) return select_row(row);
  const int32_t item = document_->items == nullptr
                           ? -1
                           : document_->items->find_node(static_scope_of(path), path.substr(name_begin(path)));
  if (item < 0) return false;
  graph.reveal(item);
  return select_item(item);
}

void Viewer::select_element(int64_t element) {
  tensor_.element = element;
  tensor_.wants_worst = false;
  if (!tensor_.model.has_value() || element < 0) return;
  const std::string before = tensor_.model->slice_text();
  tensor_.model->show(element);
  if (tensor_.model->slice_text() != before) refresh_range();
}

int Viewer::alert_at() const {
  for (size_t i = 0; i < alerts_.size(); ++i) {
    if (alerts_[i].row == row_) return static_cast<int>(i);
  }
  return -1;
}

bool Viewer::step_alert(int step) {
  if (walks_differences()) return step_difference(step);
  if (alerts_.empty()) return false;
  if (step > 0) {
    for (const Alert& alert : alerts_) {
      if (alert.row > row_) return select_row(alert.row);
    }
    return false;
  }
  for (auto alert = alerts_.rbegin(); alert != alerts_.rend(); ++alert) {
    if (alert->row < row_) return select_row(alert->row);
  }
  return false;
}

bool Viewer::step_row(int step) { return select_row(row_ < 0 ? 0 : row_ + step); }

// Moves to the same value in the next iteration (or step).
bool Viewer::step_iteration(int step) {
  if (row_ < 0) return false;
  const auto& family =
      document_->rows_of_family[static_cast<size_t>(document_->rows[static_cast<size_t>(row_)].family)];
  const auto at = std::find(family.begin(), family.end(), row_) - family.begin() + step;
  if (at < 0 || at >= static_cast<std::ptrdiff_t>(family.size())) return false;
  const TensorPane before = tensor_;
  if (!select_row(family[static_cast<size_t>(at)])) return false;
  if (graph.iteration() >= 0) {
    for (GraphView* shown : {&graph, &graph_b})
      shown->set_iteration(document_->rows[static_cast<size_t>(row_)].iteration);
  }
  // The selected value stays selected.
  if (before.model.has_value() && tensor_.model.has_value() && before.model->shape() == tensor_.model->shape()) {
    select_element(before.element);
  }
  return true;
}

void Viewer::set_iteration(int64_t iteration) {
  graph.set_iteration(iteration);
  graph_b.set_iteration(iteration);
  if (iteration < 0 || row_ < 0) return;
  for (int32_t row :
       document_->rows_of_family[static_cast<size_t>(document_->rows[static_cast<size_t>(row_)].family)]) {
    if (document_->rows[static_cast<size_t>(row)].iteration != iteration) continue;
    select_row(row);
    return;
  }
}

bool Viewer::go(int step) {
  if (history_.empty()) return false;
  const size_t to = history_at_ + static_cast<size_t>(step);
  if (to >= history_.size()) return false;
  history_at_ = to;
  is_walking_ = true;
  const auto [item, row, item_b] = history_[to];
  const bool moved = row >= 0 && (item < 0 || document_->rows[static_cast<size_t>(row)].item == item) ? select_row(row)
                     : item < 0 ? select_item_b(item_b)
                                : select_item(item);
  is_walking_ = false;
  return moved;
}

void Viewer::set_bookmarks(const std::vector<std::string>& paths) {
  bookmarks_.clear();
  for (const std::string& path : paths) {
    if (const int32_t row = document_->find_row(path); row >= 0) bookmarks_.push_back(row);
  }
}

void Viewer::toggle_bookmark() {
  if (row_ < 0) return;
  const auto found = std::find(bookmarks_.begin(), bookmarks_.end(), row_);
  if (found != bookmarks_.end()) {
    bookmarks_.erase(found);
  } else {
    bookmarks_.push_back(row_);
  }
}

const InspectorView& Viewer::inspector() const {
  const auto selected = std::tuple(document_.get(), tensor_loads_, item_, row_, item_b_);
  if (document_ == nullptr) {
    inspector_ = {};
  } else if (selected != inspected_) {
    inspector_ = models() == nullptr ? inspect(*document_, item_, row_, tensor_.weight)
                                     : inspect_models(*document_, item_, item_b_, row_, tensor_.weight);
  }
  inspected_ = selected;
  return inspector_;
}

}  // namespace parallax
