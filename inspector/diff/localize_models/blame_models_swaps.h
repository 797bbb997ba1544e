// SPDX-License-Identifier: Apache-2.0
// Swaps in the other model: outputs of one node, visible only at the nodes that read them; branches of an If.
#pragma once

#include <optional>
#include <vector>

#include "inspector/diff/localize_models/blame_models_ranking.h"
#include "inspector/diff/localize_models/blame_models_side.h"

namespace parallax::diff {

// Two outputs of one node that lead, each by a chain of nodes of one operand, to two given values.
struct CommonOrigin {
  LocatedNode node;
  size_t first_output = 0, second_output = 0;
};

// Nothing where the values come from different nodes, or from one output.
std::optional<CommonOrigin> common_origin(const ModelSide& side, int32_t first, int32_t second);

// Two roots, each reading what the other should, become one: the node before both that hands out its results the other
// way round. Roots that are one node's then are one.
void join_swapped_outputs(const ModelSide& a, bool names_agree, std::vector<ModelRoot>& roots);

// The Ifs of A each of whose branches holds the nodes of the other one in B.
std::vector<LocatedNode> find_swapped_branches(const ModelSide& a, const ModelSide& b);

}  // namespace parallax::diff
