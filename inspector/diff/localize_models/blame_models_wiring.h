// SPDX-License-Identifier: Apache-2.0
// Wiring: the operands of two nodes that stand for each other, where these are no counterparts.
#pragma once

#include <optional>
#include <vector>

#include "inspector/diff/localize_models/blame_models_culprits.h"
#include "inspector/diff/localize_models/blame_models_parts.h"

namespace parallax::diff {

// Which values the two read.
struct OperandDifference {
  std::string text;  // empty where these stand for each other
  // The first different operand: B reads the counterpart of `instead`, where A reads `wanted`; -1 where it has no
  // counterpart.
  int32_t wanted = -1, instead = -1;
  std::string b_reads = {};  // its name in B
  // The first of the casts or quantizing nodes by which B hands it on, which reads the other value.
  LocatedNode handed_by = {};
  // B's value, where it is none of A's though B still makes the counterpart of `wanted`; else -1.
  int32_t left_for = -1;
};
OperandDifference operand_difference(const ModelSide& a, const LocatedNode& node_a, const ModelSide& b,
                                     const LocatedNode& node_b, const ModelMatching& matching);

// The node of B, among pairs whose operands differ, that reads another value in place of the one which B still makes,
// and would be right with that.
std::optional<Culprit> find_left(const ModelSide& a, const ModelSide& b, const ModelMatching& matching,
                                 const ChangedNodes& rewired, const Interventions& interventions);

// True where the inputs of one are the counterparts of the other's, with nothing between; constants are part of the
// definition.
bool reads_the_same(const ModelSide& a, const LocatedNode& node_a, const ModelSide& b, const LocatedNode& node_b,
                    const ModelMatching& matching);

// The values from which a value is computed by way of `nodes`, itself included.
std::vector<int32_t> sources_of(const ModelSide& side, int32_t id, const std::vector<LocatedNode>& nodes);

// Tells where two nodes read counterparts of each other, apart from nodes that only one side has.
class Wiring {
 public:
  Wiring(const ModelSide& a, const ModelSide& b, const ModelMatching& matching, const Parts& parts)
      : a_(a), b_(b), matching_(matching), parts_(parts) {}

  // The operands of A's node in whose position B's reads no counterpart; of operands that commute, in the order in
  // which more agree.
  std::vector<int32_t> other_operands(const LocatedNode& a, const LocatedNode& b) const;

 private:
  bool agrees(int32_t x, int32_t y) const;

  const ModelSide &a_, &b_;
  const ModelMatching& matching_;
  const Parts& parts_;
};

// A node of A whose weight a node of B reads, too, whatever its operator, and to which B gives another value: with A's,
// B computes the same. Nothing where no node alone explains the difference so.
std::optional<Culprit> reads_another_value(const ModelSide& a, const ModelSide& b, const ModelMatching& matching,
                                           const Region& region, const Parts& parts,
                                           const Interventions& interventions);

}  // namespace parallax::diff
