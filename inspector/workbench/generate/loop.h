// SPDX-License-Identifier: Apache-2.0
// The loop of a generation: logits, processors, choice, stop, reorder; the same for every kind of model.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "inspector/base/cancel.h"
#include "inspector/workbench/generate/generation.h"

namespace parallax::generate {

// The logits of one step of the models.
struct StepLogits {
  int64_t vocabulary = 0;
  std::vector<float> a, b;  // of the last position of each row; `b`: of the second side, empty where there is none
  double ms = 0;
  double severity = 0;
  std::string worst;
  bool diverged = false;
};

// Runs models step by step. Rows are prompts at first; reorder() may make more of them.
class StepRunner {
 public:
  virtual ~StepRunner() = default;
  virtual Result<StepLogits> start() = 0;
  virtual Result<StepLogits> next(std::span<const int64_t> tokens) = 0;  // one for each row
  virtual Status reorder(std::span<const int32_t> rows) = 0;             // row i becomes what row rows[i] was
};

struct LoopRequest {
  std::vector<std::vector<int64_t>> histories;  // of each prompt, what processors take for written already
  UsedSettings settings;
  std::function<void(const GenerationStep&)> on_step;
  CancelToken cancel;
};

struct LoopResult {
  std::vector<std::vector<int64_t>> sequences;
  std::vector<double> scores;
  std::vector<std::string> stopped;
  std::vector<GenerationStep> steps;
  std::optional<TokenDivergence> first_token_apart;
};

Result<LoopResult> run_loop(StepRunner& runner, const LoopRequest& request);

}  // namespace parallax::generate
