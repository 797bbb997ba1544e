// SPDX-License-Identifier: Apache-2.0
// Trials: what a region would make if it were a little different, and what that says of who is guilty.
#pragma once

#include <vector>

#include "inspector/diff/comparison.h"
#include "inspector/diff/localize_models/blame_models_culprits.h"
#include "inspector/diff/localize_models/blame_models_parts.h"

namespace parallax::diff {

class Interventions {
 public:
  Interventions(const RegionRunner& runner, const ValueMatch& target, const Instance& instance, const Region& region,
                const Limit& limit)
      : runner_(runner), target_(target), instance_(instance), region_(region), limit_(limit) {}

  // Whether B makes what A makes of A's values when it reads these constants in place of its own.
  bool agrees_with(const RegionRunner::Constants& constants) const;
  // Whether that leaves a small part of what the two are apart.
  bool brings_near(const RegionRunner::Constants& constants) const;
  // What A makes of a value that B's `in_b` stands for; absent where it is not to be had.
  Value made_in_a(int32_t in_a, int32_t in_b) const;
  // Whether both make the same when this node, of A or of B, hands on the value it reads.
  bool agrees_without(const LocatedNode& node, bool in_a) const;
  // Whether the node's own model makes the same when it hands on the value it reads.
  bool changes_nothing(const LocatedNode& node, bool in_a) const;
  // Whether B makes what A makes of A's values when its node is defined as A's is, by A's constants or by its own.
  bool agrees_as_in_a(const LocatedNode& node_a, const LocatedNode& node_b, bool keeps_constants = false) const;
  // Whether it matters which of the two definitions stands in their place, in either model; true where none can be run
  // in the place of the other.
  bool is_operand_order_relevant(const LocatedNode& node_a, const LocatedNode& node_b) const;
  // The same of their attributes alone, each reading its own constants.
  bool attributes_matter(const LocatedNode& node_a, const LocatedNode& node_b) const;

 private:
  bool is_relevant(const LocatedNode& node_a, const LocatedNode& node_b, bool keeps_constants) const;
  bool is_same(const Value& expected, const Result<Value>& found) const;

  const RegionRunner& runner_;
  const ValueMatch& target_;
  const Instance& instance_;
  const Region& region_;
  Limit limit_;
};

// What differs in a region: nodes that only one side has, those that are defined otherwise, those that stand in one
// place and are of two operators.
struct Differences {
  const std::vector<LocatedNode>&only_a, &only_b;
  const ChangedNodes &changed, &replaced;
};

// Where both sides do the same but for one thing: a node that is defined otherwise, the constants that B reads, another
// operator in a place, or one node (of those that only one side has) too many. Empty where there is more to it.
std::vector<Culprit> guilty_by_trial(const ModelSide& a, const ModelSide& b, const ModelMatching& matching,
                                     const Region& region, const Differences& differences,
                                     const Interventions& interventions);

// As behind_constants; attributes that make no difference here (the factor of a bias that is all zeros) are not to
// blame where constants differ as well.
std::vector<Culprit> after_pair(const ModelSide& a, const ModelSide& b, const ModelMatching& matching,
                                const LocatedNode& node_a, const LocatedNode& node_b,
                                const Interventions& interventions);

}  // namespace parallax::diff
