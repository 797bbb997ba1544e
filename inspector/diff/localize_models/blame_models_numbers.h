// SPDX-License-Identifier: Apache-2.0
// Numbers of nodes that only one model has: an attribute of a fused node and the constant or the attribute of its parts
// that it stands for.
#pragma once

#include <optional>

#include "inspector/diff/localize_models/blame_models_culprits.h"
#include "inspector/diff/localize_models/blame_models_parts.h"

namespace parallax::diff {

// The number that makes all of the difference: with A's in its place, B's nodes compute what A's do. Nothing where no
// single number does.
std::optional<Culprit> find_other_number(const ModelSide& a, const ModelSide& b, const Parts& parts,
                                         const Interventions& interventions);

}  // namespace parallax::diff
