// SPDX-License-Identifier: Apache-2.0
// Values that are left without a counterpart though the same node reads them in both models: another operator replaced
// their producer, whatever else is alike.
#pragma once

#include "inspector/diff/matching/matching.h"

namespace parallax::diff {

// The tensor that a model stores for a value as an initializer or Constant, also where it is absent; null for what
// nodes compute, and for null.
const StoredTensor* stored_tensor_of(const ValueInfo* value);

// Pairs what `matching.nodes` of one definition read at the same input, where neither of the two values has a
// counterpart. Constants are part of the definition; int8 values may be counterparts of uint8 values.
void pair_read_alike(ModelMatching& matching);

}  // namespace parallax::diff
