// SPDX-License-Identifier: Apache-2.0
// Suspects: the pairs of values whose two definitions may differ, by what the graphs and the matching tell without
// running anything; and how pairs in another order of axes are laid out.
#pragma once

#include <unordered_map>

#include "inspector/diff/localize_models/blame_models_effects.h"
#include "inspector/diff/localize_models/blame_models_regions.h"
#include "inspector/diff/localize_models/blame_models_unmatch.h"
#include "inspector/diff/matching/matching.h"
#include "inspector/diff/matching/path_links.h"

namespace parallax::diff {

class Suspects {
 public:
  // All of them outlive it.
  Suspects(const ModelSide& a, const ModelSide& b, const ModelMatching& matching, const ComparedValues& values,
           const RegionRunner& regions);

  // False where both sides do the same to the same: such a node can only hand on what it inherits.
  bool is_suspect(const ValueMatch& match) const;
  // In its elements, or in its shape where one side makes it of constants alone. False for what both were given.
  bool has_diverged(const ValueMatch& match) const;
  // Both are data: where these differ, their consumers show whether it is relevant.
  bool are_held(const ValueMatch& match) const { return a_.is_constant(match.a) && b_.is_constant(match.b); }
  // True for an output of the model, or of the body or function that has it.
  bool is_output(int32_t id) const {
    return a_.value_info(id).graph->values[static_cast<size_t>(a_.value_info(id).value)].is_graph_output;
  }
  bool reads_another_constant(const LocatedNode& node) const;

 private:
  bool reads_parted(const LocatedNode& node) const;

  const ModelSide &a_, &b_;
  const ModelMatching& matching_;
  const ComparedValues& values_;
  const RegionRunner& regions_;
  std::unordered_map<const Node*, const NodeMatch*> partners_;  // by either node
};

// Pairs with another order of axes, made where an optimizer has moved a Transpose: `regions` gives B's nodes A's values
// as B lays them out. What only moves elements is no part of a pair: it is parted, and judged together with what reads
// it; but where both transpose the same value, each in its way, that is no moved Transpose, and stays as it is. Errors:
// those of reading a dump.
Status lay_out_pairs(const ModelSide& a, const ModelSide& b, const ModelMatching& matching,
                     const ComparedValues& values, const Effects& effects, const PathLinks& links,
                     RegionRunner& regions);

}  // namespace parallax::diff
