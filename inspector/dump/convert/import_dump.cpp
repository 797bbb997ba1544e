// SPDX-License-Identifier: Apache-2.0
// import_dump: shows the values of an origin to a dump writer, as an executor would.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "inspector/base/input_files.h"
#include "inspector/base/mapped_file.h"
#include "inspector/dump/convert/captured_objects.h"
#include "inspector/dump/convert/convert.h"
#include "inspector/dump/convert/execution_order.h"
#include "inspector/dump/convert/origin.h"
#include "inspector/dump/convert/torch_names.h"
#include "inspector/dump/dump_writer.h"
#include "inspector/dump/tensor_files/declared_type.h"

namespace parallax {
namespace {

using NameMap = std::map<std::string, std::string>;

Result<NameMap> read_map(const std::string& path) {
  NameMap names;
  if (path.empty()) return names;
  const std::string text = PX_TRY(read_file(path));
  const auto json = nlohmann::json::parse(text, nullptr, false);
  const auto refused = [&path] {
    return usage_error("'" + path + "' is no JSON object of texts: {\"foreign name\": \"value path\"}");
  };
  if (!json.is_object()) return refused();
  for (const auto& [foreign, target] : json.items()) {
    if (!target.is_string()) return refused();
    names[foreign] = target.get<std::string>();
  }
  return names;
}

// A foreign name that is a value path, written as paths are, is one: exports write paths. Any other is the name of a
// value.
ValuePath path_of(const std::string& name) {
  auto parsed = parse_value_path(name);
  if (parsed.ok() && to_string(*parsed) == name) return parsed.take();
  return {{}, name};
}

// A value on its way into the dump.
struct Planned {
  const dump::OriginValue* value = nullptr;
  ValuePath path;
  std::vector<int64_t> location;  // in the model's execution; empty without a model
};

// Two names of the origin with one path. Where the map made them equal, the request is wrong, else it is a file that a
// dump cannot hold.
Error same_path(const std::string& first, const std::string& second, const std::string& path, const NameMap& names) {
  const std::string sentence =
      fmt::format("'{}' and '{}' would both have the path '{}': rename one of them with --map", first, second, path);
  return names.contains(first) || names.contains(second) ? usage_error(sentence) : unsupported(sentence);
}

// The names that neither the map nor the model knows, through the metadata of the model's exporter.
dump::TorchMatches match_by_metadata(const std::vector<dump::OriginValue>& values, const NameMap& names,
                                     const Model& model) {
  std::vector<dump::ForeignName> unknown;
  std::vector<std::string> taken;
  for (const dump::OriginValue& value : values) {
    const std::string& foreign = value.named.name;
    const auto renamed = names.find(foreign);
    const ValuePath path = path_of(renamed != names.end() ? renamed->second : foreign);
    const bool is_of_module = !path.frames.empty() && path.frames.back().kind == Frame::Kind::module;
    const bool is_known = !is_of_module && model.graph.find_value(path.name) != kNoValue;
    if (is_known || renamed != names.end()) {
      if (path.frames.empty()) taken.push_back(path.name);
    } else {
      unknown.push_back({foreign, type_of(value.named.value)});
    }
  }
  return dump::match_torch_names(model.graph, unknown, taken);
}

// The values under their paths, in the order in which a run of the model would have shown them; without a model, and
// where it does not know them, in the origin's.
Result<std::vector<Planned>> plan(const std::vector<dump::OriginValue>& values, const NameMap& names,
                                  const NameMap& by_metadata, const std::shared_ptr<const Model>& model) {
  std::optional<dump::ExecutionOrder> order;
  if (model != nullptr) order = PX_TRY(dump::ExecutionOrder::of(model));
  std::vector<Planned> planned;
  NameMap foreign_of_path;
  for (const dump::OriginValue& value : values) {
    const std::string& foreign = value.named.name;
    Planned& next = planned.emplace_back(Planned{&value, {}, {}});
    if (const auto renamed = names.find(foreign); renamed != names.end()) {
      next.path = PX_TRY_CONTEXT("'" + renamed->second + "' is no value path", parse_value_path(renamed->second));
    } else if (const auto found = by_metadata.find(foreign); found != by_metadata.end()) {
      next.path = {{}, found->second};
    } else {
      next.path = path_of(foreign);
    }
    if (next.path.name.empty())
      return unsupported("a value without a name, which therefore has no path: give it one with --map");
    const std::string path = to_string(next.path);
    const auto [taken, is_free] = foreign_of_path.emplace(path, foreign);
    if (!is_free) return same_path(taken->second, foreign, path, names);
    if (order.has_value()) next.location = order->location_of(next.path);
  }
  std::ranges::stable_sort(planned, {}, &Planned::location);
  return planned;
}

RunInfo run_of(const ImportRequest& request, const std::shared_ptr<const Model>& model) {
  RunInfo run;
  run.executor = "import";
  run.device = "none";
  run.settings = {{"origin", request.origin}};
  run.model = model;
  if (model != nullptr) run.model_sha256 = model_sha256(*model);
  return run;
}

class Importer {
 public:
  Importer(DumpWriter& writer, std::shared_ptr<const Model> model) : writer_(writer), model_(std::move(model)) {}

  Status run(const ImportRequest& request, const std::vector<Planned>& values) {
    PX_TRY(writer_.begin_run(run_of(request, model_)));
    for (const Planned& value : values) PX_TRY(show(*value.value, value.path));
    note_strangers();
    return writer_.end_run(true);
  }

