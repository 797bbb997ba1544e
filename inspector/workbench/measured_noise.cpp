// SPDX-License-Identifier: Apache-2.0
// Two runs of the reference, compared on arrival.
#include "inspector/workbench/measured_noise.h"

#include <algorithm>
#include <thread>
#include <unordered_map>

#include "inspector/base/memory_budget.h"
#include "inspector/diff/compare/stream_compare.h"

namespace parallax {
namespace {

Result<RunSide> prepare(const ExecutorFactory& make_executor, const std::string& name, const RunSide& like) {
  RunSide side;
  side.executor = PX_TRY(make_executor(name));
  side.options.seed = like.options.seed;
  side.options.keep_casts = name == "reference:double";  // casts are part of the model, not of its noise
  side.inputs = like.inputs;
  side.model = like.model;
  side.session = PX_TRY(side.executor->prepare(side.model, side.options));
  side.info = describe_run(*side.executor, side.options, side.model);
  return side;
}

bool has_exceeded(const ValueComparison& value) {
  return value.verdict == Verdict::diverged || value.accepted.has_value();
}

}  // namespace

Status measure_noise(const ExecutorFactory& make_executor, const RunSide& side, Comparison& comparison) {
  if (std::ranges::none_of(comparison.values, has_exceeded)) return {};
  RunSide rounded = PX_TRY(prepare(make_executor, "reference", side));
  RunSide exact = PX_TRY(prepare(make_executor, "reference:double", side));
  StreamComparer comparer(Policy{Tolerance{0, 0}, {}}, {});
  Status other_status;
  std::thread other([&, budget = MemoryBudget::current()] {
    const MemoryBudget::ThreadScope scope(budget);
    other_status = rounded.run(&comparer.side_b());
  });
  const Status status = exact.run(&comparer.side_a());
  other.join();
  if (!status.ok()) return Status(status.error());
  if (!other_status.ok()) return other_status;
  const Comparison noise = comparer.finish();
  std::unordered_map<std::string_view, const Metrics*> by_path;
  for (const ValueComparison& value : noise.values) {
    if (value.metrics.has_value()) by_path.emplace(value.path, &*value.metrics);
  }
  for (ValueComparison& value : comparison.values) {
    const auto found = by_path.find(value.path);
    if (has_exceeded(value) && found != by_path.end()) value.noise_rel_l2 = found->second->rel_l2;
  }
  return {};
}

}  // namespace parallax
