// SPDX-License-Identifier: Apache-2.0
// Executors by name: the only file that knows every concrete executor. Linked by the composition roots alone.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/exec/executor.h"

namespace parallax {

// "reference", "reference:double", "cpu", "cuda", and those of FOREIGN.md. Errors: usage, with the reason ("cuda: no
// NVIDIA driver found").
Result<std::shared_ptr<Executor>> make_executor(const std::string& name);

// make_executor for one job: an executor that is a program of its own is made once for each name, so that a session
// finds the program that an earlier one has started.
using ExecutorSource = std::function<Result<std::shared_ptr<Executor>>(const std::string& name)>;
ExecutorSource executor_source();

// The names that make_executor takes, for completion; one that needs an argument ends in a colon ("cmd:").
std::vector<std::string> executor_names();

struct ExecutorAvailability {
  std::string name;
  bool available = false;
  std::string detail;  // device, or why it is not available
  std::string advice;  // how to get it; empty where the detail says all
};
// Those of Parallax itself; no program is started.
std::vector<ExecutorAvailability> list_executors();
// All; the Python of the runners is started to ask which packages it has.
std::vector<ExecutorAvailability> examine_executors();

}  // namespace parallax
