// SPDX-License-Identifier: Apache-2.0
// Writes models and inputs for a program.
#include "inspector/executors/foreign/given_model.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "inspector/base/output_group.h"
#include "inspector/dump/tensor_files/npy.h"
#include "inspector/model/io/export.h"
#include "inspector/model/io/import.h"
#include "inspector/model/link.h"
#include "inspector/model/value_names.h"
#include "inspector/transform/extract.h"
#include "inspector/transform/freeze_inputs.h"

namespace parallax::foreign {
namespace {

bool may_be_output(const TypeInfo& type) {
  if (type.kind == TypeInfo::Kind::tensor) return type.dtype != DType::undefined;
  return type.kind == TypeInfo::Kind::sequence || type.kind == TypeInfo::Kind::map;
}

}  // namespace

Result<std::shared_ptr<const Model>> first_nodes(const std::shared_ptr<const Model>& model, size_t count,
                                                 const NamedInputs& inputs) {
  std::shared_ptr<const Model> whole = model;
  std::map<std::string, Tensor> frozen;
  for (const ValueId id : model->graph.inputs) {
    const ValueDef& input = value_at(model->graph, id);
    const auto given = inputs.find(input.name);
    if (input.initializer_index >= 0 && given != inputs.end() && given->second.is_tensor())
      frozen.emplace(input.name, given->second.tensor());
  }
  if (!frozen.empty()) whole = PX_TRY(transform::freeze_inputs(*model, frozen));
  const auto& order = whole->graph.order;
  const size_t taken = std::min(count, order.size());
  const transform::Part part =
      transform::part_of_nodes(PX_TRY(transform::find_location(whole, {})),
                               std::vector<NodeId>(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(taken)));
  return std::shared_ptr<const Model>(PX_TRY(transform::extract_model(part)));
}

std::shared_ptr<const Model> with_outputs(const std::shared_ptr<const Model>& model,
                                          std::span<const std::string> names) {
  const ValueNames by_name = values_by_name(model->graph);
  std::vector<ValueId> added;
  for (const std::string& name : names) {
    const ValueId id = find_value(by_name, name);
    if (id != kNoValue && !value_at(model->graph, id).is_graph_output && may_be_output(value_at(model->graph, id).type))
      added.push_back(id);
  }
  if (added.empty()) return model;
  std::shared_ptr<Model> made = copy_model(*model);
  Graph& graph = made->graph;
  graph.outputs.insert(graph.outputs.end(), added.begin(), added.end());
  for (const ValueId id : added)
    graph.values[static_cast<size_t>(id)].has_value_info = false;  // an output has no value_info of its own
  graph.inferred_outputs.clear();
  link_graph(graph);
  return made;
}

Result<std::string> model_file(const Model& model, const std::string& path) {
  if (model.file != nullptr && model.path.ends_with(".onnx")) {
    std::error_code error;
    const auto own = std::filesystem::absolute(model.path, error);
    if (!error && std::filesystem::is_regular_file(own, error)) return own.string();
  }
  PX_TRY(export_model(model, path));
  return path;
}

Result<InputFiles> write_inputs(const Graph& graph, const NamedInputs& inputs, const std::string& folder, int number) {
  InputFiles files;
  files.data_set = fmt::format("{}/test_data_set_{}", folder, number);
  PX_TRY(make_output_folder(files.data_set));
  std::vector<NamedValue> given;
  bool fits_numpy = true;
  for (size_t index = 0; index < graph.inputs.size(); ++index) {
    const auto found = inputs.find(value_at(graph, graph.inputs[index]).name);
    if (found == inputs.end() || found->second.is_absent()) continue;
    const auto& [name, value] = *found;
    PX_TRY(write_value_file(fmt::format("{}/input_{}.pb", files.data_set, index), {name, value}));
    fits_numpy = fits_numpy && value.is_tensor() && refusal_of_npy(value.tensor()).empty();
    given.push_back({name, value});
  }
  if (!fits_numpy) return files;
  files.archive = fmt::format("{}/inputs-{}.npz", folder, number);
  PX_TRY(write_npz(files.archive, given));
  return files;
}

}  // namespace parallax::foreign
