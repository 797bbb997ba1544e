// SPDX-License-Identifier: Apache-2.0
// Sliding windows: kernel, strides, dilations and padding of convolutions and pools, and which input element each
// window position reads.
#pragma once

#include <vector>

#include "reference/ops/indexing.h"
#include "reference/ops/op_context.h"

namespace parallax::reference {

struct Window {
  std::vector<int64_t> input;  // spatial dimensions
  std::vector<int64_t> output;
  std::vector<int64_t> kernel, strides, dilations, pads_begin, pads_end;

  size_t rank() const { return input.size(); }
  int64_t input_count() const;
  int64_t output_count() const;
  int64_t kernel_count() const;

  // For the window at linear output position `location`: the linear input position of each kernel element, or -1 in the
  // padding.
  void sources(int64_t location, std::vector<int64_t>& positions) const;
  // The input elements that reach output position `location` of a transposed convolution, -1 for none.
  void transposed_sources(int64_t location, std::vector<int64_t>& positions) const;
};

// From the attributes strides, dilations, pads and auto_pad of a node whose kernel has the given dimensions. The output
// is floor((input + pads - reach) / stride) + 1, or ceil of it with `ceil_mode`, where windows that would start in the
// padding after the input are left out.
Result<Window> plan_window(const OpContext& op, const Shape& x, std::vector<int64_t> kernel, bool ceil_mode);

// The geometry of ConvTranspose, with output_padding and output_shape.
Result<Window> plan_transposed_window(const OpContext& op, const Shape& x, std::vector<int64_t> kernel);

}  // namespace parallax::reference
