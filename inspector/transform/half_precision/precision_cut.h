// SPDX-License-Identifier: Apache-2.0
// Which type each group takes: as many narrow as the demands allow, and of all such choices one with the fewest casts,
// of smallest tensors.
#pragma once

#include <vector>

#include "inspector/transform/half_precision/precision_groups.h"

namespace parallax::transform {

// By GroupId: true where the group's tensors are of the narrow type. Demands hold. A stored tensor with a reader that
// computes in float32 is never narrow, so that this reader gets every bit; other tensors are cast wherever that is
// cheapest.
std::vector<bool> choose_precisions(const PrecisionGroups& groups);

}  // namespace parallax::transform
