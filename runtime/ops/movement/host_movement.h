// SPDX-License-Identifier: Apache-2.0
// Concat and Split on the host: rows put together or cut up, in the layout that their values have.
#pragma once

#include "runtime/ops/op_context.h"

namespace parallax::runtime {

// Output 0, of `shape`, becomes the inputs one after the other along `axis`. Channels last where most of them are.
Status join_inputs(OpContext<Cpu>& op, int64_t axis, const Shape& shape);

// The outputs become the parts of input 0 of these sizes along `axis`, which add up to its dimension; in its layout.
Status split_input(OpContext<Cpu>& op, int64_t axis, const Ints& sizes);

}  // namespace parallax::runtime
