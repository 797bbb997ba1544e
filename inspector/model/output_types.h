// SPDX-License-Identifier: Apache-2.0
// Output types that a schema leaves open and the node's attributes or the form of its inputs decide (Cast, SequenceAt,
// ...).
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "inspector/model/ir.h"
#include "inspector/model/type_check.h"

namespace parallax {

// The type of the output at `index`, without dimensions; unknown where no rule speaks of it.
TypeInfo output_type_by_rule(const Node& node, size_t index, std::span<const TypedInput> inputs);

// Names the attribute that should hold an element type and does not ("attribute 'to' is 99, which is no element type");
// empty where there is none.
std::string element_type_problem(const Node& node);

}  // namespace parallax
