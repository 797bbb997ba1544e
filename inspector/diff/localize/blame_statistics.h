// SPDX-License-Identifier: Apache-2.0
// What statistics alone can say of a divergence: where it shows first, and in what.
#pragma once

#include <optional>

#include "inspector/diff/localize/blame.h"

namespace parallax::diff {

// Of dumps of which one keeps no elements: the first value that differs is the cause named, as likely. Nothing where
// elements are at hand, or nothing diverged.
std::optional<Cause> first_by_statistics(const BlameRequest& request, const Comparison& comparison);

}  // namespace parallax::diff
