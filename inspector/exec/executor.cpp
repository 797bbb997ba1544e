// SPDX-License-Identifier: Apache-2.0
// Parts that all executors share: the description of a run and the check of its inputs.
#include "inspector/exec/executor.h"

#include <unordered_map>

#include <fmt/format.h>

#include "inspector/model/io/import.h"

namespace parallax {
namespace {

std::string describe(const Value& value) {
  if (value.is_absent()) return "nothing";
  return to_string(type_of(value));
}

Error wrong_input(const Graph& graph, const ValueDef& input, const Value& value, std::string_view problem) {
  return usage_error(fmt::format("input '{}' of graph '{}' must be {}, got {}{}", input.name, graph.name,
                                 to_string(input.type), describe(value), problem));
}

bool kind_fits(const TypeInfo& declared, const Value& value) {
  switch (declared.kind) {
    case TypeInfo::Kind::tensor:
    case TypeInfo::Kind::sparse_tensor:
      return value.is_tensor() && (declared.dtype == DType::undefined || value.tensor().dtype() == declared.dtype);
    case TypeInfo::Kind::sequence:
      return value.is_sequence();
    case TypeInfo::Kind::map:
      return value.is_map();
    default:
      return true;  // unknown and opaque are the node's business; an optional may be given bare, absent or wrapped
  }
}

using NamedDims = std::unordered_map<std::string, std::pair<int64_t, std::string>>;  // name -> size, input that set it

Status check_dims(const Graph& graph, const ValueDef& input, const Value& value, NamedDims& named) {
  if (!value.is_tensor() || !input.type.dims.has_value()) return {};
  const Shape& shape = value.tensor().shape();
  const std::vector<Dim>& dims = *input.type.dims;
  if (shape.rank() != dims.size())
    return wrong_input(graph, input, value, fmt::format(": rank {} is wrong", shape.rank()));
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis].is_known() && dims[axis].value != shape[axis]) {
      return wrong_input(graph, input, value, fmt::format(": dimension {} is wrong", axis));
    }
    // An empty tensor agrees with any size: the past of a first step, which its branch does not read.
    if (dims[axis].name.empty() || shape[axis] == 0) continue;
    const auto [location, is_new] = named.try_emplace(dims[axis].name, shape[axis], input.name);
    if (is_new || location->second.first == shape[axis]) continue;
    return wrong_input(graph, input, value,
                       fmt::format(": dimension '{}' was {} in input '{}'", dims[axis].name, location->second.first,
                                   location->second.second));
  }
  return {};
}

}  // namespace

RunInfo describe_run(const Executor& executor, const RunOptions& options, std::shared_ptr<const Model> model) {
  RunInfo run;
  run.executor = executor.name();
  run.device = executor.device();
  run.settings = executor.settings(options);
  run.model_sha256 = model_sha256(*model);
  run.model = std::move(model);
  return run;
}

Status check_inputs(const Graph& graph, std::span<const Value> inputs) {
  if (inputs.size() != graph.inputs.size()) {
    return usage_error(
        fmt::format("graph '{}' has {} inputs, got {} values", graph.name, graph.inputs.size(), inputs.size()));
  }
  NamedDims named;
  for (size_t index = 0; index < inputs.size(); ++index) {
    const ValueDef& input = graph.values[static_cast<size_t>(graph.inputs[index])];
    const Value& value = inputs[index];
    if (value.is_absent()) {
      const bool has_default = input.initializer_index >= 0 || input.sparse_initializer_index >= 0;
      if (has_default || input.type.kind == TypeInfo::Kind::optional) continue;
      return usage_error(fmt::format("input '{}' of graph '{}' has no value: it must be {}", input.name, graph.name,
                                     to_string(input.type)));
    }
    if (!kind_fits(input.type, value)) return wrong_input(graph, input, value, "");
    PX_TRY(check_dims(graph, input, value, named));
  }
  return {};
}

}  // namespace parallax
