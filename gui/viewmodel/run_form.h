// SPDX-License-Identifier: Apache-2.0
// RunForm: what the dialog of a run holds, as it was typed.
#pragma once

#include <string>

#include "inspector/base/result.h"
#include "inspector/workbench/run.h"

namespace parallax {

struct RunForm {
  std::string model;
  std::string against;
  std::string executor_a = "reference", executor_b = "cpu";
  std::string inputs;  // a test_data_set_N folder; empty: generated
  bool observe_all = false;
  bool keep_values = true;  // all elements; else the dumps, where they are kept, hold statistics alone
  bool falls_back = false;  // to the reference, for unsupported operators
  // As the options of `parallax run` have them; empty: the option's default. Those that are repeated there are words
  // with blanks between them, "batch=2 sequence=16"; quotes keep a blank in a name.
  std::string seed, dims, shapes, ranges, only, rtol, atol;
  std::string dumps;  // a folder for the dumps; empty: they go with the program
};

// Errors: usage, naming the option.
Result<RunRequest> request_of(const RunForm& form);

// The options of `parallax run` that stand for `seed` to `dumps`, each with a space before it.
std::string more_options(const RunForm& form);

}  // namespace parallax
