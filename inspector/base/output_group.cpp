// SPDX-License-Identifier: Apache-2.0
// Each file waits under a temporary name next to its own; what is still temporary when the group ends is removed.
#include "inspector/base/output_group.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace parallax {
namespace {

namespace fs = std::filesystem;

thread_local OutputGroup* innermost_group = nullptr;

template <class Item>
void append(std::vector<Item>& to, std::vector<Item>& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  from.clear();
}

// The outermost of the folders on the way to `folder`, itself included, that is not there yet; null where all are.
std::unique_ptr<TemporaryPath> outermost_new_folder(const std::string& folder) {
  std::error_code error;
  fs::path first = fs::absolute(folder, error).lexically_normal();
  if (error || fs::exists(first, error)) return nullptr;
  if (!first.has_filename()) first = first.parent_path();
  while (first.has_relative_path() && !fs::exists(first.parent_path(), error)) first = first.parent_path();
  return std::make_unique<TemporaryPath>(first.string());
}

}  // namespace

OutputGroup::OutputGroup() : outer_(std::exchange(innermost_group, this)) {}

OutputGroup::~OutputGroup() { innermost_group = outer_; }

OutputGroup* OutputGroup::current() { return innermost_group; }

void OutputGroup::add(std::unique_ptr<TemporaryPath> file, std::string target, std::string spelled) {
  files_.push_back({std::move(file), std::move(target), std::move(spelled)});
}

Status OutputGroup::name_files() {
  for (File& file : files_) {
    std::error_code error;
    const bool replaces = fs::exists(fs::symlink_status(file.target, error));
    if (!file.path->move_to(file.target, replaces))
      return io_error(fmt::format("cannot create '{}': {}", file.spelled, std::strerror(errno)));
  }
  return {};
}

Status OutputGroup::remove_old() const {
  for (const std::string& path : old_) {
    if (std::ranges::find(files_, path, &File::target) != files_.end()) continue;
    std::error_code error;
    fs::remove(path, error);
    if (error) return io_error(fmt::format("cannot remove '{}' of an earlier result: {}", path, error.message()));
  }
  return {};
}

Status OutputGroup::finish() {
  if (outer_ != nullptr) {
    append(outer_->folders_, folders_);
    append(outer_->files_, files_);
    append(outer_->old_, old_);
    return {};
  }
  PX_TRY(name_files());
  for (const auto& folder : folders_) folder->keep();
  for (const File& file : files_) {
    file.path->keep();
    note_output(file.spelled, true);
  }
  return remove_old();
}

Status make_output_folder(const std::string& folder) {
  OutputGroup* const group = OutputGroup::current();
  if (group != nullptr) {
    if (auto made = outermost_new_folder(folder); made != nullptr) group->add_folder(std::move(made));
  }
  stop_where_ending();
  std::error_code error;
  fs::create_directories(folder, error);
  return error ? Status(io_error(fmt::format("cannot create folder '{}': {}", folder, error.message()))) : Status();
}

}  // namespace parallax
