// SPDX-License-Identifier: Apache-2.0
// One thread more, and the order of errors.
#include "inspector/workbench/side_by_side.h"

#include <thread>

#include <fmt/format.h>

#include "inspector/base/memory_budget.h"
#include "inspector/render/report_text.h"
#include "inspector/workbench/progress_observer.h"

namespace parallax {

Status run_side_by_side(RunSide& a, RunSide& b, StreamComparer& comparer, const ProgressCallback& progress) {
  ProgressObserver counted(comparer.side_a(), progress);
  Status status_b;
  std::thread other([&, budget = MemoryBudget::current()] {
    const MemoryBudget::ThreadScope scope(budget);
    status_b = b.run(&comparer.side_b());
  });
  Status status_a = a.run(&counted);
  if (!status_a.ok() && status_a.error().code != ErrorCode::execution) b.options.cancel.cancel();
  other.join();
  if (!status_a.ok()) return status_a;
  return status_b;
}

Error with_first_divergence(Error error, StreamComparer& comparer, const std::vector<std::string>& dumps) {
  if (error.code == ErrorCode::cancelled) return error;
  if (const Comparison before = comparer.finish(); before.first_divergence.has_value()) {
    error.message += fmt::format("; the two sides had parted before, first at '{}' ({})", before.first_divergence->path,
                                 origin_of_divergence(before));
  }
  if (dumps.size() == 2)
    error.message += fmt::format("; what ran is kept: parallax diff '{}' '{}'", dumps[0], dumps[1]);
  return error;
}

}  // namespace parallax
