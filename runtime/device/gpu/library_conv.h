// SPDX-License-Identifier: Apache-2.0
// library_conv: a convolution or its transpose by the library of a GPU in the type its operands have, with a bias in
// the same pass.
#pragma once

#include "runtime/device/cpu/products/conv.h"
#include "runtime/device/devices.h"

namespace parallax::runtime {

struct LibraryConv {
  ConvProblem problem;  // without an activation, and its values row-major: activations stay with our own kernels
  bool is_transposed = false;
  TensorView x;
  TensorView filters;
  TensorView bias;  // a value for each output channel, of y's type; undefined: none
  MutableView y;
};

// False where the library has no way to do it, perhaps but for the bias: nothing has been written then. Summed in
// float32, rounded once. Deterministic: the library's own choice of an algorithm among those that are, which is the
// same for the same shapes.
template <GpuDevice Gpu>
Result<bool> library_conv(Queue<Gpu>& queue, const LibraryConv& conv);

}  // namespace parallax::runtime
