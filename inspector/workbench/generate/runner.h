// SPDX-License-Identifier: Apache-2.0
// SideRunner: runs the steps of a loop on one side, or on two that are compared while they run.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "inspector/dump/dump_writer.h"
#include "inspector/exec/tee_observer.h"
#include "inspector/workbench/generate/call_comparison.h"
#include "inspector/workbench/generate/loop.h"
#include "inspector/workbench/generate/side.h"

namespace parallax::generate {

class SideRunner final : public StepRunner {
 public:
  struct Watchers {
    Observer* observer = nullptr;  // of side A
    DumpWriter *dump_a = nullptr, *dump_b = nullptr;
  };
  // `comparison` is null exactly where `b` is.
  SideRunner(ModelSide& a, ModelSide* b, const PromptBatch& batch, const Watchers& watchers,
             CallComparison* comparison);

  Result<StepLogits> start() override;
  Result<StepLogits> next(std::span<const int64_t> tokens) override;
  Status reorder(std::span<const int32_t> rows) override;

  double wall_ms_a() const { return wall_ms_a_; }
  double wall_ms_b() const { return wall_ms_b_; }

 private:
  Status run_encoder(StepLogits& step);
  Result<StepLogits> run_step(const ModelSide::Call& a, const std::optional<ModelSide::Call>& b, StepLogits step);
  struct Outputs {
    std::vector<Value> a, b;
  };
  Result<Outputs> run_calls(const ModelSide::Call& a, const std::optional<ModelSide::Call>& b, StepLogits& step);

  ModelSide& a_;
  ModelSide* b_;
  const PromptBatch& batch_;
  Watchers watchers_;
  CallComparison* comparison_;
  NullObserver quiet_;  // one for all steps: sessions keep what an observer wants
  std::unique_ptr<TeeObserver> both_;
  double wall_ms_a_ = 0, wall_ms_b_ = 0;
  const Part *dumped_a_ = nullptr, *dumped_b_ = nullptr;  // the part whose graph the calls of a dump refer to
};

// Runs one call, which the observer sees as `shown`; errors name the model, the executor and the step.
Result<std::vector<Value>> run_call(const ModelSide::Call& call, Observer& observer, const CallInfo& shown);

}  // namespace parallax::generate
