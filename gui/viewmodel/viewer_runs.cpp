// SPDX-License-Identifier: Apache-2.0
// Several runs against one baseline: which is shown, and the others, compared one after another while nothing else
// runs.
#include <algorithm>

#include "gui/viewmodel/viewer.h"
#include "inspector/workbench/open.h"

namespace parallax {
namespace {

template <int kNumber>
bool choose(Viewer& v) {
  return v.choose_run(kNumber - 1);
}

constexpr Command kRunCommands[] = {
    {"go.run_1", "Go", "Other run 1", "Alt+1", choose<1>}, {"go.run_2", "Go", "Other run 2", "Alt+2", choose<2>},
    {"go.run_3", "Go", "Other run 3", "Alt+3", choose<3>}, {"go.run_4", "Go", "Other run 4", "Alt+4", choose<4>},
    {"go.run_5", "Go", "Other run 5", "Alt+5", choose<5>}, {"go.run_6", "Go", "Other run 6", "Alt+6", choose<6>},
    {"go.run_7", "Go", "Other run 7", "Alt+7", choose<7>}, {"go.run_8", "Go", "Other run 8", "Alt+8", choose<8>},
    {"go.run_9", "Go", "Other run 9", "Alt+9", choose<9>}};

}  // namespace

std::vector<Command> with_run_commands(std::span<const Command> commands) {
  std::vector<Command> all(commands.begin(), commands.end());
  all.insert(all.end(), std::begin(kRunCommands), std::end(kRunCommands));
  return all;
}

std::vector<std::string> Viewer::take_runs(std::vector<std::string> files) {
  runs_.clear();
  shown_run_ = 0;
  surveyed_run_ = -1;
  const auto is_model = [](const std::string& file) {
    const auto is_dump = is_dump_file(file);
    return is_dump.ok() && !*is_dump;
  };
  if (files.size() <= 2 || std::ranges::any_of(files, is_model)) return files;
  for (size_t i = 1; i < files.size(); ++i) runs_.push_back({files[i], nullptr, false});
  files.resize(2);
  return files;
}

bool Viewer::keep_run(const std::shared_ptr<const Document>& document) {
  if (runs_.empty()) return false;
  const int at = surveyed_run_ >= 0 ? surveyed_run_ : shown_run_;
  if (document->comparison != nullptr) runs_[static_cast<size_t>(at)].document = document;
  return surveyed_run_ >= 0;
}

void Viewer::survey_next_run() {
  if (runs_.empty() || job_ != nullptr) return;
  runs_[static_cast<size_t>(surveyed_run_ >= 0 ? surveyed_run_ : shown_run_)].is_settled = true;
  surveyed_run_ = -1;
  for (size_t i = 0; i < runs_.size(); ++i) {
    if (runs_[i].is_settled) continue;
    surveyed_run_ = static_cast<int>(i);
    job_ = DocumentJob::open({files_.front(), runs_[i].file}, {}, make_executor_, wake);
    return;
  }
}

bool Viewer::choose_run(int index) {
  if (index < 0 || static_cast<size_t>(index) >= runs_.size()) return false;
  OtherRun& run = runs_[static_cast<size_t>(index)];
  const bool is_at_work = job_ != nullptr && surveyed_run_ == index;
  shown_run_ = index;
  if (is_at_work || run.is_settled) {
    if (is_at_work) surveyed_run_ = -1;  // from now on its news are shown
  } else {
    surveyed_run_ = -1;
    job_ = DocumentJob::open({files_.front(), run.file}, {}, make_executor_, wake);
  }
  if (run.document == nullptr || run.document == document_) return true;
  const std::optional<TensorModel> before = tensor_.model;
  const int64_t element = tensor_.element;
  was_touched_ = row_ >= 0;
  show(run.document);
  // The selected element stays selected, too.
  if (before.has_value() && tensor_.model.has_value() && before->shape() == tensor_.model->shape())
    select_element(element);
  return true;
}

}  // namespace parallax
