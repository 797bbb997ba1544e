// SPDX-License-Identifier: Apache-2.0
// Joining values of one shape along a new axis, and taking one slice of an axis away: what loops do with their scan
// values.
#pragma once

#include <vector>

#include "reference/ops/op_context.h"

namespace parallax::reference {

// All tensors must have one shape and element type; at least one is given. `axis` is in [0, rank].
Result<Tensor> stack(const OpContext& op, const std::vector<Value>& items, size_t axis);

// The slice at `index` of `axis`, that axis removed.
Result<Tensor> slice_at(const OpContext& op, const Tensor& tensor, size_t axis, int64_t index);

}  // namespace parallax::reference
