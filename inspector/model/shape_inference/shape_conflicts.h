// SPDX-License-Identifier: Apache-2.0
// Shapes that an operator cannot take, as far as they are certain before a run.
#pragma once

#include <string>

#include "inspector/model/shape_inference/node_context.h"

namespace parallax {

// Why the node cannot be computed: a sentence without full stop that names its inputs as the operator's schema does.
// Empty where the shapes fit, where nothing is certain, and for operators without a rule.
std::string shape_conflict(NodeContext& context);

}  // namespace parallax
