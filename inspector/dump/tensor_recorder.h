// SPDX-License-Identifier: Apache-2.0
// TensorRecorder: writes values that no executor of ours produced (a program's modules, an interpreted graph, imported
// tensors) into a dump, each under a path of its own and at the moment it is seen.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "inspector/dump/dump_writer.h"
#include "inspector/exec/value_table.h"

namespace parallax {

struct RecordOptions {
  ValueInfo::Role role = ValueInfo::Role::node_output;
  bool is_graph_output = false;
  std::optional<CaptureLevel> level;  // the writer's when not given
};

class TensorRecorder {
 public:
  // Errors: those of DumpWriter::create.
  static Result<std::unique_ptr<TensorRecorder>> create(const std::string& path, const DumpWriterOptions& options);

  // `run.model` gives the dump its graph, and the values their nodes and roles.
  Status begin_run(const RunInfo& run);
  // Adds the graph that was executed in place of the run's model. `provenance`: see DumpWriter::add_graph.
  Status add_executed_graph(const Model& model, const std::vector<std::pair<std::string, std::string>>& provenance);
  Status begin_call(const CallInfo& call);
  Status enter_module(const std::string& name, int64_t call, const std::string& class_name);
  Status leave_module(const std::string& name, int64_t call, const std::string& class_name);
  // The value may be changed once the call has returned: what is in the dump is a copy. Answers whether the model of
  // the run has a value of this name (true without a model, and for values in frames of modules).
  Result<bool> write(const ValuePath& path, const Value& value, const RecordOptions& options = {});
  // Errors: usage when `path` is no value path or `tree` no JSON.
  Status structure(const std::string& path, const std::string& tree);
  Status end_call();
  Status end_run(bool completed);
  // Adds index and footer. Nothing may follow. Without it the file stays readable.
  Status finish();

 private:
  explicit TensorRecorder(std::unique_ptr<DumpWriter> writer) : writer_(std::move(writer)) {}
  bool describe(const ValuePath& path, ValueInfo& value_info);
  DumpWriterOptions options_;
  std::unique_ptr<DumpWriter> writer_;
  std::shared_ptr<const Model> model_;
  std::optional<ValueTable> table_;                                // of `model_`
  std::unordered_map<std::string, const ValueInfo*> value_infos_;  // by scope and name
  CallInfo call_;
};

}  // namespace parallax
