// SPDX-License-Identifier: Apache-2.0
// One thread more, and the order of errors.
#include "inspector/workbench/side_by_side.h"

#include <string>
#include <thread>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "inspector/base/memory_budget.h"
#include "inspector/diff/tolerance/paths.h"
#include "inspector/diff/tolerance/value_compare.h"
#include "inspector/render/report_text.h"
#include "inspector/workbench/progress_observer.h"

namespace parallax {
namespace {

// The executor that computes a node: the side's own, or its fallback.
class SidePrograms {
 public:
  explicit SidePrograms(const RunSide& side)
      : own_(side.executor->name()), fallback_(side.options.fallback == nullptr ? "" : side.options.fallback->name()) {
    for (std::string& node : side.session->statistics().fallback_nodes) fallback_nodes_.insert(std::move(node));
  }

  // `node` after its static frames.
  const std::string& of(const std::string& node) const { return fallback_nodes_.contains(node) ? fallback_ : own_; }
  const std::string& own() const { return own_; }

 private:
  std::string own_, fallback_;
  std::unordered_set<std::string> fallback_nodes_;
};

void leave_out_same_program(const SidePrograms& a, const SidePrograms& b, Comparison& comparison) {
  if (a.own() == b.own()) return;  // an executor with itself, as asked for
  bool is_any = false;
  for (ValueComparison& value : comparison.values) {
    const bool is_equal = value.verdict == Verdict::pass || value.verdict == Verdict::mistrusted;
    if (!is_equal || value.node.empty() || value.node_reads_it || value.origin != Origin::computed) continue;
    const std::string node = diff::static_path(diff::prefix_of(value.path)) + value.node;
    if (a.of(node) != b.of(node)) continue;
    diff::set_not_compared(value, "same program");
    is_any = true;
  }
  if (is_any) conclude(comparison);
}

}  // namespace

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

Comparison finish_comparison(const RunSide& a, const RunSide& b, StreamComparer& comparer) {
  Comparison comparison = comparer.finish();
  comparison.executions = {describe_side(a, Side::a), describe_side(b, Side::b)};
  if (a.model == b.model) leave_out_same_program(SidePrograms(a), SidePrograms(b), comparison);
  return comparison;
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
