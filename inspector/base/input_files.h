// SPDX-License-Identifier: Apache-2.0
// The files and folders that are read now, by what they are and not by how they are spelled: no output may destroy one.
#pragma once

#include <string>

#include "inspector/base/result.h"

namespace parallax {

namespace input_files {

// A command: what is read while it is alive stays an input until its end. Outside of one, what is mapped is an input as
// long as it is mapped. `may_replace` (--force): files that Parallax did not write may be replaced by the thread that
// made the scope and by those that borrow it; without a scope every file may be replaced.
class Scope {
 public:
  explicit Scope(bool may_replace = false);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  struct State;

 private:
  State* state_;
  State* outer_;  // of the same thread
};

// The calling thread's innermost scope; null where it has none.
Scope::State* current_scope();

// The scope of another thread, for one that works for it and ends before the scope does.
class BorrowedScope {
 public:
  explicit BorrowedScope(Scope::State* scope);
  ~BorrowedScope();
  BorrowedScope(const BorrowedScope&) = delete;
  BorrowedScope& operator=(const BorrowedScope&) = delete;

 private:
  Scope::State* own_;
};

// A file or folder that is read; nothing where there is none. What this process wrote within the scope is no input.
void note(const std::string& path);
// It is read to be continued or written anew (a journal), and no input.
void release(const std::string& path);
// Notes a file that is mapped: an input until it is no longer mapped, and until the end of the scopes.
void note_mapping(int descriptor, const std::string& path);
void forget_mapping(int descriptor);
// A file that this process has written: read back, it is no input.
void note_written(int descriptor);

}  // namespace input_files

// Checks that a file may be written: it is no input, also by a link or another spelling, is inside no folder that is an
// input, and replaces nothing but what Parallax wrote, an empty file, or what the scope allows. Errors: usage, naming
// both.
Status admit_output(const std::string& path);
// Checks that a folder may take the files of a result: it is no input, is inside none, and holds none at any depth.
Status admit_output_folder(const std::string& path);
// Writes down that a file, whole by now, is Parallax's own as it stands, where the file system takes such a mark.
void mark_as_written(int descriptor);

}  // namespace parallax
