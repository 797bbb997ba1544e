// SPDX-License-Identifier: Apache-2.0
// The shape of MatMulBnb4's weights, checked, and the values of its 4-bit elements.
#pragma once

#include <array>

#include "runtime/ops/op_call.h"

namespace parallax::runtime {

// [n, k] of quantized values, flattened and cut into blocks of `size`, each with a scale.
struct Bnb4Blocks {
  int64_t n = 0, k = 0, size = 0;
  bool transposed = true;  // whether the product reads them as [n, k], which makes n columns; else k
  std::array<double, 16> values = {};
};

// Errors: execution, naming what does not fit.
Result<Bnb4Blocks> bnb4_blocks(const OpCall& op);

}  // namespace parallax::runtime
