// SPDX-License-Identifier: Apache-2.0
// The shape rule of matrix products, shared by MatMul and by its quantized and fused relatives.
#pragma once

#include "inspector/model/shape_inference/node_context.h"

namespace parallax {

// As numpy.matmul: vectors are promoted, leading dimensions broadcast. Nothing where a rank is unknown or 0.
std::optional<DimExpressions> matmul_shape(const std::optional<DimExpressions>& a,
                                           const std::optional<DimExpressions>& b);

}  // namespace parallax
