// SPDX-License-Identifier: Apache-2.0
// Casts between float32 and the narrow type, put where a value of one type has readers of the other.
#pragma once

#include <vector>

#include "inspector/transform/half_precision/precision_groups.h"

namespace parallax::transform {

// After convert_stored: adds the casts, points the readers to them, and drops Cast nodes that have become idle. Outputs
// of the main graph keep their names. Leaves the graphs unlinked.
void insert_casts(Model& model, const PrecisionGroups& groups, const std::vector<bool>& is_narrow, DType to);

}  // namespace parallax::transform
