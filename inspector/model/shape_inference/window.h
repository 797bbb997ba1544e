// SPDX-License-Identifier: Apache-2.0
// The shape rule of convolutions, shared by Conv and by its quantized and fused relatives.
#pragma once

#include "inspector/model/shape_inference/node_context.h"

namespace parallax {

// Data of shape [N, C, D1, D2, ...] at input 0 and weights [M, C/group, k1, k2, ...] at input `weights`.
void convolution_shape(NodeContext& context, size_t weights);

}  // namespace parallax
