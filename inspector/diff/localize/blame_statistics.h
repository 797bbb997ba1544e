// SPDX-License-Identifier: Apache-2.0
// Diagnosis of a divergence by statistics alone: the value that shows it first, and in which statistic.
#pragma once

#include <optional>

#include "inspector/diff/localize/blame.h"

namespace parallax::diff {

// The likely cause for dumps of which one keeps no elements: the first value that differs. Nothing where elements are
// available, or nothing diverged.
std::optional<Cause> first_by_statistics(const BlameRequest& request, const Comparison& comparison);

}  // namespace parallax::diff
