// SPDX-License-Identifier: Apache-2.0
// Turns paths into the value infos and frames that a dump writer is shown.
#include "inspector/dump/tensor_recorder.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace parallax {

Result<std::unique_ptr<TensorRecorder>> TensorRecorder::create(const std::string& path,
                                                               const DumpWriterOptions& options) {
  DumpWriterOptions own = options;
  own.share_equal = true;
  auto writer = PX_TRY(DumpWriter::create(path, own));
  std::unique_ptr<TensorRecorder> recorder(new TensorRecorder(std::move(writer)));
  recorder->options_ = options;
  return recorder;
}

Status TensorRecorder::begin_run(const RunInfo& run) {
  model_ = run.model;
  value_infos_.clear();
  table_.reset();
  if (model_ != nullptr) {
    table_ = PX_TRY(ValueTable::build(model_));
    for (const ValueInfo& value_info : table_->value_infos())
      value_infos_.emplace(value_info.scope + value_info.escaped_name, &value_info);
  }
  return writer_->begin_run(run);
}

Status TensorRecorder::add_executed_graph(const Model& model,
                                          const std::vector<std::pair<std::string, std::string>>& provenance) {
  return writer_->add_graph("", model, true, provenance);
}

Status TensorRecorder::begin_call(const CallInfo& call) {
  call_ = call;
  return writer_->begin_call(call, {});
}

Status TensorRecorder::enter_module(const std::string& name, int64_t call, const std::string& class_name) {
  return writer_->enter_body({name, class_name}, {Frame::Kind::module, name, call});
}

Status TensorRecorder::leave_module(const std::string& name, int64_t call, const std::string& class_name) {
  return writer_->leave_body({name, class_name}, {Frame::Kind::module, name, call});
}

// Adds the description of a value from the run's model; false where the model has no such value.
bool TensorRecorder::describe(const ValuePath& path, ValueInfo& value_info) {
  if (model_ == nullptr) return true;
  std::string location;
  for (const Frame& frame : path.frames) {
    if (frame.kind == Frame::Kind::step || frame.kind == Frame::Kind::graph) continue;
    location += frame.kind == Frame::Kind::body ? escape_name(frame.node) + ".body[*]" : to_string(frame);
    location += "//";
  }
  const auto found = value_infos_.find(location + value_info.escaped_name);
  if (found != value_infos_.end()) value_info = *found->second;
  return found != value_infos_.end();
}

Result<bool> TensorRecorder::write(const ValuePath& path, const Value& value, const RecordOptions& options) {
  ValueInfo value_info;
  value_info.role = options.role;
  value_info.is_graph_output = options.is_graph_output;
  value_info.name = path.name;
  value_info.escaped_name = escape_name(path.name);
  const bool is_of_module =
      std::ranges::any_of(path.frames, [](const Frame& frame) { return frame.kind == Frame::Kind::module; });
  const bool is_known = is_of_module || describe(path, value_info);
  FrameStack frames;
  for (const Frame& frame : path.frames) frames.push(frame);
  PX_TRY(writer_->record({value_info, frames, value}, options.level.value_or(options_.level)));
  return is_known;
}

Status TensorRecorder::structure(const std::string& path, const std::string& tree) {
  PX_TRY(parse_value_path(path));
  if (!nlohmann::json::accept(tree))
    return usage_error(fmt::format("the structure of '{}' is no JSON text; it must be one tree of containers", path));
  return writer_->structure(path, tree);
}

Status TensorRecorder::end_call() { return writer_->end_call(call_); }
Status TensorRecorder::end_run(bool completed) { return writer_->end_run(completed); }
Status TensorRecorder::finish() { return writer_->finish(); }

}  // namespace parallax
