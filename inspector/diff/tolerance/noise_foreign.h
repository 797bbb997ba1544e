// SPDX-License-Identifier: Apache-2.0
// The freedoms that kernels of another runtime take and ours do not (NoiseModel::count_foreign_kernels).
#pragma once

#include "inspector/model/ir.h"

namespace parallax::diff {

// The elements that share a scale where a kernel may round a product's activations to int8; 0 where it may not
// (ContribOperators.md, com.microsoft.MatMulNBits: accuracy_level).
double int8_block_of(const Node& node);

// True where a node interpolates between neighbors by coordinates, which kernels may compute in float32.
bool interpolates(const Node& node);

// True for nodes of either kind.
inline bool may_differ_in_foreign_kernels(const Node& node) { return interpolates(node) || int8_block_of(node) > 0; }

}  // namespace parallax::diff
