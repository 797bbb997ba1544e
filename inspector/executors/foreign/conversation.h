// SPDX-License-Identifier: Apache-2.0
// Conversation: the requests of FOREIGN.md and their answers, as structs.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "inspector/executors/foreign/program.h"

namespace parallax::foreign {

struct Description {
  std::string name, version, device;
  std::map<std::string, std::string> settings;
  bool observes = false;  // it reads values within the model by itself
};

struct LoadRequest {
  std::string model, source, folder;
  bool optimize = true;
  int threads = 0;
  uint64_t seed = 0;
  int64_t memory_limit_bytes = 0;
};

struct ProgramRun {
  std::string inputs;  // an .npz; empty: numpy lacks a type of them
  std::string data_set;
  std::vector<std::string> wanted;
  std::string answer;  // without an ending
  bool wants_times = false;
};

struct ProgramAnswer {
  std::string file;
  std::optional<double> milliseconds;
  std::vector<std::pair<std::string, double>> node_milliseconds;
  std::vector<std::string> notes;
};

// One program that has described itself. Errors of requests have the executor's name in front and, where the program
// named one, the node. The code is the program's; it is `execution` where the program ended, gave no code, or its
// answer is not JSON. Not thread-safe.
class Conversation {
 public:
  static Result<std::unique_ptr<Conversation>> start(const std::string& executor, const std::string& command,
                                                     const CancelToken& cancel = {});

  const Description& description() const { return description_; }
  Status load(const LoadRequest& request, const ProgramLimits& limits, const CancelToken& cancel);
  Result<ProgramAnswer> run(const ProgramRun& request, const ProgramLimits& limits, const CancelToken& cancel);

  bool is_running() const { return program_->is_running(); }
  bool has_ended() const { return program_->has_ended(); }  // by itself, while it was asked
  bool has_refused() const { return has_refused_; }         // the last request, in words of its own

 private:
  Conversation(std::string executor, std::unique_ptr<Program> program)
      : executor_(std::move(executor)), program_(std::move(program)) {}
  Status describe(const CancelToken& cancel);

  std::string executor_;
  std::unique_ptr<Program> program_;
  Result<nlohmann::json> ask(const nlohmann::json& request, const ProgramLimits& limits, const CancelToken& cancel);
  Description description_;
  bool has_refused_ = false;
};

}  // namespace parallax::foreign
