// TensorRecorder: writes values that no executor of ours produced (a program's modules, an interpreted graph, imported
// tensors) into a dump, each under a path of its own and at the moment it is seen.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "inspector/dump/dump_writer.h"

namespace parallax {

struct RecordOptions {
  ValueSite::Role role = ValueSite::Role::node_output;
  bool is_graph_output = false;
  std::optional<CaptureLevel> level;  // the writer's when not given
};

class TensorRecorder {
 public:
  // Errors: those of DumpWriter::create.
  static Result<std::unique_ptr<TensorRecorder>> create(const std::string& path, const DumpWriterOptions& options);

  // `run.model` gives the dump its graph, and the values without frames of a body their nodes and roles.
  Status begin_run(const RunInfo& run);
  Status begin_call(const CallInfo& call);
  Status enter_module(const std::string& name, int64_t call, const std::string& class_name);
  Status leave_module(const std::string& name, int64_t call, const std::string& class_name);
  // The value may be changed once the call has returned: what is in the dump is a copy. Answers whether the model of
  // the run has a value of this name (true without a model, and for values in frames of bodies and modules).
  Result<bool> write(const ValuePath& path, const Value& value, const RecordOptions& options = {});
  // Errors: usage when `path` is no value path or `tree` no JSON.
  Status structure(const std::string& path, const std::string& tree);
  Status end_call();
  Status end_run(bool completed);
  // Adds index and footer. Nothing may follow. Without it the file stays readable.
  Status finish();

 private:
  explicit TensorRecorder(std::unique_ptr<DumpWriter> writer) : writer_(std::move(writer)) {}
  bool describe(ValueSite& site) const;
  DumpWriterOptions options_;
  std::unique_ptr<DumpWriter> writer_;
  std::shared_ptr<const Model> model_;
  CallInfo call_;
};

}  // namespace parallax
