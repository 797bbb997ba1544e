// SPDX-License-Identifier: Apache-2.0
// Values that hold the same within one model, by nodes that hand on what they read: which of them are each other's
// counterparts once their roots are.
#pragma once

#include <cstdint>
#include <vector>

#include "inspector/diff/matching/matching.h"
#include "inspector/diff/matching/matching_search.h"

namespace parallax::diff {

// The values of each root, itself included, by its id.
std::vector<std::vector<int32_t>> aliases_of(const FlatGraph& flat);

// False where the declared types differ, or one is quantized and the other is not.
bool same_dtype(const FlatValue& a, const FlatValue& b);

// Pairs the members of two groups of aliases: of equal path, operator or type; the rest with the first of its type.
// `like` gives confidence and kind of the pairs.
void pair_aliases(const MatchSide& a, const MatchSide& b, const std::vector<int32_t>& group_a,
                  const std::vector<int32_t>& group_b, const ValueMatch& like, ModelMatching& result);

}  // namespace parallax::diff
