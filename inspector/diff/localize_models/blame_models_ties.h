// SPDX-License-Identifier: Apache-2.0
// Quantized values that two definitions make alike, but for elements between two steps.
#pragma once

#include "inspector/diff/localize_models/blame_models_regions.h"

namespace parallax::diff {

// True where both sides of a region made the same 8-bit values: signed and unsigned ones count as the same at a
// distance of 128, and elements may differ by one step where the quantized number is next to the middle of the two.
// `made_a` and `made_b` are the nodes that made them.
bool quantize_alike(const Region& region, const LocatedNode& made_a, const LocatedNode& made_b);

// True where a value consists of steps already: made by a DequantizeLinear, or moved after one.
bool holds_steps(const ModelSide& side, int32_t id);

// Two nodes of one operation whose constants are the same, or the same numbers quantized as int8 in one model and as
// uint8 in the other, the zero points among them.
bool differ_by_step(const ModelSide& a, const LocatedNode& node_a, const ModelSide& b, const LocatedNode& node_b);

}  // namespace parallax::diff
