// SPDX-License-Identifier: Apache-2.0
// Comparer: two sides that are prepared once and compared at every call, value by value, nothing kept. For whoever
// calls a model again and again, as a training loop does.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "inspector/base/cancel.h"
#include "inspector/base/memory_budget.h"
#include "inspector/diff/comparison.h"
#include "inspector/workbench/run_side.h"

namespace parallax {

struct ComparedCall {
  std::vector<Value> outputs_a, outputs_b;  // in the order of each side's Graph::outputs
  Comparison comparison;
};

class Comparer {
 public:
  // Uses of the request: model, second model, executors (one or two), options, fallback, policy and `only`. Its inputs
  // and destinations of values are not read. Errors: as of run_models before anything runs.
  static Result<std::unique_ptr<Comparer>> create(RunRequest request, ExecutorFactory make_executor);

  // Runs both sides at once on the same inputs, which are in the order of A's. `find_causes`: where the sides differ,
  // both run once more to fill the causes. Not for several threads at once. Errors: as of run_models; a failed call
  // leaves the Comparer as it was.
  Result<ComparedCall> run(const std::vector<Value>& inputs, bool find_causes = false);

  // Ends the next call, or the one that runs. Another thread may set it.
  CancelToken cancel_token() const { return request_.options.cancel; }

  const std::shared_ptr<const Model>& model_a() const { return model_a_; }
  const std::shared_ptr<const Model>& model_b() const { return model_b_; }

 private:
  Comparer(RunRequest request, ExecutorFactory make_executor)
      : request_(std::move(request)),
        make_executor_(std::move(make_executor)),
        budget_(MemoryBudget::create(request_.options.memory_limit_bytes)) {}
  Status prepare();
  Result<ComparedCall> run_prepared(const std::vector<Value>& inputs, bool find_causes);

  RunRequest request_;
  ExecutorFactory make_executor_;
  MemoryBudget::Owner budget_;
  std::shared_ptr<const Model> model_a_, model_b_;
  ModelPair pair_;                                 // both as they are compared
  std::optional<std::vector<PathMatch>> matches_;  // of two models
  std::optional<RunSide> a_, b_;                   // nothing after a call that was cancelled
};

}  // namespace parallax
