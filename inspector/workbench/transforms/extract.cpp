// SPDX-License-Identifier: Apache-2.0
// Runs a model for the values at a part's edges, and writes the part.
#include "inspector/workbench/transforms/extract.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "inspector/base/memory_budget.h"
#include "inspector/base/output_group.h"
#include "inspector/base/signal_cleanup.h"
#include "inspector/transform/part_files.h"

namespace parallax {
namespace {

namespace fs = std::filesystem;
using transform::Part;
using transform::PartData;
using transform::PartValue;

// Hands everything but weights on: a dump of all values need not hold the model once more.
class WithoutWeights final : public Observer {
 public:
  explicit WithoutWeights(Observer& target) : target_(target) {}
  CaptureLevel wants(const ValueInfo& value_info) override {
    return value_info.role == ValueInfo::Role::initializer ? CaptureLevel::none : target_.wants(value_info);
  }
  bool takes_channels_last() const override { return target_.takes_channels_last(); }
  Status begin_run(const RunInfo& run) override { return target_.begin_run(run); }
  Status begin_call(const CallInfo& call, std::span<const Value> inputs) override {
    return target_.begin_call(call, inputs);
  }
  Status enter_body(const NodeLocation& node, const Frame& frame) override { return target_.enter_body(node, frame); }
  Status leave_body(const NodeLocation& node, const Frame& frame) override { return target_.leave_body(node, frame); }
  Status observe(const Observation& observation) override { return target_.observe(observation); }
  Status node_failed(const NodeLocation& node, const FrameStack& frames, const Error& error) override {
    return target_.node_failed(node, frames, error);
  }
  Status end_call(const CallInfo& call) override { return target_.end_call(call); }
  Status end_run(bool completed) override { return target_.end_run(completed); }

