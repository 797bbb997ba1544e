// SPDX-License-Identifier: Apache-2.0
// Float32 convolutions on the host, which may take and make values channels last.
#pragma once

#include "runtime/device/cpu/products/conv.h"
#include "runtime/ops/op_context.h"

namespace parallax::runtime {

// Output 0 = activation(conv(input 0, input 1, input 2) + input 3), the last two where they are given; the activation
// is that of the attributes, where there are any.
Status host_convolution(OpContext<Cpu>& op);

}  // namespace parallax::runtime
