// SPDX-License-Identifier: Apache-2.0
// Counterfactuals: the results of a region with small changes, and the culprits that these show.
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

  // These interventions for another pair of values, whose region this is.
  Interventions at(const ValueMatch& target, const Region& region) const {
    return {runner_, target, instance_, region, limit_};
  }
  // The region of another pair of values, on the same values of A.
  Result<Region> region_of(const ValueMatch& target) const { return runner_.run(target.a, target.b, instance_); }

  // True where B computes A's results on A's values when it reads these constants instead of its own.
  bool agrees_with(const RegionRunner::Constants& constants) const;
  // True where B computes them when `changed` stands in place of its node.
  bool agrees_with_node(const LocatedNode& node, const Node& changed) const;
  // True where these constants leave a small part of the difference.
  bool brings_near(const RegionRunner::Constants& constants) const;
  // A's result for the value whose counterpart is B's `in_b`; absent where it is not available.
  Value made_in_a(int32_t in_a, int32_t in_b) const;
  // True where both compute the same when this node, of A or of B, returns one of its inputs.
  bool agrees_without(const LocatedNode& node, bool in_a) const;
  // True where the node's own model computes the same when the node returns its input.
  bool changes_nothing(const LocatedNode& node, bool in_a) const;
  // True where both compute the same when this DequantizeLinear returns what was quantized.
  bool agrees_without_quantization(const LocatedNode& dequantize) const;
  // True where B computes A's results on A's values when its node is defined as A's is, by A's constants or by its own.
  bool agrees_as_in_a(const LocatedNode& node_a, const LocatedNode& node_b, bool keeps_constants = false) const;
  // True where the choice between the two definitions is relevant in either model; true where neither can be run
  // instead of the other.
  bool is_operand_order_relevant(const LocatedNode& node_a, const LocatedNode& node_b) const;
  // True where their attributes alone are relevant, each reading its own constants.
  bool are_attributes_relevant(const LocatedNode& node_a, const LocatedNode& node_b) const;

 private:
  bool is_relevant(const LocatedNode& node_a, const LocatedNode& node_b, bool keeps_constants) const;
  double distance(const Value& expected, const Value& found) const;
  bool is_same(const Value& expected, const Result<Value>& found) const;

  const RegionRunner& runner_;
  const ValueMatch& target_;
  const Instance& instance_;
  const Region& region_;
  Limit limit_;
};

// The differences of a region: nodes that only one side has, those with different definitions, those in one position
// with two operators.
struct Differences {
  const std::vector<LocatedNode>&only_a, &only_b;
  const ChangedNodes &changed, &replaced;
};

// The culprits where both sides differ in one thing only: a node with another definition, the constants that B reads,
// another operator in one position, or one extra node (of those that only one side has). Empty where more differs.
std::vector<Culprit> culprits_by_intervention(const ModelSide& a, const ModelSide& b, const ModelMatching& matching,
                                              const Region& region, const Differences& differences,
                                              const Interventions& interventions);

// As after_constants; attributes that make no difference here (the factor of a bias that is all zeros) are no cause
// where constants differ as well.
std::vector<Culprit> after_pair(const ModelSide& a, const ModelSide& b, const ModelMatching& matching,
                                const LocatedNode& node_a, const LocatedNode& node_b,
                                const Interventions& interventions);

}  // namespace parallax::diff
