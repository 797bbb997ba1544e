// SPDX-License-Identifier: Apache-2.0
// Checks of a node against its operator's schema: of attributes and arity before a run, of the values' types at run
// time.
#pragma once

#include <span>

#include "inspector/base/result.h"
#include "inspector/model/ir.h"
#include "inspector/tensor/value.h"

namespace parallax {

// Number of inputs and outputs, required attributes, types of attributes. Errors: invalid_model.
Status check_node(const Node& node);

// Presence and types of the inputs (null: omitted), and that those of one type parameter agree. In double precision a
// float64 tensor stands for any float. Errors: execution.
Status check_arguments(const Node& node, std::span<const Value* const> inputs, bool carries_double);

}  // namespace parallax
