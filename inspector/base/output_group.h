// SPDX-License-Identifier: Apache-2.0
// Files that come into being together: all of them, or none that was not there before.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/base/signal_cleanup.h"

namespace parallax {

// The files that the current thread finishes (OutputFile) while the object lives, and the folders that it makes by
// make_output_folder, are temporary until finish(). Groups nest: the outermost gives the names.
class OutputGroup {
 public:
  OutputGroup();
  ~OutputGroup();
  OutputGroup(const OutputGroup&) = delete;
  OutputGroup& operator=(const OutputGroup&) = delete;

  static OutputGroup* current();  // the innermost of this thread, or null

  // A file under a temporary name in the folder of `target`, which it will replace; `spelled` is that name as the user
  // gave it.
  void add(std::unique_ptr<TemporaryPath> file, std::string target, std::string spelled);
  void add_folder(std::unique_ptr<TemporaryPath> folder) { folders_.push_back(std::move(folder)); }
  // A file of an earlier result: removed by finish() where no new file takes its name.
  void replace(std::string path) { old_.push_back(std::move(path)); }

  // Gives all files their names, in the order in which they were finished. Errors: io; then the files that replaced
  // none are removed.
  Status finish();

 private:
  struct File {
    std::unique_ptr<TemporaryPath> path;
    std::string target, spelled;
  };
  Status name_files();
  Status remove_old() const;

  OutputGroup* outer_;
  std::vector<std::unique_ptr<TemporaryPath>> folders_;  // before the files: they go after them
  std::vector<File> files_;
  std::vector<std::string> old_;
};

// Makes a folder and those above it. Errors: io.
Status make_output_folder(const std::string& folder);

}  // namespace parallax
