// Turns paths into the value infos and frames that a dump writer is shown.
#include "inspector/dump/tensor_recorder.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace parallax {

Result<std::unique_ptr<TensorRecorder>> TensorRecorder::create(const std::string& path,
                                                               const DumpWriterOptions& options) {
  auto writer = PX_TRY(DumpWriter::create(path, options));
  std::unique_ptr<TensorRecorder> recorder(new TensorRecorder(std::move(writer)));
  recorder->options_ = options;
  return recorder;
}

Status TensorRecorder::begin_run(const RunInfo& run) {
  model_ = run.model;
  return writer_->begin_run(run);
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

// The facts that the model of the run knows about a value of its main graph.
bool TensorRecorder::describe(ValueSite& site) const {
  if (model_ == nullptr) return true;
  const Graph& graph = model_->graph;
  const ValueId id = graph.find_value(site.name);
  if (id == kNoValue) return false;
  const ValueDef& value = value_at(graph, id);
  const bool is_weight = value.initializer_index >= 0 && value.input_index < 0;
  site.graph = &graph;
  site.value = id;
  site.is_graph_output = value.is_graph_output;
  if (value.producer == kNoNode) {
    site.role = is_weight ? ValueSite::Role::initializer : ValueSite::Role::input;
    return true;
  }
  const Node& node = graph.nodes[static_cast<size_t>(value.producer)];
  site.role = ValueSite::Role::node_output;
  site.node = node.display_name;
  site.op = node.op_type;
  site.domain = node.domain;
  site.output_index = value.output_index;
  return true;
}

Result<bool> TensorRecorder::write(const ValuePath& path, const Value& value, const RecordOptions& options) {
  ValueSite site;
  site.role = options.role;
  site.is_graph_output = options.is_graph_output;
  site.name = path.name;
  site.escaped_name = escape_name(path.name);
  const bool is_outer = std::ranges::all_of(path.frames, [](const Frame& frame) {
    return frame.kind == Frame::Kind::step || frame.kind == Frame::Kind::graph;
  });
  const bool is_known = !is_outer || describe(site);
  FrameStack frames;
  for (const Frame& frame : path.frames) frames.push(frame);
  PX_TRY(writer_->record({site, frames, value}, options.level.value_or(options_.level)));
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
