// SPDX-License-Identifier: Apache-2.0
// The least work of a node: the bytes that it reads and writes, the arithmetic operations of its definition. With a
// time they give rates to compare with a machine's limits.
#pragma once

#include <cstdint>
#include <span>

#include "inspector/model/ir.h"

namespace parallax {

struct NodeCost {
  int64_t bytes = 0;  // of all inputs and outputs, each once
  int64_t flops = 0;  // a multiplication and an addition count as two; 0 where elements are only moved
};

// The bytes of all that these types describe, each once.
int64_t bytes_of(std::span<const TypeInfo> types);

// Types with known dimensions; what is absent or no tensor has kind or dtype unknown and counts nothing.
NodeCost cost_of_node(const Node& node, std::span<const TypeInfo> inputs, std::span<const TypeInfo> outputs);

}  // namespace parallax
