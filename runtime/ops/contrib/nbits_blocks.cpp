// SPDX-License-Identifier: Apache-2.0
// Checks of MatMulNBits' attributes and inputs, for all devices.
#include "runtime/ops/contrib/nbits_blocks.h"

#include <fmt/format.h>

#include "runtime/ops/inner_op.h"

namespace parallax::runtime {

Result<NBitsBlocks> nbits_blocks(const OpCall& op) {
  NBitsBlocks blocks{op.integer("N"), op.integer("K"), op.integer("block_size"), 0, op.integer("bits")};
  constexpr int64_t kMost = int64_t{1} << 31;
  if (blocks.bits != 2 && blocks.bits != 4 && blocks.bits != 8)
    return unsupported(fmt::format("bits {}: 2, 4 and 8 have kernels", blocks.bits));
  if (blocks.n < 1 || blocks.n > kMost || blocks.k < 1 || blocks.k > kMost || blocks.size < 16 || blocks.size > kMost ||
      (blocks.size & (blocks.size - 1)) != 0)
    return execution_error(fmt::format("N {}, K {}, block_size {}", blocks.n, blocks.k, blocks.size));
  if (op.find_integer("weight_prepacked").value_or(0) != 0)
    return unsupported("weights in the layout of one processor");
  blocks.count = (blocks.k + blocks.size - 1) / blocks.size;
  if (op.input(1).element_count() != blocks.n * blocks.count * (blocks.size * blocks.bits / 8) ||
      op.input(2).element_count() != blocks.n * blocks.count)
    return execution_error("B and scales do not hold N rows of blocks");
  return blocks;
}

Result<bool> has_packed_zeros(const OpCall& op, const NBitsBlocks& blocks) {
  const Tensor& given = op.input(3);
  const bool is_packed = given.dtype() == DType::uint8;
  const int64_t row_bytes = (blocks.count * blocks.bits + 7) / 8;
  if (given.element_count() != blocks.n * (is_packed ? row_bytes : blocks.count))
    return execution_error("zero_points has shape " + given.shape().to_string());
  return is_packed;
}

Result<Ints> nbits_groups(const OpCall& op, const NBitsBlocks& blocks) {
  Ints groups(blocks.k);
  for (int64_t i = 0; i < blocks.k; ++i) groups[i] = i / blocks.size;
  if (op.has_input(4)) groups = all_integers(op.input(4));
  if (groups.size() != blocks.k) return execution_error("g_idx must have one value for each k");
  for (int64_t group : groups) {
    if (group < 0 || group >= blocks.count) return execution_error(fmt::format("g_idx holds {}", group));
  }
  return groups;
}

}  // namespace parallax::runtime
