// SPDX-License-Identifier: Apache-2.0
// DequantizedMatMul (parallax.fused): a product with a weight that DequantizeLinear would make floats of in every run.
#pragma once

#include "runtime/ops/op_context.h"

namespace parallax::runtime {

Status dequantized_matmul(OpContext<Cpu>& op);

}  // namespace parallax::runtime
