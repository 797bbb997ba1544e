// SPDX-License-Identifier: Apache-2.0
// Checks of MatMulNBits' attributes and inputs, for all devices.
#include "runtime/ops/contrib/nbits_blocks.h"

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"
#include "runtime/ops/inner_op.h"

namespace parallax::runtime {

Result<NBitsBlocks> nbits_blocks(const OpCall& op) {
  NBitsBlocks blocks{op.integer("N"), op.integer("K"), op.integer("block_size"), 0, op.integer("bits")};
  constexpr int64_t kMost = int64_t{1} << 31;
  if (blocks.bits != 2 && blocks.bits != 4 && blocks.bits != 8)
    return unsupported(fmt::format("attribute 'bits' is {}; 2, 4 and 8 have kernels here", blocks.bits));
  if (blocks.n < 1 || blocks.n > kMost || blocks.k < 1 || blocks.k > kMost || blocks.size < 16 || blocks.size > kMost ||
      (blocks.size & (blocks.size - 1)) != 0)
    return execution_error(
        fmt::format("N is {}, K {} and block_size {}; they must be in [1, {}], block_size a power of two of 16 or more",
                    blocks.n, blocks.k, blocks.size, kMost));
  if (op.find_integer("weight_prepacked").value_or(0) != 0)
    return unsupported("attribute 'weight_prepacked' is set; the layout of one processor has no kernel here");
  blocks.count = (blocks.k + blocks.size - 1) / blocks.size;
  if (op.input(1).element_count() != blocks.n * blocks.count * (blocks.size * blocks.bits / 8) ||
      op.input(2).element_count() != blocks.n * blocks.count)
    return wrong_input(op, 1, "have {} elements, and scales, {}, {}: N rows of {} blocks",
                       blocks.n * blocks.count * (blocks.size * blocks.bits / 8), op.input(2).shape().to_string(),
                       blocks.n * blocks.count, blocks.count);
  return blocks;
}

Result<bool> has_packed_zeros(const OpCall& op, const NBitsBlocks& blocks) {
  const Tensor& given = op.input(3);
  const bool is_packed = given.dtype() == DType::uint8;
  const int64_t row_bytes = (blocks.count * blocks.bits + 7) / 8;
  if (given.element_count() != blocks.n * (is_packed ? row_bytes : blocks.count))
    return wrong_input(op, 3, "have {} elements: {} rows of {} blocks",
                       blocks.n * (is_packed ? row_bytes : blocks.count), blocks.n, blocks.count);
  return is_packed;
}

Result<Ints> nbits_groups(const OpCall& op, const NBitsBlocks& blocks) {
  Ints groups(blocks.k);
  for (int64_t i = 0; i < blocks.k; ++i) groups[i] = i / blocks.size;
  if (op.has_input(4)) groups = all_integers(op.input(4));
  if (groups.size() != blocks.k)
    return wrong_length("input 'g_idx'", groups.size(), "have {}, one for each row of the weights", blocks.k);
  for (int64_t group : groups) {
    if (group < 0 || group >= blocks.count)
      return wrong_value("an entry of g_idx", group, "be in [0, {}), the blocks", blocks.count);
  }
  return groups;
}

}  // namespace parallax::runtime
