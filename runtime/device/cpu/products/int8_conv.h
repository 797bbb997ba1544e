// SPDX-License-Identifier: Apache-2.0
// Int8 products and convolutions whose right side is a weight, on panels (int8_panels.h); one filter a channel has a
// way of its own (int8_depthwise.h).
#pragma once

#include "runtime/device/cpu/products/int8_gemm.h"

namespace parallax::runtime {

// True where this processor has such panels, for this problem.
bool suits_int8_panels(const GemmProblem& problem, const QuantizedValues& b);
bool suits_int8_panels(const ConvProblem& problem, const QuantizedValues& filters);

Status gemm(Queue<Cpu>& queue, const GemmProblem& problem, const QuantizedValues& a, const QuantizedValues& b,
            const Int8Result& c);
// x and y may be channels last, each as the problem says.
Status conv(Queue<Cpu>& queue, const ConvProblem& problem, const QuantizedValues& x, const QuantizedValues& filters,
            const Int8Result& y);

}  // namespace parallax::runtime
