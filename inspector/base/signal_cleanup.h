// SPDX-License-Identifier: Apache-2.0
// Cleanup when a signal ends the process: temporary files are removed, files written for the user are named.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "inspector/base/result.h"

namespace parallax {

// A file or folder that goes with the object, and with all that it holds, also where a signal ends the process.
class TemporaryPath {
 public:
  // A path for a file that is about to be created.
  explicit TemporaryPath(std::string path);
  // A folder that only this user can enter, of that name with an unpredictable suffix: for temporary files, or next
  // to a result where the name is an absolute path. Errors: io.
  static Result<std::unique_ptr<TemporaryPath>> make_folder(std::string_view name);
  ~TemporaryPath();
  TemporaryPath(const TemporaryPath&) = delete;
  TemporaryPath& operator=(const TemporaryPath&) = delete;

  const std::string& path() const { return path_; }
  std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }
  void keep();  // it has become a result, and stays
  // Gives it another name, in place of what had that; it is kept there, or else goes from there. False where the system
  // does not (errno).
  bool move_to(const std::string& path, bool is_kept);

 private:
  struct Held {};  // the caller has locked the lists
  TemporaryPath(std::string path, Held lists);
  void forget(Held lists);

  std::string path_;
  bool is_kept_ = false;
};

// A group of processes that ends with the object: with this one, where a signal ends it.
class OwnedProcessGroup {
 public:
  explicit OwnedProcessGroup(int leader);
  ~OwnedProcessGroup();
  OwnedProcessGroup(const OwnedProcessGroup&) = delete;
  OwnedProcessGroup& operator=(const OwnedProcessGroup&) = delete;

 private:
  int leader_;
};

// A file that is written for the user, before it is there and once more when it is whole. One that is not can be read
// as far as it goes.
void note_output(const std::string& path, bool is_whole);
void forget_output(const std::string& path);  // it was not to be made

// Does not return where a signal is being answered, as the others that take note do not: for folders, which would be
// made anew after they were removed.
void stop_where_ending();

struct SignalCleanup {
  std::vector<std::string> whole, unfinished;  // files that are there, in the order in which they were begun
  std::string lost_file = {};                  // the mapped file whose bytes could not be read, at SIGBUS
};
// "kept 'a.csv' and, unfinished, 'b.plx'"; "nothing was written" where there are none.
std::string to_string(const SignalCleanup& left);
// The sentence for a mapped file that another process cut, or whose disk failed.
Error lost_file_error(const SignalCleanup& left);

// From now on SIGINT, SIGTERM and SIGHUP, unless they are ignored, remove what is temporary, call `last_words` (may
// be empty) with what stays, and end the process as they would have. SIGBUS in a mapped file ends it in the same way,
// with the exit code of an io error; elsewhere it does what it did before. To be called once; `last_words` must not use
// the objects above.
void clean_up_at_signals(std::function<void(int signal, const SignalCleanup& left)> last_words);

// From now on an exception that no one catches, because memory or threads ran out, removes what is temporary, calls
// `report` with the error and ends the process with its exit code; any other exception does what it did before.
void clean_up_at_exhaustion(void (*report)(const Error& error));

}  // namespace parallax
