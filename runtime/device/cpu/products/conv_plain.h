// SPDX-License-Identifier: Apache-2.0
// Convolutions that gain nothing from a blocked layout and are done on row-major planes: of 1 x 1 filters, which are
// products of matrices, and of one filter a channel.
#pragma once

#include "runtime/device/cpu/products/conv.h"

namespace parallax::runtime {

bool is_pointwise_conv(const ConvProblem& problem);  // 1 x 1, no steps, no padding, one group
Status pointwise_conv(Queue<Cpu>& queue, const ConvProblem& problem, const float* x, const float* filters,
                      const float* bias, float* y);

// One filter a channel, 3 x 3 or 5 x 5, steps of 1 or 2; its weights must be finite, for padding is multiplied.
bool is_depthwise_conv(const ConvProblem& problem, const float* filters);
void depthwise_conv(const ConvProblem& problem, const float* x, const float* filters, const float* bias, float* y);

}  // namespace parallax::runtime
