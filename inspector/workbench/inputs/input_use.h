// SPDX-License-Identifier: Apache-2.0
// The use of an input in a graph, found by following its consumers: the basis for generating data that suit it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "inspector/model/ir.h"
#include "inspector/workbench/inputs/categories.h"

namespace parallax {

struct InputUse {
  enum class Kind : uint8_t {
    values,      // ordinary numbers
    indices,     // of a table with `limit` rows
    mask,        // 0 or 1, ones first
    condition,   // one boolean that steers If or Loop
    trip_count,  // of a Loop
    lengths,     // of sequences, at most `limit`
    shape,       // of a Reshape, Expand, ConstantOfShape, Tile
    positions,   // 0, 1, 2, ... along the last axis
    locations,   // 0, 1, 2, ... along `axis`, below `limit`: no index of a scattered axis twice
    tuples,      // rows 0 0, 1 1, 2 2, ... below `limit`: no element of several axes twice
    positive,    // small and not 0: divisors, steps
    parts,       // nearly equal, `limit` together
    scales,      // 1 for what looks like batch and channels, else 2
    listed,      // `elements`, again from the first after the last
    categories,  // what an encoder knows
  };
  Kind kind = Kind::values;
  int64_t limit = -1;
  std::string reason;  // for people: "indices of 'embed.weight' (320 rows)"
  int64_t axis = 0;
  std::vector<int64_t> elements = {};
  InputCategories categories = {};
  bool is_limit_known = false;  // of indices: else the table's size shows only in a run
};

// The meaning that `node` gives to what it reads as input number `slot`; nothing when it gives none.
std::optional<InputUse> meaning_at(const Graph& graph, const Node& node, size_t slot);
// True where `node` returns the elements of its first input unchanged, but for casts and bounds.
bool is_transparent(const Node& node);

InputUse find_input_use(const Graph& graph, ValueId input);

}  // namespace parallax
