// SPDX-License-Identifier: Apache-2.0
// The failure criteria of a reduction: two executors diverge, two models diverge, or a command fails. Private to
// `reduce`.
#pragma once

#include <memory>
#include <string>

#include "inspector/base/signal_cleanup.h"
#include "inspector/transform/counterpart.h"
#include "inspector/workbench/reduce/reduce.h"

namespace parallax {

// The data that every criterion works with.
struct ReduceContext {
  const ReduceRequest& request;
  const ExecutorFactory& make_executor;
  std::shared_ptr<const Model> model_a;
  std::shared_ptr<const Model> model_b;         // with --against
  std::shared_ptr<const DumpReader> values;     // of side A's run
  std::shared_ptr<const DumpReader> values_b;   // with --against
  transform::MatchedValues matched;             // with --against
  std::unique_ptr<TemporaryPath> scratch = {};  // a folder in the one that is written
};

class FailureCriterion {
 public:
  virtual ~FailureCriterion() = default;
  // A part that cannot be made or run on its own has not failed. Errors end the reduction: io, out_of_memory,
  // cancelled.
  virtual Result<bool> fails(const transform::Part& part) = 0;
  // Writes model or models, data set and script. Answers the files.
  virtual Result<std::vector<std::string>> write(const transform::Part& part) = 0;
};

std::unique_ptr<FailureCriterion> executors_differ(const ReduceContext& context);
std::unique_ptr<FailureCriterion> models_differ(const ReduceContext& context);
std::unique_ptr<FailureCriterion> command_fails(const ReduceContext& context);

std::unique_ptr<FailureCriterion> candidate_check_fails(const ReduceContext& context);

// The candidate_check on the model as it is, with the data set that `part`, the whole of it, has.
Result<bool> candidate_check_fails_on_model(const ReduceContext& context, const transform::Part& part);

// The command on the model as it is, with the data set that `part`, the whole of it, has. Errors: usage, where the
// command cannot be run.
Result<bool> command_fails_on_model(const ReduceContext& context, const transform::Part& part);

// Checks that --fail-regex is a regular expression; empty: none was given. Errors: usage.
Status check_fail_regex(const std::string& text);

// Writes a file that may be executed. Errors: io.
Status write_program(const std::string& path, const std::string& text);

// The script's text: `command` is what repeats the finding; the rest runs `models` in onnxruntime where that is
// installed.
std::string repeat_script(const std::string& command, const std::vector<std::string>& models);

}  // namespace parallax
