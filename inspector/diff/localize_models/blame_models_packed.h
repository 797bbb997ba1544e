// SPDX-License-Identifier: Apache-2.0
// Packed weights: constants of several nodes of A side by side in one constant of B, as those of queries, keys and
// values in an Attention.
#pragma once

#include <optional>

#include "inspector/diff/localize_models/blame_models_culprits.h"
#include "inspector/diff/localize_models/blame_models_parts.h"

namespace parallax::diff {

// The node of A whose constant is the one that B has not packed: others of A are blocks of columns of one constant of a
// node that only B has, and with this one in a block that is left, B computes the same. Nothing where that proves no
// node.
std::optional<Culprit> find_wrongly_packed(const ModelSide& a, const ModelSide& b, const Parts& parts,
                                           const Interventions& interventions);

}  // namespace parallax::diff
