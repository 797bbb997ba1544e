// SPDX-License-Identifier: Apache-2.0
// Inputs that say where a node's elements go and not what they are: shapes, axes, positions along an axis. Executors
// read them on the host.
#pragma once

#include <cstdint>

#include "inspector/model/ir.h"

namespace parallax {

enum class Placing : uint8_t {
  none,         // the input is computed with, or chooses by what the data hold
  by_location,  // what it says is seen in what the node makes of its other inputs
  by_shape,     // what it says is seen in the shape alone of what the node makes
};

// The part of `value` that `node` of `graph` reads, also in its bodies and in the function it calls: the least of all
// uses. `none` where it does not read it.
Placing placing_of(const Graph& graph, const Node& node, ValueId value);

}  // namespace parallax
