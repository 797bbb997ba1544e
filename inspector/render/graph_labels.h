// SPDX-License-Identifier: Apache-2.0
// Short texts for nodes, values and attributes that the text view, dot and reports share.
#pragma once

#include <string>
#include <string_view>

#include "inspector/model/ir.h"

namespace parallax {

// "[0.5, 1, 2]" for a tensor of up to `limit` elements; "" for larger ones.
std::string small_tensor_text(const TensorView& tensor, int64_t limit = 8);

// "axis=1", "perm=[0,2,1]", "value=float32[]:0.5", "then_branch={graph}"; long values are shortened with "...".
std::string attribute_text(const Attribute& attribute);

// "Add" for the standard domain, "com.microsoft.Gelu" otherwise.
std::string qualified_op(const Node& node);

// The content of a tensor of up to `limit` elements that is here, else its type and shape.
std::string constant_text(const StoredTensor& stored, int64_t limit);

// The content of a Constant: of a tensor as constant_text, of other attributes their value.
std::string constant_node_text(const Node& node, int64_t limit);

// The name as paths have it, in quotes where it could be taken for the content of a constant ("3").
std::string name_text(std::string_view name);

// That name, or for a small initializer or Constant its content.
std::string operand_text(const Graph& graph, ValueId value);

}  // namespace parallax
