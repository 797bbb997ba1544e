// SPDX-License-Identifier: Apache-2.0
// Guilt: which nodes of a region, whose two sides make different things of the same values, are defined otherwise.
#pragma once

#include <string>
#include <vector>

#include "inspector/diff/localize_models/blame_models_regions.h"

namespace parallax::diff {

class Interventions;

struct Culprit {
  LocatedNode node;  // in A; in B where A has none
  std::string why;
  // Where operands are what differs: what B reads stands for `instead` of A, where A reads `wanted`.
  int32_t wanted = -1, instead = -1;
  std::string b_reads = {};  // its name in B
  bool is_draw = false;      // defined alike, but it draws at random
};

// At least one.
std::vector<Culprit> culprit_nodes(const ModelSide& a, const ModelSide& b, const ModelMatching& matching,
                                   const ValueMatch& target, const Region& region, const Interventions& interventions);

}  // namespace parallax::diff
