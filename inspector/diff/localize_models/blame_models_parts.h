// SPDX-License-Identifier: Apache-2.0
// The parts of a region: nodes that both sides have, changed ones, those of two operators at one position, and what
// only one side has.
#pragma once

#include <utility>
#include <vector>

#include "inspector/diff/localize_models/blame_models_regions.h"
#include "inspector/diff/matching/matching.h"

namespace parallax::diff {

constexpr int kMostFolded = 64;  // consecutive nodes that an optimizer may have folded

using ChangedNodes = std::vector<std::pair<LocatedNode, LocatedNode>>;  // of A, of B

struct Parts {
  std::vector<LocatedNode> only_a, only_b;
  ChangedNodes paired;
  ChangedNodes changed;
  ChangedNodes replaced;  // at one position, by another operator
};

Parts take_apart(const ModelSide& a, const ModelSide& b, const ModelMatching& matching, const ValueMatch& target,
                 const Region& region);

// Hands on what it reads: no part of a region.
bool is_identity(const LocatedNode& node);
bool has(const std::vector<LocatedNode>& nodes, const LocatedNode& node);
DType type_made(const LocatedNode& node);
// A cast to something narrower (half precision, integers) that is undone at once: it alone is what B has more.
const LocatedNode* find_round_trip(const std::vector<LocatedNode>& casts);
// One makes numbers and the other conditions or indices: neither replaces the other.
bool make_other_kinds(const LocatedNode& a, const LocatedNode& b);
// True for a value of constants, shapes and types alone: an optimizer may know it, whatever the inputs are.
bool may_be_folded(const ModelSide& side, int32_t id, int depth = 0);

}  // namespace parallax::diff
