// SPDX-License-Identifier: Apache-2.0
// The agreement of MatMulBnb4's attributes and inputs.
#include "runtime/ops/contrib/bnb4_blocks.h"

#include <fmt/format.h>

#include "inspector/base/checked_math.h"
#include "inspector/model/rule_errors.h"

namespace parallax::runtime {
namespace {

// The values of bitsandbytes' types: FP4 has a sign and magnitudes that are twelfths but for the least; NF4 is that of
// Dettmers et al., "QLoRA", appendix E.
constexpr std::array<double, 16> kFp4 = {0.0,       0.0625 / 12, 8.0 / 12,  1.0,          4.0 / 12,  6.0 / 12,
                                         2.0 / 12,  3.0 / 12,    -0.0,      -0.0625 / 12, -8.0 / 12, -1.0,
                                         -4.0 / 12, -6.0 / 12,   -2.0 / 12, -3.0 / 12};
constexpr std::array<double, 16> kNf4 = {-1.0,
                                         -0.6961928009986877,
                                         -0.5250730514526367,
                                         -0.39491748809814453,
                                         -0.28444138169288635,
                                         -0.18477343022823334,
                                         -0.09105003625154495,
                                         0.0,
                                         0.07958029955625534,
                                         0.16093020141124725,
                                         0.24611230194568634,
                                         0.33791524171829224,
                                         0.44070982933044434,
                                         0.5626170039176941,
                                         0.7229568362236023,
                                         1.0};

}  // namespace

Result<Bnb4Blocks> bnb4_blocks(const OpCall& op) {
  const int64_t n = op.integer("N"), k = op.integer("K"), size = op.integer("block_size");
  const int64_t type = op.integer("quant_type");
  const auto count = checked_mul(n, k);
  if (n < 1 || k < 1 || size < 1 || !count.has_value() || type < 0 || type > 1)
    return execution_error(fmt::format(
        "N is {}, K {}, block_size {} and quant_type {}; they must be 1 or more, quant_type 0 or 1", n, k, size, type));
  if (op.input(1).element_count() != *count / 2 + *count % 2 ||
      op.input(2).element_count() != *count / size + (*count % size != 0 ? 1 : 0))
    return wrong_input(
        op, 1, "hold the N * K ({}) weights, two in an element, and absmax, {}, one number for each block of {}",
        *count, op.input(2).shape().to_string(), size);
  return Bnb4Blocks{n, k, size, op.find_integer("transB").value_or(1) != 0, type == 0 ? kFp4 : kNf4};
}

}  // namespace parallax::runtime
