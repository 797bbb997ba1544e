// SPDX-License-Identifier: Apache-2.0
// Checks of a node against its schema, so that functions of operators may rely on it.
#include "inspector/exec/signature.h"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "inspector/model/opset/op_schema.h"
#include "inspector/model/opset/opset_registry.h"

namespace parallax {
namespace {

// The type of a value in the words of schemas; nothing for types that no schema names.
std::optional<SchemaType> schema_type_of(const TypeInfo& type) {
  const auto element_of = [&](const TypeInfo& inner) { return inner.kind == TypeInfo::Kind::tensor; };
  switch (type.kind) {
    case TypeInfo::Kind::tensor:
      return SchemaType{TypeForm::tensor, type.dtype};
    case TypeInfo::Kind::sequence: {
      const TypeInfo& inner = type.inner[0];
      if (element_of(inner)) return SchemaType{TypeForm::sequence, inner.dtype};
      if (inner.kind != TypeInfo::Kind::map || !element_of(inner.inner[0])) return std::nullopt;
      return SchemaType{inner.dtype == DType::string ? TypeForm::sequence_map_string : TypeForm::sequence_map_int64,
                        inner.inner[0].dtype};
    }
    case TypeInfo::Kind::optional: {
      const TypeInfo& inner = type.inner[0];
      if (element_of(inner)) return SchemaType{TypeForm::optional, inner.dtype};
      if (inner.kind != TypeInfo::Kind::sequence || !element_of(inner.inner[0])) return std::nullopt;
      return SchemaType{TypeForm::optional_sequence, inner.inner[0].dtype};
    }
    case TypeInfo::Kind::map:
      if (!element_of(type.inner[0])) return std::nullopt;
      return SchemaType{type.dtype == DType::string ? TypeForm::map_string : TypeForm::map_int64, type.inner[0].dtype};
    default:
      return std::nullopt;
  }
}

constexpr uint32_t floating_mask() {
  uint32_t mask = 0;
  for (DType dtype :
       {DType::float32, DType::float64, DType::float16, DType::bfloat16, DType::float8e4m3fn, DType::float8e4m3fnuz,
        DType::float8e5m2, DType::float8e5m2fnuz, DType::float8e8m0, DType::float4e2m1}) {
    mask |= element_bit(dtype);
  }
  return mask;
}

// A bare tensor or sequence may stand where an optional is taken: it is one that has an element.
bool allows(const TypeSet& types, SchemaType type, bool carries_double) {
  if (types.contains(type)) return true;
  if (type.form == TypeForm::tensor && allows(types, {TypeForm::optional, type.element}, carries_double)) return true;
  if (type.form == TypeForm::sequence && allows(types, {TypeForm::optional_sequence, type.element}, carries_double))
    return true;
  return carries_double && type.element == DType::float64 && (types.elements(type.form) & floating_mask()) != 0;
}

bool is_required(const OpSchema& schema, size_t index) {
  const FormalParameter* parameter = schema.input(index);
  if (parameter == nullptr || parameter->option == ParameterOption::optional) return false;
  return parameter->option == ParameterOption::single || index < schema.min_inputs;
}

}  // namespace

Status check_node(const Node& node) {
  const OpSchema& schema = *node.schema;
  if (node.inputs.size() < schema.min_inputs || node.inputs.size() > schema.max_inputs)
    return invalid_model(fmt::format("it has {} inputs; it must have {} to {}", node.inputs.size(), schema.min_inputs,
                                     schema.max_inputs == SIZE_MAX ? "any number" : std::to_string(schema.max_inputs)));
  if (node.outputs.size() < schema.min_outputs || node.outputs.size() > schema.max_outputs)
    return invalid_model(
        fmt::format("it has {} outputs; it must have {} to {}", node.outputs.size(), schema.min_outputs,
                    schema.max_outputs == SIZE_MAX ? "any number" : std::to_string(schema.max_outputs)));
  for (const AttributeSchema& attribute : schema.attributes) {
    const Attribute* given = find_attribute(node, attribute.name);
    if (given == nullptr && attribute.required)
      return invalid_model(fmt::format("attribute '{}' is missing; it must be given", attribute.name));
    if (given != nullptr && given->type != attribute.type) {
      return invalid_model(fmt::format("its attribute '{}' is of type {}, it must be {}", attribute.name,
                                       name_of(given->type), name_of(attribute.type)));
    }
  }
  for (const Attribute& attribute : node.attributes) {
    if (schema.attribute(attribute.name) == nullptr) {
      return invalid_model(fmt::format("it has an attribute '{}' that the operator does not know", attribute.name));
    }
  }
  return {};
}

Status check_arguments(const Node& node, std::span<const Value* const> inputs, bool carries_double) {
  const OpSchema& schema = *node.schema;
  std::map<std::string_view, TypeInfo> bound;  // type parameter -> form and element type it stands for in this call
  for (size_t index = 0; index < inputs.size(); ++index) {
    const FormalParameter* parameter = schema.input(index);
    if (parameter == nullptr) continue;
    if (inputs[index] == nullptr || inputs[index]->is_absent()) {
      if (!is_required(schema, index)) continue;
      return execution_error(fmt::format("input '{}' ({}) has no value; it must have one", parameter->name, index));
    }
    TypeInfo type = type_of(*inputs[index]);
    const auto schema_type = schema_type_of(type);
    if (!schema_type.has_value() || !allows(*parameter->types, *schema_type, carries_double))
      return execution_error(fmt::format("input '{}' ({}) is {}; it must be {}", parameter->name, index,
                                         to_string(type), to_string(*parameter->types)));
    type.dims.reset();
    if (!parameter->homogeneous || !type.inner.empty()) continue;
    const auto [location, is_new] = bound.try_emplace(parameter->type, type);
    if (!is_new && location->second.kind == type.kind && location->second.dtype != type.dtype)
      return execution_error(fmt::format("input '{}' ({}) is {}; it must be {}, as an earlier input of the same type",
                                         parameter->name, index, to_string(type), to_string(location->second)));
  }
  return {};
}

}  // namespace parallax
