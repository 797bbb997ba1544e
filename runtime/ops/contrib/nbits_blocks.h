// SPDX-License-Identifier: Apache-2.0
// The shape of MatMulNBits' weights, checked.
#pragma once

#include "runtime/ops/op_call.h"

namespace parallax::runtime {

struct NBitsBlocks {
  int64_t n = 0, k = 0, size = 0, count = 0, bits = 4;
};

// Errors: unsupported and execution, naming what does not fit.
Result<NBitsBlocks> nbits_blocks(const OpCall& op);
// Zero points (input 3) that are given packed; false: as numbers. Error: execution, when there are not as many as
// blocks.
Result<bool> has_packed_zeros(const OpCall& op, const NBitsBlocks& blocks);
// The block whose scale and zero point belong to each k (input 4).
Result<Ints> nbits_groups(const OpCall& op, const NBitsBlocks& blocks);

}  // namespace parallax::runtime
