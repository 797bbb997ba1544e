// SPDX-License-Identifier: Apache-2.0
// Files that Python functions write: admitted as the program admits its own, and whole when they are there.
#pragma once

#include <string>
#include <vector>

#include <nanobind/nanobind.h>

#include "inspector/base/input_files.h"
#include "inspector/base/result.h"

namespace parallax::python {

void note_inputs(const std::vector<std::string>& inputs);

// The scope of a function that writes: `force` as --force, and the files that are read; "" and what is no file is left
// out.
class OutputScope {
 public:
  explicit OutputScope(bool force, const std::vector<std::string>& inputs = {}) : scope_(force) { note_inputs(inputs); }

 private:
  input_files::Scope scope_;
};

// A finished file takes the name `path`, in place of what had it, whose permissions it keeps. Errors: usage
// (admit_output), io.
Status move_output(const std::string& source, const std::string& path);

void bind_outputs(nanobind::module_& module);

}  // namespace parallax::python
