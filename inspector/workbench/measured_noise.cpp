// SPDX-License-Identifier: Apache-2.0
// Two runs of one model, compared on arrival.
#include "inspector/workbench/measured_noise.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <thread>
#include <unordered_map>

#include "inspector/base/memory_budget.h"
#include "inspector/diff/compare/compare.h"
#include "inspector/diff/compare/stream_compare.h"
#include "inspector/diff/localize/node_judge.h"
#include "inspector/diff/tolerance/thresholds.h"
#include "inspector/model/link.h"
#include "inspector/tensor/elements.h"
#include "inspector/transform/extract.h"

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

Result<Tensor> nudged(const Tensor& tensor, uint32_t seed, double ulps) {
  const Value moved = diff::nudged_value(tensor, seed, ulps);
  Tensor result = PX_TRY(Tensor::allocate(DType::float32, tensor.shape()));
  const std::span<const float> before = tensor.as<float>();
  const std::span<float> after = result.mutable_as<float>();
  for (size_t index = 0; index < before.size(); ++index) {
    const bool is_whole = before[index] == std::trunc(before[index]);
    const double other = element_as_double(moved.tensor(), static_cast<int64_t>(index));
    after[index] = is_whole ? before[index] : static_cast<float>(other);
  }
  return result;
}

// Each of its own seed.
Status nudge_initializers(Graph& graph, uint32_t seed, double ulps) {
  for (StoredTensor& stored : graph.initializers) {
    const bool is_small = stored.tensor.element_count() <= thresholds::kMostNudgedElements;
    if (stored.tensor.dtype() == DType::float32 && is_small)
      stored.tensor = PX_TRY(nudged(stored.tensor, seed++, ulps));
  }
  return {};
}

Result<RunSide> run_nudged(const RunRequest& request, const RunSide& side, const ExecutorFactory& make_executor,
                           double ulps) {
  uint32_t seed = 1;
  std::vector<Value> inputs = side.inputs;
  for (Value& input : inputs) {
    if (input.is_tensor() && input.tensor().dtype() == DType::float32)
      input = PX_TRY(nudged(input.tensor(), seed++, ulps));
  }
  const std::shared_ptr<Model> moved = copy_model(*side.model);
  PX_TRY(nudge_initializers(moved->graph, seed, ulps));
  const std::shared_ptr<const Model> model = PX_TRY(transform::finish_model(moved));
  const std::string executor(side.executor->name());
  RunSide other = PX_TRY(prepare_side(request, executor, model, std::move(inputs), make_executor));
  PX_TRY(other.run(nullptr));
  return other;
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

std::vector<ValueComparison> measure_nudged(const RunRequest& request, const RunSide& side,
                                            const ExecutorFactory& make_executor, double ulps) {
  const auto other = run_nudged(request, side, make_executor, ulps);
  if (!other.ok()) return {};
  const auto outputs_of = [](const RunSide& run) {
    return named_outputs(run.model->graph, run.outputs, carries_doubles(*run.executor));
  };
  return compare_expected(outputs_of(side), outputs_of(*other), "", {}, {});
}

}  // namespace parallax
