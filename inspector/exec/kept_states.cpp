// SPDX-License-Identifier: Apache-2.0
// Bindings checked once, and plain copies of values.
#include "inspector/exec/kept_states.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"

namespace parallax {
namespace {

Error wrong_binding(const StateBinding& binding, const std::string& problem) {
  return usage_error(fmt::format("state '{}' -> '{}': {}", binding.output, binding.input, problem));
}

std::string without_dims(TypeInfo type) {
  type.dims.reset();
  return to_string(type);
}

// Both are tensors of one type and rank, as far as the model tells.
Status check_types(const StateBinding& binding, const TypeInfo& input, const TypeInfo& output) {
  if (input.kind != TypeInfo::Kind::tensor || bits_of(input.dtype) % 8 != 0 || input.dtype == DType::string) {
    return wrong_binding(
        binding, fmt::format("the input is {}; a state must be a tensor of numbers of whole bytes", to_string(input)));
  }
  if (output.kind == TypeInfo::Kind::unknown) return {};
  if (output.kind != input.kind || (output.dtype != DType::undefined && output.dtype != input.dtype)) {
    return wrong_binding(binding, fmt::format("the output is {}, the input {}; both must have one type",
                                              without_dims(output), without_dims(input)));
  }
  if (input.dims.has_value() && output.dims.has_value() && input.dims->size() != output.dims->size()) {
    return wrong_binding(binding, fmt::format("the output has rank {}, the input {}; both must have one rank",
                                              output.dims->size(), input.dims->size()));
  }
  return {};
}

Result<size_t> growing_axis(const StateBinding& binding, const TypeInfo& input) {
  if (!input.dims.has_value())
    return wrong_binding(binding, "the input has no rank in the model; a state must have one");
  const auto rank = static_cast<int64_t>(input.dims->size());
  const int64_t axis = binding.axis < 0 ? binding.axis + rank : binding.axis;
  if (axis < 1 || axis >= rank) {
    return wrong_binding(
        binding, fmt::format("axis {} is out of range: the input has rank {}, its first axis is that of the batch",
                             binding.axis, rank));
  }
  const Dim& dim = (*input.dims)[static_cast<size_t>(axis)];
  if (dim.is_known()) {
    return wrong_binding(binding, fmt::format("axis {} of the input has the fixed length {}; a state grows along it",
                                              binding.axis, dim.value));
  }
  return static_cast<size_t>(axis);
}

Result<size_t> input_position(const Graph& graph, const StateBinding& binding) {
  const ValueId input = graph.find_value(binding.input);
  if (input == kNoValue)
    return wrong_binding(binding, fmt::format("graph '{}' has no input '{}'", graph.name, binding.input));
  const int32_t position = value_at(graph, input).input_index;
  if (position < 0)
    return wrong_binding(binding, fmt::format("'{}' is not an input of graph '{}'", binding.input, graph.name));
  return static_cast<size_t>(position);
}

Result<size_t> output_position(const Graph& graph, const StateBinding& binding) {
  const ValueId output = graph.find_value(binding.output);
  const auto found = std::ranges::find(graph.outputs, output);
  if (output == kNoValue || found == graph.outputs.end())
    return wrong_binding(binding, fmt::format("graph '{}' has no output '{}'", graph.name, binding.output));
  return static_cast<size_t>(found - graph.outputs.begin());
}

}  // namespace

Result<Tensor> take_rows(const Tensor& tensor, std::span<const int32_t> rows) {
  std::vector<int64_t> dims(tensor.shape().begin(), tensor.shape().end());
  const size_t row_bytes = dims[0] == 0 ? 0 : tensor.size_bytes() / static_cast<size_t>(dims[0]);
  dims[0] = static_cast<int64_t>(rows.size());
  const Shape shape = PX_TRY(Shape::create(dims));
  Tensor taken = PX_TRY(Tensor::allocate(tensor.dtype(), shape));
  for (size_t i = 0; i < rows.size() && row_bytes > 0; ++i) {
    std::memcpy(taken.mutable_data() + i * row_bytes, tensor.view().data + static_cast<size_t>(rows[i]) * row_bytes,
                row_bytes);
  }
  return taken;
}

Result<KeptStates> KeptStates::create(const Graph& graph, std::span<const StateBinding> bindings, WideStates wide) {
  KeptStates states;
  states.graph_name_ = graph.name;
  states.wide_ = wide;
  states.input_count_ = graph.inputs.size();
  std::set<size_t> inputs, outputs;
  for (const StateBinding& each : bindings) {
    Binding binding;
    binding.input = PX_TRY(input_position(graph, each));
    binding.output = PX_TRY(output_position(graph, each));
    binding.value = &value_at(graph, graph.inputs[binding.input]);
    PX_TRY(check_types(each, binding.value->type, graph.output_type(binding.output)));
    binding.axis = PX_TRY(growing_axis(each, binding.value->type));
    if (!inputs.insert(binding.input).second)
      return wrong_binding(each, fmt::format("input '{}' is bound twice", each.input));
    if (!outputs.insert(binding.output).second)
      return wrong_binding(each, fmt::format("output '{}' is bound twice", each.output));
    states.bindings_.push_back(binding);
  }
  states.values_.resize(bindings.size());
  return states;
}

Result<std::vector<Value>> KeptStates::inputs(std::span<const Value> given) const {
  std::vector<Value> all(given.begin(), given.end());
  if (given.size() != input_count_) return all;  // check_inputs tells
  for (size_t index = 0; index < bindings_.size(); ++index) {
    const Binding& binding = bindings_[index];
    if (!all[binding.input].is_absent()) {
      return usage_error(
          fmt::format("input '{}' of graph '{}' has a value; it is a state that the session keeps: give "
                      "no value, or set the state",
                      binding.value->name, graph_name_));
    }
    if (values_[index].is_absent()) {
      return usage_error(
          fmt::format("the state of input '{}' of graph '{}' has no value yet; reset or set the states "
                      "before the first run",
                      binding.value->name, graph_name_));
    }
    all[binding.input] = values_[index];
  }
  return all;
}

Status KeptStates::keep(std::vector<Value>& outputs) {
  for (const Binding& binding : bindings_) {
    if (!outputs[binding.output].is_tensor()) {
      return execution_error(
          fmt::format("output {} of graph '{}' is no tensor; it is kept as the state of input '{}', which must be one",
                      binding.output, graph_name_, binding.value->name));
    }
  }
  for (size_t index = 0; index < bindings_.size(); ++index)
    values_[index] = std::exchange(outputs[bindings_[index].output], Value());
  return {};
}

Result<std::vector<Shape>> KeptStates::empty_shapes(int64_t batch, int64_t capacity) const {
  if (batch < 0 || capacity < 0) {
    return usage_error(
        fmt::format("states cannot have batch {} and capacity {}; neither may be negative", batch, capacity));
  }
  std::vector<Shape> shapes;
  for (const Binding& binding : bindings_) {
    const std::vector<Dim>& declared = *binding.value->type.dims;
    std::vector<int64_t> dims;
    for (size_t axis = 0; axis < declared.size(); ++axis) {
      const bool is_free = axis == 0 || axis == binding.axis;
      if (!is_free && !declared[axis].is_known()) {
        return usage_error(
            fmt::format("axis {} of input '{}' has no fixed length in the model, so an empty state "
                        "cannot be made; set the state instead",
                        axis, binding.value->name));
      }
      if (axis == 0 && declared[axis].is_known() && declared[axis].value != batch) {
        return usage_error(fmt::format("batch {} does not fit input '{}', whose first dimension is {}", batch,
                                       binding.value->name, declared[axis].value));
      }
      dims.push_back(axis == 0 ? batch : is_free ? 0 : declared[axis].value);
    }
    shapes.push_back(PX_TRY(Shape::create(dims)));
  }
  return shapes;
}

Status KeptStates::reset(int64_t batch, int64_t capacity) {
  const std::vector<Shape> shapes = PX_TRY(empty_shapes(batch, capacity));
  std::vector<Value> fresh;
  for (size_t index = 0; index < shapes.size(); ++index)
    fresh.emplace_back(PX_TRY(Tensor::zeros(bindings_[index].value->type.dtype, shapes[index])));
  values_ = std::move(fresh);
  return {};
}

Status KeptStates::check_rows(std::span<const int32_t> rows) const {
  for (size_t index = 0; index < values_.size(); ++index) {
    if (values_[index].is_absent()) {
      return usage_error(fmt::format("the state of input '{}' has no value yet, so it has no rows to reorder",
                                     bindings_[index].value->name));
    }
    const int64_t count = values_[index].tensor().shape()[0];
    for (int32_t row : rows) {
      if (row >= 0 && row < count) continue;
      return usage_error(fmt::format("row {} is not there: the state of input '{}' has {} rows", row,
                                     bindings_[index].value->name, count));
    }
  }
  return {};
}

Status KeptStates::reorder(std::span<const int32_t> rows) {
  PX_TRY(check_rows(rows));
  std::vector<Value> taken;
  for (const Value& value : values_) taken.emplace_back(PX_TRY(take_rows(value.tensor(), rows)));
  values_ = std::move(taken);
  return {};
}

Status KeptStates::check_index(size_t index) const {
  if (index < values_.size()) return {};
  return usage_error(fmt::format("state {} is not there: the session keeps {}", index, values_.size()));
}

Status KeptStates::check_value(size_t index, const Value& value) const {
  PX_TRY(check_index(index));
  const ValueDef& input = *bindings_[index].value;
  const auto wrong = [&](const std::string& problem) {
    return usage_error(fmt::format("the state of input '{}' must be {}, got {}{}", input.name, to_string(input.type),
                                   value.is_absent() ? "nothing" : to_string(type_of(value)), problem));
  };
  if (!value.is_tensor()) return wrong("");
  const Tensor& tensor = value.tensor();
  const bool is_wide =
      wide_ == WideStates::accepted && tensor.dtype() == DType::float64 && is_floating(input.type.dtype);
  if (tensor.dtype() != input.type.dtype && !is_wide) return wrong("");
  if (!tensor.device().is_host()) return wrong(": it must be on the host");
  const std::vector<Dim>& dims = *input.type.dims;
  if (tensor.shape().rank() != dims.size()) return wrong(fmt::format(": rank {} is wrong", tensor.shape().rank()));
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis].is_known() && dims[axis].value != tensor.shape()[axis])
      return wrong(fmt::format(": dimension {} is wrong", axis));
  }
  return {};
}

Status KeptStates::set(size_t index, const Value& value) {
  PX_TRY(check_value(index, value));
  values_[index] = PX_TRY(value.tensor().clone());
  return {};
}

Result<Value> KeptStates::get(size_t index) const {
  PX_TRY(check_index(index));
  if (values_[index].is_absent())
    return usage_error(fmt::format("the state of input '{}' has no value yet; run, reset or set the states first",
                                   bindings_[index].value->name));
  return Value(PX_TRY(values_[index].tensor().clone()));
}

}  // namespace parallax
