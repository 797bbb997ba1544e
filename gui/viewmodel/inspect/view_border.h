// SPDX-License-Identifier: Apache-2.0
// The values that cross the border of a block: what it reads from outside, and what it makes for others.
#pragma once

#include <string>
#include <vector>

#include "inspector/render/scope_items.h"

namespace parallax {

// A value in the graph that defines it.
struct BorderValue {
  const Graph* graph = nullptr;
  std::string scope;  // static frames of that graph: "loop.body[*]//"
  ValueId value = kNoValue;
};

struct Border {
  std::vector<BorderValue> inputs;   // of a node its arguments in order (an omitted one has no value)
  std::vector<BorderValue> outer;    // further values that the bodies of a node read
  std::vector<BorderValue> outputs;  // in order of the graph's values; of a node and a body in their own order
  std::vector<BorderValue> weights;  // initializers that a group reads
};

// `item` is a group, a body or a node; an input or output of a graph has no border.
Border border_of(const GraphItems& items, int32_t item);

// The value of the graph in which `item` stands, in the graph that defines it: bodies read values of graphs around
// them.
BorderValue origin_of(const GraphItems& items, int32_t item, ValueId value);

// "loop.body[*]//x".
std::string path_of(const BorderValue& value);

}  // namespace parallax
