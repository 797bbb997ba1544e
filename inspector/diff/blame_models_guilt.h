// Guilt: which nodes of a region, whose two sides make different things of the same values, are defined otherwise.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "inspector/diff/blame_models_regions.h"

namespace parallax::diff {

struct Guilty {
  PlacedNode node;  // in A; in B where A has none
  std::string why;
  // Where operands are what differs: what B reads stands for `instead` of A, where A reads `wanted`.
  int32_t wanted = -1, instead = -1;
  std::string b_reads = {};  // its name in B
};

// Whether B still makes something else of A's values when it reads these constants in place of its own.
using DiffersWith = std::function<bool(const RegionRunner::Constants& constants)>;

// At least one.
std::vector<Guilty> guilty_nodes(const ModelSide& a, const ModelSide& b, const ModelMatching& matching,
                                 const ValueMatch& target, const Region& region, const DiffersWith& differs_with);

}  // namespace parallax::diff
