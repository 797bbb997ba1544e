// SPDX-License-Identifier: Apache-2.0
// A file that comes into being whole: until it is finished, nothing is seen of it, and what was there before stays.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "inspector/base/result.h"
#include "inspector/base/signal_cleanup.h"

namespace parallax {

class OutputFile {
 public:
  // Opens a file without a name (or, where the file system has none, of an unpredictable name) in the folder of
  // `path`, with the permissions of the file that it will replace, else those of the umask. A symbolic link is
  // followed; what is no regular file (a device, a pipe) is written to as it stands. Errors: usage (admit_output), io.
  static Result<std::unique_ptr<OutputFile>> create(const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  int descriptor() const { return descriptor_; }  // for reading and writing
  Status write(std::string_view contents);
  // Gives the file a name of its own next to the one that it will take, until when it stays under it however the
  // process ends: NAME.unfinished.EXTENSION, with a number where that is taken. For a file that can be read before it
  // is whole. Errors: io.
  Status keep_unfinished();
  const std::string& unfinished_path() const { return unfinished_; }  // empty where it has no such name
  // Gives the file its name, in place of what had it. The descriptor stays open. Errors: io.
  Status publish();
  // Marks it as Parallax's own, closes it and publishes it, or leaves that to the OutputGroup of this thread. Errors:
  // io.
  Status finish();

 private:
  OutputFile(std::string path, std::string target) : path_(std::move(path)), target_(std::move(target)) {}
  Error failed(const char* action) const;
  Status open();
  bool link_as(const std::string& path) const;
  bool move_to_free(const std::string& path);
  Status give_name();
  Status give_temporary_name();

  std::string path_;
  std::string target_;                        // with links followed; empty for what is no regular file
  std::unique_ptr<TemporaryPath> temporary_;  // where the file has a name already
  std::string unfinished_;                    // its name by keep_unfinished()
  int descriptor_ = -1;
  bool is_published_ = false;
};

// The path that writing to `path` leads to: links followed, also one whose target is not there.
std::string followed_links(const std::string& path);

}  // namespace parallax
