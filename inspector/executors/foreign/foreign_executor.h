// SPDX-License-Identifier: Apache-2.0
// Executors that are programs of their own (inspector/exec/FOREIGN.md): by name, and what this machine lacks for them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/exec/executor.h"

namespace parallax::foreign {

// Starts nothing: the program begins with the first session, or where its device or settings are asked for. Errors:
// usage, for a name of no known kind, one that lacks its argument, and where no Python is found.
Result<std::shared_ptr<Executor>> make_foreign_executor(const std::string& name);

// The kinds, as they are typed: "cmd:", "onnxruntime", "torch:", ...
std::vector<std::string> foreign_names();

struct ForeignAvailability {
  std::string name;
  bool available = false;
  std::string detail;  // what runs it, or what is missing
  std::string advice;  // how to get that
};
// Starts the Python once to ask which packages it has.
std::vector<ForeignAvailability> examine_foreign_executors();

}  // namespace parallax::foreign
