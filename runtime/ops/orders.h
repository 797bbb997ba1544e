// SPDX-License-Identifier: Apache-2.0
// A call of one host kernel whose inputs may be channels last or growable: each input in a layout the kernel takes.
#pragma once

#include "runtime/ops/op_context.h"

namespace parallax::runtime {

// Outputs may be channels last. A Concat of an open growable tensor and another tensor appends to it.
Status call_in_any_order(const KernelRow<Cpu>& row, const Node& node, std::span<const OpInput> inputs, uint64_t seed,
                         Queue<Cpu>& queue, CallResult& result);

// A fresh output of that shape, [N, C, spatial...], to be filled channels last.
Result<MutableView> make_channels_last_output(OpContext<Cpu>& op, int64_t index, const Shape& shape,
                                              DType dtype = DType::float32);

}  // namespace parallax::runtime
