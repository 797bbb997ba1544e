// SPDX-License-Identifier: Apache-2.0
// How far the outputs of a converted model are from those of the model it was made from.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "inspector/exec/executor.h"
#include "inspector/workbench/run.h"

namespace parallax {

struct OutputError {
  std::string name;
  // The norm of the difference relative to the norm of the first model's output; infinite where an element that was
  // finite is not, or the other way round. Of integers and the like: the share of elements that differ.
  double rel_l2 = 0;
  bool is_floating = true;
};

struct HalfVerification {
  bool passed = false;
  double rel_l2 = 0;  // the worst of those that are judged
  std::vector<OutputError> per_output;
};

// One entry for each output, over whatever the outputs hold.
std::vector<OutputError> compare_outputs(const Graph& graph, const std::vector<Value>& original,
                                         const std::vector<Value>& converted);

// The relative error of one value as above; 0 where neither holds elements.
double relative_error(const Value& original, const Value& converted);

// Takes the worse of both, output by output.
void keep_worst(std::vector<OutputError>& worst, const std::vector<OutputError>& errors);

// Floating outputs are judged; of a model without any, all are.
HalfVerification judge_outputs(std::vector<OutputError> errors, double tolerance);

// The outputs of one run of `model` on an executor; nothing is observed.
Result<std::vector<Value>> run_outputs(const std::shared_ptr<const Model>& model, const std::vector<Value>& inputs,
                                       Executor& executor, const RunOptions& options);

}  // namespace parallax
