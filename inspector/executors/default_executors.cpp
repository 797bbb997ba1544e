// SPDX-License-Identifier: Apache-2.0
// Looks for a GPU.
#include "inspector/executors/default_executors.h"

#include "inspector/executors/make_executor.h"

namespace parallax {

std::vector<std::string> default_executors(bool against) {
  if (against) return {"reference"};
  for (const ExecutorAvailability& executor : list_executors()) {
    if (executor.name == "cuda" && executor.available) return {"reference", "cuda"};
  }
  return {"reference", "cpu"};
}

}  // namespace parallax
