// SPDX-License-Identifier: Apache-2.0
// Inputs made initializers.
#include "inspector/transform/freeze_inputs.h"

#include <algorithm>

#include <fmt/format.h>

#include "inspector/model/link.h"
#include "inspector/transform/extract.h"

namespace parallax::transform {
namespace {

// The first version whose initializers need not be inputs as well (onnx/docs/IR.md, "Initializers").
constexpr int64_t kIrOfFrozenInputs = 4;

std::string input_names(const Graph& graph) {
  std::string names;
  for (const ValueId id : graph.inputs)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", value_at(graph, id).name);
  return names;
}

Status check_fit(const ValueDef& input, const Tensor& tensor) {
  const TypeInfo& declared = input.type;
  bool fits = declared.kind == TypeInfo::Kind::unknown || declared.dtype == tensor.dtype();
  if (fits && declared.dims.has_value()) {
    fits = declared.dims->size() == tensor.shape().rank();
    for (size_t axis = 0; fits && axis < declared.dims->size(); ++axis) {
      const Dim& dim = (*declared.dims)[axis];
      fits = !dim.is_known() || dim.value == tensor.shape()[axis];
    }
  }
  if (fits) return {};
  return usage_error(fmt::format("input '{}' is given {}{}; it must be {}", input.name, name_of(tensor.dtype()),
                                 tensor.shape().to_string(), to_string(declared)));
}

TypeInfo exact_type(const Tensor& tensor) {
  TypeInfo type = TypeInfo::tensor(tensor.dtype());
  type.dims.emplace();
  for (const int64_t dim : tensor.shape().dims()) type.dims->push_back({dim, {}});
  return type;
}

void freeze_input(Graph& graph, ValueId id, const Tensor& tensor) {
  ValueDef& input = graph.values[static_cast<size_t>(id)];
  std::erase(graph.inputs, id);
  input.type = exact_type(tensor);
  input.has_value_info = false;
  if (input.initializer_index >= 0) {  // its default
    graph.initializers[static_cast<size_t>(input.initializer_index)].tensor = tensor;
    return;
  }
  StoredTensor stored;
  stored.name = input.name;
  stored.tensor = tensor;
  graph.initializers.push_back(std::move(stored));
  graph.initializer_values.push_back(id);
}

}  // namespace

Result<std::shared_ptr<Model>> freeze_inputs(const Model& model, const std::map<std::string, Tensor>& values) {
  const std::shared_ptr<Model> frozen = copy_model(model);
  Graph& graph = frozen->graph;
  for (const auto& [name, tensor] : values) {
    const ValueId id = graph.find_value(name);
    if (id == kNoValue || std::ranges::find(graph.inputs, id) == graph.inputs.end())
      return usage_error(fmt::format("the model has no input '{}' (inputs: {})", name, input_names(graph)));
    PX_TRY(check_fit(value_at(graph, id), tensor));
    freeze_input(graph, id, tensor);
  }
  frozen->ir_version = std::max(frozen->ir_version, kIrOfFrozenInputs);
  return finish_model(frozen);
}

}  // namespace parallax::transform
