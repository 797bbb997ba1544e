// SPDX-License-Identifier: Apache-2.0
// In what the definitions of two nodes differ, in words: operator, attributes, constants, operands; and nodes that only
// one of the models has.
#pragma once

#include <string>
#include <vector>

#include "inspector/diff/localize_models/blame_models_side.h"
#include "inspector/diff/matching/matching.h"

namespace parallax::diff {

// Operator, attributes and constants. Empty where nothing in them differs.
std::string definition_difference(const ModelSide& a, const LocatedNode& node_a, const ModelSide& b,
                                  const LocatedNode& node_b);

// The versions of one operator that the two nodes are of; empty where these are the same.
std::string version_difference(const Node& node_a, const Node& node_b);

// The constant with the largest difference of all that the two read. Empty where they read equal ones.
std::string constants_difference(const ModelSide& a, const LocatedNode& node_a, const ModelSide& b,
                                 const LocatedNode& node_b);

// The first element of two constants that differs and how many do; whether one is the other transposed, scaled or
// empty. Empty for equal ones.
std::string difference_of_constants(const Tensor& a, const Tensor& b);
// The difference after a colon, for the end of a sentence; empty where one is no tensor.
std::string difference_text(const Value& a, const Value& b);

}  // namespace parallax::diff
