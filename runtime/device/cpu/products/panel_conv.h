// SPDX-License-Identifier: Apache-2.0
// Convolutions as products of float_panels.h: the channels at each tap of a filter are one segment of a row.
#pragma once

#include <memory>

#include "runtime/device/cpu/products/conv.h"

namespace parallax::runtime {

// One shape, and its filters in panels.
struct PanelConv;

// True where such a convolution is faster than oneDNN's, with x in the layout that the problem says.
bool suits_panels(const ConvProblem& problem);

// Null where it is not, or where padding must not be multiplied: filters that are not finite.
std::shared_ptr<const PanelConv> make_panel_conv(Queue<Cpu>& queue, const ConvProblem& problem, const float* filters,
                                                 const float* bias);
// Errors: out_of_memory.
Status run_panel_conv(Queue<Cpu>& queue, const PanelConv& conv, const float* x, const Addend& addend, float* y);

}  // namespace parallax::runtime
