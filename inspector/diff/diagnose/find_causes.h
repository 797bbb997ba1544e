// SPDX-License-Identifier: Apache-2.0
// The causes of a comparison's differences: the entry to both searches, within one model and between two.
#pragma once

#include "inspector/diff/localize/blame.h"

namespace parallax {

// Fills `comparison.causes`, the ranked list; nothing where the verdict is pass, or turns out to be. `comparison` is
// that of the two dumps. Errors: cancelled, corrupt_file. What cannot be judged (values that were not captured, nodes
// the oracle refuses) is no error: a cause of unknown side says so.
Status find_causes(const BlameRequest& request, Comparison& comparison);

}  // namespace parallax
