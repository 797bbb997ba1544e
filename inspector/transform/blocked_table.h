// SPDX-License-Identifier: Apache-2.0
// A table of weights that com.microsoft's operators hold quantized in blocks along its rows, with one number an
// element.
#pragma once

#include <cstdint>
#include <optional>

#include "inspector/model/ir.h"

namespace parallax::transform {

struct BlockedTable {
  int64_t rows = 0, columns = 0, blocks = 0, block = 0;  // `blocks` of a row, of which the last may be longer than it
  Tensor numbers;                                        // [rows * blocks, block], uint8 or int8
  Tensor scales;                                         // [rows * blocks]
  Tensor zero_points;                                    // likewise, in the type of the numbers
};

// MatMulNBits, GatherBlockQuantized.
bool reads_blocked_table(const Node& node);
// Nothing where the graph does not hold the table, or holds it in an order or with zero points that DequantizeLinear
// does not know.
std::optional<BlockedTable> blocked_table_of(const Graph& graph, const Node& node);

}  // namespace parallax::transform
