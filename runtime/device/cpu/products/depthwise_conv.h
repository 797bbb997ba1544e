// SPDX-License-Identifier: Apache-2.0
// Convolutions of single channels in NHWC layout, on processors with AVX2 and FMA.
#pragma once

#include <memory>

#include "runtime/device/cpu/products/conv.h"

namespace parallax::runtime {

// One shape, and its filters in the order in which they are read.
struct DepthwiseConv;

// Null where oneDNN's must run: other processors, other layouts, and filters that are not finite, by which padding must
// not be multiplied.
std::shared_ptr<const DepthwiseConv> make_depthwise_conv(Queue<Cpu>& queue, const ConvProblem& problem,
                                                         const float* filters, const float* bias);
// Each sum begins with the bias and has the order of the taps.
void run_depthwise_conv(const DepthwiseConv& conv, const float* x, const Addend& addend, float* y);

}  // namespace parallax::runtime
