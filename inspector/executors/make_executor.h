// SPDX-License-Identifier: Apache-2.0
// Executors by name: the only file that knows every concrete executor. Linked by the composition roots alone.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/exec/executor.h"

namespace parallax {

// "reference", "reference:double", "cpu", "cuda". Errors: usage, with the reason ("cuda: no NVIDIA driver found").
Result<std::shared_ptr<Executor>> make_executor(const std::string& name);

struct ExecutorAvailability {
  std::string name;
  bool available = false;
  std::string detail;  // device, or why it is not available
};
std::vector<ExecutorAvailability> list_executors();

}  // namespace parallax