  const ImportReport& report() const { return report_; }

 private:
  Status show(const dump::OriginValue& value, const ValuePath& path) {
    ValueInfo value_info;
    value_info.id = static_cast<int32_t>(report_.values);
    value_info.role = value.role;
    value_info.is_graph_output = value.is_graph_output;
    value_info.name = path.name;
    value_info.escaped_name = escape_name(path.name);
    if (path.frames.empty()) describe(value_info);
    FrameStack frames;
    for (const Frame& frame : path.frames) frames.push(frame);
    ++report_.values;
    if (value_info.value == kNoValue) return writer_.observe({value_info, frames, value.named.value, nullptr, nullptr});
    // Only bfloat16 is brought about, which numpy lacks: any other type is what the other runtime computed with.
    const TypeInfo& declared = value_at(model_->graph, value_info.value).type;
    const Value typed = declared.dtype != DType::bfloat16
                            ? value.named.value
                            : PX_TRY(in_declared_type(value.named.value, declared, fmt::format("value '{}'", path.name),
                                                      report_.notes));
    return writer_.observe({value_info, frames, typed, nullptr, nullptr});
  }

  void note_strangers() {
    constexpr size_t kNamed = 5;
    if (strangers_.empty()) return;
    const size_t shown = std::min(strangers_.size(), kNamed);
    const std::string more = strangers_.size() > shown ? fmt::format(" and {} more", strangers_.size() - shown) : "";
    report_.notes.push_back(
        fmt::format("the model '{}' has no value of the name '{}'{}", model_->path,
                    fmt::join(strangers_.begin(), strangers_.begin() + static_cast<int64_t>(shown), "', '"), more));
  }

  // Adds the model's description of a value of its main graph.
  void describe(ValueInfo& value_info) {
    const ValueId id = model_ == nullptr ? kNoValue : model_->graph.find_value(value_info.name);
    if (model_ != nullptr && id == kNoValue) strangers_.emplace_back(value_info.name);
    if (id == kNoValue) return;
    ++report_.matched;
    const ValueDef& value = model_->graph.values[static_cast<size_t>(id)];
    value_info.graph = &model_->graph;
    value_info.value = id;
    value_info.is_graph_output = value.is_graph_output;
    value_info.role = value.producer != kNoNode                               ? ValueInfo::Role::node_output
                      : value.initializer_index >= 0 && value.input_index < 0 ? ValueInfo::Role::initializer
                                                                              : ValueInfo::Role::input;
    if (value.producer == kNoNode) return;
    const Node& node = model_->graph.nodes[static_cast<size_t>(value.producer)];
    value_info.node = node.display_name;
    value_info.op = node.op_type;
    value_info.domain = node.domain;
    value_info.output_index = value.output_index;
  }

  DumpWriter& writer_;
  std::shared_ptr<const Model> model_;
  std::vector<std::string> strangers_;  // names that the model does not have
  ImportReport report_;
};

// The captured objects of an ONNX file in the mini builder's form; nothing for any other origin.
Result<std::optional<CapturedObjects>> captured_objects_of(const ImportRequest& request) {
  if (!request.origin.ends_with(".onnx") || !request.map.empty()) return std::optional<CapturedObjects>();
  const auto model = import_model(request.origin);
  // The reader of constants reports the file's errors, too.
  return model.ok() ? read_captured_objects(**model) : std::optional<CapturedObjects>();
}

Result<ImportReport> import_objects(const CapturedObjects& objects, const RunInfo& run, const std::string& target) {
  const auto recorder = PX_TRY(TensorRecorder::create(target, {}));
  PX_TRY(recorder->begin_run(run));
  PX_TRY(record_objects(objects, *recorder));
  PX_TRY(recorder->end_run(true));
  PX_TRY(recorder->finish());
  ImportReport report;
  report.values = static_cast<int64_t>(objects.values.size());
  report.notes = objects.notes;
  return report;
}

}  // namespace

Result<ImportReport> import_dump(const ImportRequest& request, const std::string& target) {
  std::shared_ptr<const Model> model;
  if (!request.model.empty()) model = PX_TRY(import_model(request.model, {.checks = ModelChecks::recorded}));
  if (const auto objects = PX_TRY(captured_objects_of(request)); objects.has_value())
    return import_objects(*objects, run_of(request, model), target);
  const NameMap names = PX_TRY(read_map(request.map));
  input_files::note(request.origin);
  PX_TRY(admit_output(target));
  const auto values = PX_TRY(dump::read_origin(request.origin, model == nullptr ? nullptr : &model->graph));
  std::set<std::string> present;
  for (const dump::OriginValue& value : values) present.insert(value.named.name);
  for (const auto& [foreign, path] : names) {
    if (!present.contains(foreign))
      return usage_error(fmt::format("'{}' maps '{}', which '{}' does not hold", request.map, foreign, request.origin));
  }
  dump::TorchMatches by_metadata;
  if (model != nullptr) by_metadata = match_by_metadata(values, names, *model);
  const std::vector<Planned> planned = PX_TRY(plan(values, names, by_metadata.value_of, model));
  const auto writer = PX_TRY(DumpWriter::create(target, {}));
  Importer importer(*writer, model);
  PX_TRY(importer.run(request, planned));
  PX_TRY(writer->finish());
  ImportReport report = importer.report();
  report.matched_by_metadata = static_cast<int64_t>(by_metadata.value_of.size());
  std::ranges::move(by_metadata.notes, std::back_inserter(report.notes));
  return report;
}

}  // namespace parallax
