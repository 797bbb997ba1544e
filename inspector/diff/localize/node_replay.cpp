// SPDX-License-Identifier: Apache-2.0
// Making models of one node.
#include "inspector/diff/localize/node_replay.h"

#include <algorithm>

#include <fmt/format.h>

#include "inspector/model/link.h"

namespace parallax::diff {
namespace {

// Without dimensions: they are those of one execution.
TypeInfo without_dims(TypeInfo type) {
  for (TypeInfo* inner = &type; inner != nullptr; inner = inner->inner.empty() ? nullptr : &inner->inner[0]) {
    inner->dims.reset();
  }
  return type;
}

void set_opset(std::vector<OpsetImport>& imports, const Node& node) {
  const std::string domain = node.domain == "ai.onnx" ? "" : node.domain;
  std::erase_if(imports, [&](const OpsetImport& import) {
    return import.domain == domain || (domain.empty() && import.domain == "ai.onnx");
  });
  imports.push_back({domain, node.opset_version});
}

}  // namespace

NodeReplay::NodeReplay(std::shared_ptr<const Model> model, const Graph& graph, Node node,
                       std::shared_ptr<Executor> executor, const RunOptions& options)
    : model_(std::move(model)), node_(std::move(node)), executor_(std::move(executor)), options_(options) {
  options_.overrides.clear();
  options_.memory_limit_bytes = 0;
  const auto add = [&](ValueId id) {
    if (id == kNoValue || !index_of_.emplace(id, reads_.size()).second) return;
    reads_.push_back(id);
    definitions_.push_back({value_at(graph, id).name, value_at(graph, id).type});
  };
  for (const ValueId id : node_.inputs) add(id);
  for (const Graph* body : bodies_of(node_)) {
    for (const ValueId outer : body->outer_values) add(graph.find_value(value_at(*body, outer).name));
  }
  for (const ValueId id : node_.outputs) output_names_.push_back(id == kNoValue ? "" : value_at(graph, id).name);
}

// The declared type where the payload is carried wider, else the value's own.
TypeInfo NodeReplay::type_for(size_t read, const Value& value) const {
  const TypeInfo& declared = definitions_[read].declared;
  if (value.is_absent()) return {};
  if (!value.is_tensor())
    return declared.kind == TypeInfo::Kind::unknown ? without_dims(type_of(value)) : without_dims(declared);
  const DType dtype = value.tensor().dtype();
  const bool is_widened =
      dtype == DType::float64 && declared.kind == TypeInfo::Kind::tensor && is_floating(declared.dtype);
  return TypeInfo::tensor(is_widened ? declared.dtype : dtype);
}

Result<std::shared_ptr<const Model>> NodeReplay::model_of(std::span<const Value> values,
                                                          const std::vector<bool>& constants) const {
  auto model = std::make_shared<Model>();
  model->path = fmt::format("node '{}' alone", node_.display_name);
  model->ir_version = std::max<int64_t>(model_->ir_version, 10);
  model->opset_imports = model_->opset_imports;
  model->functions = model_->functions;
  set_opset(model->opset_imports, node_);
  Graph& graph = model->graph;
  graph.name = node_.display_name;
  std::vector<ValueId> placed(reads_.size(), kNoValue);
  for (size_t index = 0; index < reads_.size(); ++index) {
    if (values[index].is_absent()) continue;
    placed[index] = static_cast<ValueId>(graph.values.size());
    ValueDef& definition = graph.values.emplace_back();
    definition.name = definitions_[index].name;
    definition.type = type_for(index, values[index]);
    const bool is_constant = index < constants.size() && constants[index] && values[index].is_tensor();
    if (!is_constant) {
      graph.inputs.push_back(placed[index]);
      continue;
    }
    StoredTensor& stored = graph.initializers.emplace_back();
    stored.name = definition.name;
    stored.tensor = values[index].tensor();
    graph.initializer_values.push_back(placed[index]);
  }
  Node copy = node_;
  for (ValueId& id : copy.inputs) {
    if (id != kNoValue) id = placed[index_of_.at(id)];
  }
  for (size_t index = 0; index < copy.outputs.size(); ++index) {
    if (copy.outputs[index] == kNoValue) continue;
    copy.outputs[index] = static_cast<ValueId>(graph.values.size());
    graph.outputs.push_back(copy.outputs[index]);
    graph.values.emplace_back().name = output_names_[index];
  }
  copy.name = copy.display_name;  // linking names nodes anew, and random operators go by names
  graph.nodes.push_back(std::move(copy));
  link_graph(graph);
  return std::shared_ptr<const Model>(std::move(model));
}

Result<std::vector<Value>> NodeReplay::run(std::span<const Value> values, const std::vector<bool>& constants) {
  PX_CHECK(values.size() == reads_.size());
  std::vector<TypeInfo> types;
  for (size_t index = 0; index < values.size(); ++index) types.push_back(type_for(index, values[index]));
  const bool has_constants = std::ranges::find(constants, true) != constants.end();
  if (session_ == nullptr || has_constants || types != prepared_for_) {
    session_.reset();
    auto model = PX_TRY(model_of(values, constants));
    session_ = PX_TRY(executor_->prepare(std::move(model), options_));
    prepared_for_ = std::move(types);
  }
  std::vector<Value> given;
  for (size_t index = 0; index < values.size(); ++index) {
    const bool is_constant = index < constants.size() && constants[index] && values[index].is_tensor();
    if (!values[index].is_absent() && !is_constant) given.push_back(values[index]);
  }
  NullObserver nobody;
  std::vector<Value> results = PX_TRY(session_->run(given, nobody));
  if (has_constants) session_.reset();
  std::vector<Value> outputs(node_.outputs.size());
  size_t next = 0;
  for (size_t index = 0; index < outputs.size(); ++index) {
    if (node_.outputs[index] != kNoValue && next < results.size()) outputs[index] = std::move(results[next++]);
  }
  return outputs;
}

}  // namespace parallax::diff
