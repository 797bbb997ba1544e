// SPDX-License-Identifier: Apache-2.0
// Shrinking: a region without what stands before the last values that both sides make alike, and its target moved to
// the first pair of values that makes all of the difference.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "inspector/diff/localize_models/blame_models_regions.h"

namespace parallax::diff {

class Interventions;

// Values inside a region that are equal on A's values though no structure pairs them, by value id of A and of B.
using EqualValues = std::vector<std::pair<int32_t, int32_t>>;

// Removes the nodes before such values from both lists of nodes of the region. Two values are equal when their elements
// are, in order, to thresholds::kSameDefinition, whatever their shapes and float types; of several that a chain of
// views makes of one, the first: a view that moves something else remains in the region.
EqualValues shrink(const ModelSide& a, const ModelSide& b, const ValueMatch& target, Region& region);

// A pair of values inside the shrunken region that stand for each other and make all of the difference: B's result is
// A's where B goes on with A's value. Nothing where no pair does.
std::optional<ValueMatch> find_earlier_target(const ValueMatch& target, const Region& region,
                                              const Interventions& interventions);

}  // namespace parallax::diff
