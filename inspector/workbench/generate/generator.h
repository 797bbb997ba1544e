// SPDX-License-Identifier: Apache-2.0
// Generator: language models opened once, with sessions that are kept, to generate many times.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "inspector/base/cancel.h"
#include "inspector/workbench/generate/generation.h"
#include "inspector/workbench/generate/request.h"

namespace parallax {

class Generator {
 public:
  // Finds the models, assigns roles to their inputs and outputs and prepares a session of each on each executor.
  // Errors: usage (an executor, a map that names what is not there), invalid_model and unsupported (no decoder, past
  // and present that do not pair), and as of import_model and Executor::prepare.
  static Result<std::unique_ptr<Generator>> open(GeneratorRequest request, ExecutorFactory make_executor);
  ~Generator();

  // Not for several threads at once. A failed or cancelled call leaves the Generator usable. Errors: usage (ids beyond
  // the vocabulary, a mask of another length, settings that exclude each other), execution, cancelled, io.
  Result<Generation> generate(const GenerationRequest& request);

  // Ends the next generation, or the one that runs. Another thread may set it.
  CancelToken cancel_token() const;

  const GenerationModel& model() const;
  const GeneratorRequest& request() const;
  // One sentence for each model: what its inputs and outputs were taken for.
  std::vector<std::string> roles_text() const;

 private:
  class Impl;
  explicit Generator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Opens, generates once, closes.
Result<Generation> generate_once(const GeneratorRequest& model, const GenerationRequest& request,
                                 const ExecutorFactory& make_executor);

}  // namespace parallax
