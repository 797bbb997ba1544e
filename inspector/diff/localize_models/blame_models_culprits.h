// SPDX-License-Identifier: Apache-2.0
// Culprits: the nodes with different definitions in a region whose two sides compute different results from the same
// values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "inspector/diff/localize_models/blame_models_regions.h"

namespace parallax::diff {

class Interventions;

struct Culprit {
  LocatedNode node;  // in A; in B where A has none
  std::string why;
  // The operands, where they differ: B reads the counterpart of `instead`, where A reads `wanted`.
  int32_t wanted = -1, instead = -1;
  std::string b_reads = {};  // its name in B
  bool is_draw = false;      // defined alike, but it draws at random
  // B's node that stands for it, where the region tells more than the matching; or that B has none.
  LocatedNode node_b = {};
  bool is_missing_in_b = false;
  bool is_of_stored_values = false;  // as in Cause
};

inline Culprit missing_in_b(const LocatedNode& node, std::string_view evidence = {}) {
  return {.node = node,
          .why = fmt::format("B has no {} node here{}", node.node().op_type, evidence),
          .is_missing_in_b = true};
}

// At least one. The region is shrunk to what stands after the last values that both sides make alike.
std::vector<Culprit> culprit_nodes(const ModelSide& a, const ModelSide& b, const ModelMatching& matching,
                                   const ValueMatch& target, const Region& region, const Interventions& interventions);

}  // namespace parallax::diff