 private:
  Observer& target_;
};

// Why a value that the model has was not computed: its last frame's body ran less often, or not at all.
std::string explain_not_computed(const std::string& path, const DumpReader& dump) {
  const auto parsed = parse_value_path(path);
  if (!parsed.ok() || parsed->frames.empty()) return "it was not computed in this run";
  const Frame& frame = parsed->frames.back();
  int64_t entered = 0;
  for (const DumpEvent& event : dump.events()) {
    if (event.kind == DumpEvent::Kind::enter_body && event.node == frame.node && event.text.starts_with(frame.node))
      ++entered;
  }
  if (frame.kind == Frame::Kind::then_branch || frame.kind == Frame::Kind::else_branch)
    return fmt::format("branch '{}' was not taken in this run", to_string(frame));
  if (frame.kind == Frame::Kind::body)
    return fmt::format("the body of node '{}' ran {} time{} in this run", frame.node, entered, entered == 1 ? "" : "s");
  return fmt::format("'{}' was not executed in this run", to_string(frame));
}

std::vector<std::string> edge_paths(const Part& part) {
  std::vector<std::string> paths;
  for (const auto* edges : {&part.inputs, &part.outputs}) {
    for (const PartValue& edge : *edges) paths.push_back(edge.path);
  }
  return paths;
}

Result<PartData> run_for_values(RunSide& side, const Part& part, const std::string& directory) {
  PX_TRY(make_output_folder(directory));
  const auto scratch = PX_TRY(TemporaryPath::make_folder(fs::absolute(directory).string() + "/.values"));
  PX_TRY(capture_values(side, edge_paths(part), scratch->file("values.plx")));
  const auto dump = PX_TRY(DumpReader::open(scratch->file("values.plx")));
  PartData data = PX_TRY(load_part_data(part, *dump));
  for (size_t index = 0; index < part.outputs.size(); ++index) {
    const std::string& path = part.outputs[index].path;
    if (data.outputs[index].is_absent())
      return usage_error(fmt::format("--to '{}': {}", path, explain_not_computed(path, *dump)));
  }
  return data;
}

}  // namespace

PartSummary summarize_part(const Part& part) {
  PartSummary summary;
  for (const NodeId id : part.nodes)
    summary.nodes.push_back(part.location.graph().nodes[static_cast<size_t>(id)].display_name);
  for (const PartValue& input : part.inputs) summary.inputs.push_back(input.name);
  for (const PartValue& output : part.outputs) summary.outputs.push_back(output.name);
  return summary;
}

std::shared_ptr<const Model> with_given_defaults(std::shared_ptr<const Model> model, std::vector<Value>& values) {
  std::shared_ptr<Model> changed;
  for (size_t index = 0; index < values.size(); ++index) {
    const ValueDef& input = model->graph.values[static_cast<size_t>(model->graph.inputs[index])];
    if (input.initializer_index < 0 || !values[index].is_tensor()) continue;
    if (changed == nullptr) {
      changed = std::make_shared<Model>(*model);
      changed->file = nullptr;
      changed->sha256.clear();
    }
    StoredTensor& stored = changed->graph.initializers[static_cast<size_t>(input.initializer_index)];
    stored.tensor = values[index].tensor();
    values[index] = Value();
  }
  return changed == nullptr ? model : changed;
}

Status capture_values(RunSide& side, const std::vector<std::string>& paths, const std::string& dump_path) {
  DumpWriterOptions options;
  options.only = paths;
  options.include_graph = false;
  const auto writer = PX_TRY(DumpWriter::create(dump_path, options));
  WithoutWeights without_weights(*writer);
  Observer& observer = paths.empty() ? static_cast<Observer&>(without_weights) : *writer;
  Status ran = side.run(&observer);
  Status finished = writer->finish();
  return ran.ok() ? std::move(finished) : std::move(ran);
}

Result<Value> load_part_value(const Part& part, const PartValue& edge, const DumpReader& dump) {
  const int32_t entry = dump.find(edge.path);
  if (entry < 0 || dump.entries()[static_cast<size_t>(entry)].absence.has_value()) return Value();
  Value value = PX_TRY(dump.load(entry));
  const auto definition = definition_of(part.location, edge.id);
  const bool carries_doubles = dump.executions().front().executor == "reference:double";
  return carries_doubles && definition.has_value() ? round_to_declared(value, definition->value().type) : value;
}

Result<PartData> load_part_data(const Part& part, const DumpReader& dump) {
  PartData data;
  for (const PartValue& edge : part.inputs) {
    data.inputs.push_back(PX_TRY(load_part_value(part, edge, dump)));
    if (data.inputs.back().is_absent())
      return usage_error(fmt::format("'{}' is needed: {}", edge.path, explain_not_computed(edge.path, dump)));
  }
  for (const PartValue& edge : part.outputs) data.outputs.push_back(PX_TRY(load_part_value(part, edge, dump)));
  return data;
}

Result<ExtractResult> extract_part(const ExtractRequest& request, const ExecutorFactory& make_executor) {
  PX_TRY(check_options(request.run, make_executor));
  const MemoryBudget::Scope budget(request.run.options.memory_limit_bytes);
  RunRequest run = request.run;
  run.only = request.from;  // what stands before a node that cannot be executed is enough
  run.only.insert(run.only.end(), request.to.begin(), request.to.end());
  auto model = PX_TRY(load_model(run));
  PX_TRY(transform::admit_part(request.directory, {"model.onnx"}));
  const Part asked = PX_TRY(transform::find_part(model, request.from, request.to));  // before any time is spent
  InputSet inputs = PX_TRY(make_reported_inputs(*model, request.run));
  model = with_given_defaults(model, inputs.values);
  const Part part = PX_TRY(transform::find_part(model, request.from, request.to));
  run.options.observe_all = true;  // a value that was fused away could not be written
  RunSide side = PX_TRY(prepare_side(run, run.executors.front(), model, inputs.values, make_executor));
  OutputGroup group;  // half a part is of no use
  const PartData data = PX_TRY(run_for_values(side, part, request.directory));
  const auto extracted = PX_TRY(transform::extract_model(part, data));
  ExtractResult result{summarize_part(part), side.executor->name(), inputs.notes};
  result.part.directory = request.directory;
  result.part.written.push_back(PX_TRY(transform::write_model(*extracted, request.directory, "model.onnx")));
  result.part.written.push_back(PX_TRY(transform::write_data_set(part, data, request.directory)));
  PX_TRY(group.finish());
  return result;
}

}  // namespace parallax
