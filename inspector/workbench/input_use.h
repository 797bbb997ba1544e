// What a graph does with one of its inputs, found by following its readers: the ground for generating data that suits
// its use.
#pragma once

#include <cstdint>
#include <string>

#include "inspector/model/ir.h"

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
  };
  Kind kind = Kind::values;
  int64_t limit = -1;
  std::string reason;  // for people: "indices of 'embed.weight' (320 rows)"
};

InputUse find_input_use(const Graph& graph, ValueId input);

}  // namespace parallax
