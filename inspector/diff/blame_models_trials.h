// Trials: what a region would make if it were a little different, and what that says of who is guilty.
#pragma once

#include <vector>

#include "inspector/diff/blame_models_guilt.h"
#include "inspector/diff/comparison.h"

namespace parallax::diff {

class Trials {
 public:
  Trials(const RegionRunner& runner, const ValueMatch& target, const Instance& instance, const Region& region,
         const Limit& limit)
      : runner_(runner), target_(target), instance_(instance), region_(region), limit_(limit) {}

  // Whether B makes what A makes of A's values when it reads these constants in place of its own.
  bool agrees_with(const RegionRunner::Constants& constants) const;
  // Whether both make the same when this node, of A or of B, hands on the value it reads.
  bool agrees_without(const PlacedNode& node, bool in_a) const;

 private:
  bool is_same(const Value& expected, const Result<Value>& found) const;

  const RegionRunner& runner_;
  const ValueMatch& target_;
  const Instance& instance_;
  const Region& region_;
  Limit limit_;
};

// Where both sides do the same by other nodes (those that only one has), but for one thing: the constants that B reads,
// or one node too many. Empty where there is more to it.
std::vector<Guilty> guilty_by_trial(const ModelSide& a, const ModelSide& b, const ModelMatching& matching,
                                    const Region& region, const std::vector<PlacedNode>& only_a,
                                    const std::vector<PlacedNode>& only_b, const Trials& trials);

}  // namespace parallax::diff
