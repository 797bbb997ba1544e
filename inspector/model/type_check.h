// SPDX-License-Identifier: Apache-2.0
// Types of one node: do its inputs fit the operator's schema and each other, and what types do its outputs have?
// Shapes are the business of inspector/model/shape_inference, which calls this for every node of a model.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "inspector/model/ir.h"
#include "inspector/model/opset/op_schema.h"

namespace parallax {

// One input of a node; `type` is null where the input is omitted.
struct TypedInput {
  std::string_view name;
  const TypeInfo* type = nullptr;
};

struct NodeTypes {
  // One for each output of the node, without dimensions; unknown where neither the schema nor an attribute determines
  // it (the outputs of If, Loop, Scan and SequenceMap depend on their bodies).
  std::vector<TypeInfo> outputs;
  std::string conflict;  // a sentence without full stop; empty where all types fit
};

// The node must have a schema. Inputs of unknown type fit everything.
NodeTypes check_node_types(const Node& node, std::span<const TypedInput> inputs);

// A declared type in the words of schemas; nothing where its element is unknown or no schema has its form.
std::optional<SchemaType> schema_type_of(const TypeInfo& type);
TypeInfo type_info_of(SchemaType type);

// The type without any dimensions, in its inner types too.
TypeInfo without_dims(TypeInfo type);
// True where both can be the type of one value: equal where both are known, not counting dimensions.
bool types_agree(const TypeInfo& a, const TypeInfo& b);

}  // namespace parallax
