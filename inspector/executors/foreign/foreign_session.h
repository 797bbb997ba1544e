// SPDX-License-Identifier: Apache-2.0
// ForeignSession: one model on a program of its own.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "inspector/base/signal_cleanup.h"
#include "inspector/exec/executor.h"
#include "inspector/exec/reported_times.h"
#include "inspector/exec/value_table.h"
#include "inspector/exec/wanted_levels.h"
#include "inspector/executors/foreign/answer.h"
#include "inspector/executors/foreign/given_model.h"
#include "inspector/executors/foreign/program_pool.h"

namespace parallax::foreign {

// Nothing is fused or folded: what FOREIGN.md's `optimize: false` stands for.
bool keeps_graph(const RunOptions& options);

class ForeignSession final : public Session, public ReportedTimes {
 public:
  // Starts the program; one that reads values by itself loads the model, too. Where it ends in that, the first run
  // does, and finds the node. Errors: as of Executor::prepare.
  static Result<std::unique_ptr<Session>> prepare(std::shared_ptr<ProgramPool> pool, std::shared_ptr<const Model> model,
                                                  const RunOptions& options);
  ~ForeignSession() override { pool_->give_back(std::move(program_)); }

  Result<std::vector<Value>> run(std::span<const Value> inputs, Observer& observer, const CallInfo& call) override;
  SessionStatistics statistics() const override { return {}; }
  std::optional<double> run_ms() const override { return run_ms_; }

 private:
  ForeignSession(std::shared_ptr<ProgramPool> pool, std::shared_ptr<const Model> model, ValueTable value_infos,
                 const RunOptions& options, std::unique_ptr<TemporaryPath> folder);

  // One run of the first nodes of the model, or of all.
  struct Computed {
    Answer answer;
    ProgramAnswer reply;
  };
  Result<Computed> compute(size_t count);
  Result<Computed> ask(const Model& model, std::vector<std::string> wanted);
  Status load(const std::shared_ptr<const Model>& model);
  std::shared_ptr<const Model> given(const std::shared_ptr<const Model>& model, const std::vector<std::string>& wanted);
  std::vector<std::string> wanted_names(size_t count) const;

  // A run that failed: the node at fault, as far as it can be known, and what came before it.
  struct Failure {
    Error error;
    std::optional<size_t> node = {};      // position in the execution order
    std::optional<Computed> before = {};  // a run of the nodes before it
  };
  Failure locate(Error error);
  Failure search(Error error, bool is_crash);
  Failure before_named_node(Error error);
  bool is_failure(const Error& error, bool is_crash) const;
  Error show_failure(Failure failure, Observer& observer, FrameStack& frames);
  Status show(const Computed& computed, size_t count, Observer& observer, FrameStack& frames);
  Result<std::vector<Value>> run_call(Observer& observer, FrameStack& frames);

  size_t node_count() const { return model_->graph.order.size(); }
  ProgramLimits limits() const { return {options_.time_limit_s, options_.memory_limit_bytes}; }

  std::shared_ptr<ProgramPool> pool_;
  std::shared_ptr<const Model> model_;
  ValueTable value_infos_;
  RunOptions options_;
  std::unique_ptr<TemporaryPath> folder_;
  std::optional<dump::ExecutionOrder> order_;  // made for the first answer with values in bodies
  std::unique_ptr<Conversation> program_;
  std::shared_ptr<const Model> loaded_;            // by the program
  std::unique_ptr<TemporaryPath> loaded_folder_;   // with the file of that model where it was written
  std::shared_ptr<const Model> given_, given_of_;  // with outputs for those that are wanted
  std::vector<std::string> given_wanted_;

  WantedLevels levels_;
  uint64_t absent_shown_to_ = 0;  // Observer::identity()
  int files_ = 0;                 // written so far
  // These belong to the run that goes on.
  std::vector<Value> inputs_;
  NamedInputs named_;
  const std::vector<CaptureLevel>* wanted_ = nullptr;
  bool wants_times_ = false;
  bool observer_failed_ = false;
  std::optional<double> run_ms_;
};

}  // namespace parallax::foreign
