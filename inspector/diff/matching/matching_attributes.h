// SPDX-License-Identifier: Apache-2.0
// Hashes of what defines a node besides its inputs.
#pragma once

#include "inspector/diff/matching/matching_graph.h"
#include "inspector/model/ir.h"
#include "inspector/model/opset/op_schema.h"

namespace parallax::diff {

// Attributes that say something: bodies and defaults are left out, a negative axis is counted from the front where the
// rank of the first input is known.
HashKey hash_attributes(const Graph& graph, const Node& node);
// True for the value that an attribute's schema (or null) has by default.
bool is_default(const Attribute& attribute, const AttributeSchema* schema);
HashKey hash_operator(const Node& node);
HashKey hash_standard_operator(std::string_view op_type);
// Element type, dimensions but those of 1, and elements; type and dimensions alone where a dump has left the rest out.
HashKey hash_tensor(const StoredTensor& stored);
// The hash of a Constant's value.
HashKey hash_constant(const Node& node);
bool commutes(const Node& node);

}  // namespace parallax::diff
