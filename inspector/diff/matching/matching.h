// SPDX-License-Identifier: Apache-2.0
// Matching: which value of one model's graph stands for which of another's. By path and name where these mean the same
// in both, by structure where they do not: what a value is made of, and what is made of it. Independent of names and of
// the order of nodes; Identity, casts, calls of functions, folded constants and fused nodes do not stop it. Where
// nearly all names mean the same, likeness alone pairs no value with another than the one that has its name.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "inspector/base/cancel.h"
#include "inspector/diff/comparison.h"
#include "inspector/exec/value_table.h"

namespace parallax {

struct ValueMatch {
  int32_t a = -1;  // value ids
  int32_t b = -1;
  MatchedBy how = MatchedBy::structure;
  double confidence = 1;  // 1: made alike from alike inputs; less: the less agrees
  bool is_extra = false;  // one of the two has a nearer counterpart: one value stands for several of the other graph
};

// A node of one graph and its counterpart: they do the same, or one replaced the other. Positions are those of the
// value tables.
struct NodeMatch {
  const GraphValues* location_a = nullptr;
  NodeId a = kNoNode;
  const GraphValues* location_b = nullptr;
  NodeId b = kNoNode;
  bool is_same_definition = true;  // operator, attributes, and constants it reads
};

struct ModelMatching {
  std::vector<ValueMatch> values;  // in A's order of values; the nearest counterpart of each before extra ones
  std::vector<NodeMatch> nodes;    // in A's order
  std::vector<int32_t> b_of_a;     // nearest counterpart by value id, -1 without
  std::vector<int32_t> a_of_b;
  bool names_agree = true;  // what has the same structure has the same name in general
};

struct MatchOptions {
  std::function<void()> on_node;  // called for each node of A, then of B, with whose content the matching begins
  CancelToken cancel;             // once it is cancelled, the matching returns soon, and is incomplete
};

// Time is linear in the number of values, but for graphs of many equal parts that nothing tells apart.
ModelMatching match_models(const ValueTable& a, const ValueTable& b, const MatchOptions& options = {});

// Position in A's list of graph inputs (or outputs) for each of B's, -1 where there is none: by name; where no name of
// B's is known in A, in order among those of equal type. Where the names leave one input without a default on each
// side, and their types and shapes fit together, these two.
struct SignatureMatch {
  std::vector<int32_t> a_of_b;
  bool by_position = false;
  int32_t paired_last = -1;  // of B's, the one that was paired as the last
};
SignatureMatch match_inputs(const Graph& a, const Graph& b);
SignatureMatch match_outputs(const Graph& a, const Graph& b);

}  // namespace parallax
