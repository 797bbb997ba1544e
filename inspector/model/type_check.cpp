// SPDX-License-Identifier: Apache-2.0
// Binding of a schema's type parameters to the types of a node's inputs.
#include "inspector/model/type_check.h"

#include <algorithm>

#include "inspector/base/check.h"
#include "inspector/model/output_types.h"

namespace parallax {
namespace {

// A type parameter and the first input that gave it its type.
struct Binding {
  std::string_view parameter;
  const TypedInput* input = nullptr;
  size_t input_index = 0;
};

std::string input_text(size_t index, const TypedInput& input) {
  return "input " + std::to_string(index) + " ('" + std::string(input.name) + "')";
}

const Binding* binding_of(std::span<const Binding> bindings, std::string_view parameter) {
  const auto found = std::ranges::find(bindings, parameter, &Binding::parameter);
  return found == bindings.end() ? nullptr : &*found;
}

// True for a type that can be checked at all: its element type is known.
bool is_determined(const TypeInfo& type) {
  switch (type.kind) {
    case TypeInfo::Kind::unknown:
      return false;
    case TypeInfo::Kind::tensor:
    case TypeInfo::Kind::sparse_tensor:
      return type.dtype != DType::undefined;
    case TypeInfo::Kind::sequence:
    case TypeInfo::Kind::optional:
    case TypeInfo::Kind::map:
      return !type.inner.empty() && is_determined(type.inner.front());
    case TypeInfo::Kind::opaque:
      return true;
  }
  return false;
}

// Checks one input and binds its type parameter. Returns the conflict, empty where there is none.
std::string bind_input(const OpSchema& schema, size_t index, const TypedInput& input, std::vector<Binding>& bindings) {
  const FormalParameter* parameter = schema.input(index);
  if (parameter == nullptr || input.type == nullptr || !is_determined(*input.type)) return {};
  const auto type = schema_type_of(*input.type);
  if (!type || !parameter->types->contains(*type)) {
    return input_text(index, input) + " is " + to_string(without_dims(*input.type)) + ", but " +
           schema.versioned_name() + " takes " + to_string(*parameter->types) + " there";
  }
  const bool is_variable = schema.type_constraint(parameter->type) != nullptr;
  if (!is_variable || !parameter->homogeneous) return {};
  const Binding* bound = binding_of(bindings, parameter->type);
  if (bound == nullptr) {
    bindings.push_back({parameter->type, &input, index});
  } else if (!types_agree(*bound->input->type, *input.type)) {
    return input_text(bound->input_index, *bound->input) + " is " + to_string(without_dims(*bound->input->type)) +
           " and " + input_text(index, input) + " is " + to_string(without_dims(*input.type)) + ", but " +
           schema.versioned_name() + " wants one type for both (" + std::string(parameter->type) + ")";
  }
  return {};
}

TypeInfo output_type(const Node& node, size_t index, std::span<const TypedInput> inputs,
                     std::span<const Binding> bindings) {
  const FormalParameter* parameter = node.schema->output(index);
  if (parameter == nullptr) return {};
  if (TypeInfo type = output_type_by_rule(node, index, inputs); type.kind != TypeInfo::Kind::unknown) return type;
  if (parameter->homogeneous) {
    if (const Binding* bound = binding_of(bindings, parameter->type)) return without_dims(*bound->input->type);
  }
  const auto single = parameter->types->single();
  return single ? type_info_of(*single) : TypeInfo{};
}

// Attributes can ask for an output type that the operator cannot give (Cast-9 to a float8 type). A Constant gives what
// the file holds: Constant-1 speaks of floats alone, but exporters of its time wrote integers all the same.
std::string output_conflict(const Node& node, std::span<const TypeInfo> outputs) {
  if (node.op_type == "Constant") return {};
  for (size_t index = 0; index < outputs.size(); ++index) {
    const FormalParameter* parameter = node.schema->output(index);
    const auto type = schema_type_of(outputs[index]);
    if (parameter == nullptr || !type || parameter->types->contains(*type)) continue;
    return "output " + std::to_string(index) + " would be " + to_string(outputs[index]) + ", but " +
           node.schema->versioned_name() + " gives " + to_string(*parameter->types) + " there";
  }
  return {};
}

std::optional<SchemaType> with_form(const TypeInfo& type, TypeForm form) {
  if (type.kind != TypeInfo::Kind::tensor || type.dtype == DType::undefined) return std::nullopt;
  return SchemaType{form, type.dtype};
}

std::optional<SchemaType> map_type(const TypeInfo& map, TypeForm of_int64, TypeForm of_string) {
  if (map.inner.empty()) return std::nullopt;
  if (map.dtype == DType::int64) return with_form(map.inner.front(), of_int64);
  return map.dtype == DType::string ? with_form(map.inner.front(), of_string) : std::nullopt;
}

std::optional<SchemaType> sequence_type(const TypeInfo& element) {
  if (element.kind == TypeInfo::Kind::map) {
    return map_type(element, TypeForm::sequence_map_int64, TypeForm::sequence_map_string);
  }
  return with_form(element, TypeForm::sequence);
}

}  // namespace

NodeTypes check_node_types(const Node& node, std::span<const TypedInput> inputs) {
  PX_CHECK(node.schema != nullptr);
  NodeTypes result;
  std::vector<Binding> bindings;
  for (size_t index = 0; index < inputs.size() && result.conflict.empty(); ++index) {
    result.conflict = bind_input(*node.schema, index, inputs[index], bindings);
  }
  for (size_t index = 0; index < node.outputs.size(); ++index) {
    result.outputs.push_back(output_type(node, index, inputs, bindings));
  }
  if (result.conflict.empty()) result.conflict = element_type_problem(node);
  if (result.conflict.empty()) result.conflict = output_conflict(node, result.outputs);
  return result;
}

std::optional<SchemaType> schema_type_of(const TypeInfo& type) {
  switch (type.kind) {
    case TypeInfo::Kind::tensor:
      return with_form(type, TypeForm::tensor);
    case TypeInfo::Kind::sparse_tensor:
      return type.dtype == DType::undefined ? std::nullopt
                                            : std::optional(SchemaType{TypeForm::sparse_tensor, type.dtype});
    case TypeInfo::Kind::sequence:
      return type.inner.empty() ? std::nullopt : sequence_type(type.inner.front());
    case TypeInfo::Kind::map:
      return map_type(type, TypeForm::map_int64, TypeForm::map_string);
    case TypeInfo::Kind::optional: {
      if (type.inner.empty()) return std::nullopt;
      const TypeInfo& item = type.inner.front();
      if (item.kind != TypeInfo::Kind::sequence) return with_form(item, TypeForm::optional);
      return item.inner.empty() ? std::nullopt : with_form(item.inner.front(), TypeForm::optional_sequence);
    }
    case TypeInfo::Kind::unknown:
    case TypeInfo::Kind::opaque:
      return std::nullopt;
  }
  return std::nullopt;
}

TypeInfo type_info_of(SchemaType type) {
  const TypeInfo tensor = TypeInfo::tensor(type.element);
  switch (type.form) {
    case TypeForm::tensor:
      return tensor;
    case TypeForm::sparse_tensor:
      return {TypeInfo::Kind::sparse_tensor, type.element, std::nullopt, {}};
    case TypeForm::sequence:
      return TypeInfo::sequence(tensor);
    case TypeForm::optional:
      return TypeInfo::optional(tensor);
    case TypeForm::optional_sequence:
      return TypeInfo::optional(TypeInfo::sequence(tensor));
    case TypeForm::map_int64:
      return TypeInfo::map(DType::int64, tensor);
    case TypeForm::map_string:
      return TypeInfo::map(DType::string, tensor);
    case TypeForm::sequence_map_int64:
      return TypeInfo::sequence(TypeInfo::map(DType::int64, tensor));
    case TypeForm::sequence_map_string:
      return TypeInfo::sequence(TypeInfo::map(DType::string, tensor));
  }
  return {};
}

TypeInfo without_dims(TypeInfo type) {
  type.dims.reset();
  for (TypeInfo& inner : type.inner) inner = without_dims(std::move(inner));
  return type;
}

bool types_agree(const TypeInfo& a, const TypeInfo& b) {
  if (a.kind == TypeInfo::Kind::unknown || b.kind == TypeInfo::Kind::unknown) return true;
  if (a.kind != b.kind) return false;
  if (a.dtype != b.dtype && a.dtype != DType::undefined && b.dtype != DType::undefined) return false;
  return a.inner.empty() || b.inner.empty() || types_agree(a.inner.front(), b.inner.front());
}

}  // namespace parallax
