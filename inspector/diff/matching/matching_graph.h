// SPDX-License-Identifier: Apache-2.0
// A model laid flat for matching: all its graphs, bodies and called functions as one list of values and one of nodes,
// aliases resolved, with hashes of what each value is made of and of what is made of it.
#pragma once

#include <cstdint>
#include <vector>

#include "inspector/diff/matching/matching.h"
#include "inspector/exec/value_table.h"

namespace parallax::diff {

using HashKey = uint64_t;

constexpr HashKey mix(HashKey a, HashKey b) {
  // The finalizer of MurmurHash3 over a sum that does not commute.
  HashKey h = a * 0x9E3779B97F4A7C15U + b + 0x632BE59BD9B4E019U;
  h = (h ^ (h >> 33)) * 0xFF51AFD7ED558CCDU;
  h = (h ^ (h >> 33)) * 0xC4CEB9FE1A85EC53U;
  return h ^ (h >> 33);
}
HashKey hash_text(std::string_view text);

struct FlatUse {
  int32_t node = -1;
  int32_t port = 0;
};

struct FlatValue {
  const ValueInfo* value_info = nullptr;
  const TypeInfo* type = nullptr;
  const TypeInfo* stands_for = nullptr;  // its own type; of a quantized root, that of its dequantized floats
  int32_t root = -1;                     // the value it is an alias of, itself where it is none
  int32_t producer = -1;
  int32_t port = 0;
  std::vector<FlatUse> uses;  // of roots, alias nodes passed through
  bool is_constant = false;   // follows from constants alone
  bool is_static = false;     // or from shapes
  bool clamps = false;        // passed on without its numbers below zero
  HashKey signature = 0;      // of graph inputs and of what holds data
  HashKey output = 0;         // of graph outputs
  HashKey made_of = 0;        // operators and attributes down to inputs and to constants' content
  HashKey kind_made_of = 0;   // the same, all constants alike
  HashKey used_for = 0;       // operators up to the outputs, with the constants' content
  HashKey kind_used_for = 0;  // the same without constants
  HashKey near_uses = 0;      // readers alone
  HashKey next_uses = 0;      // and their readers
};

struct FlatNode {
  const GraphValues* location = nullptr;
  NodeId id = kNoNode;
  HashKey op = 0;          // operator and domain; a part of a control-flow node: that part's name
  HashKey attributes = 0;  // of those that are not at their default
  bool is_part = false;    // enters or leaves a body, with the values of one port
  bool commutes = false;
  bool is_static = false;       // all its outputs are
  std::vector<int32_t> inputs;  // roots; -1 for omitted
  std::vector<int32_t> outputs;
  HashKey constants = 0;  // content of the constants it reads
};

struct FlatGraph {
  std::vector<FlatValue> values;  // by value id
  std::vector<FlatNode> nodes;    // in execution order
};

// How a model is laid flat.
struct FlatOptions {
  // These tell equal graph inputs and outputs of the two models by equal numbers, in the graph's order.
  std::vector<HashKey> inputs, outputs;
  // One of the two models computes in floats and the other is quantized: then a QuantizeLinear, and the
  // DequantizeLinear after it, pass on what they are given, and so does a Relu, for which a range that begins at zero
  // may stand.
  bool passes_quantized = false;
  const MatchOptions* watch = nullptr;
};
FlatGraph flatten(const ValueTable& table, const FlatOptions& options);

}  // namespace parallax::diff
