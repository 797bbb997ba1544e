// SPDX-License-Identifier: Apache-2.0
// The diagnosis of a comparison: the entry to both searches, within one model and between two.
#pragma once

#include "inspector/diff/localize/blame.h"

namespace parallax {

// The diagnosis of the two dumps' comparison: the ranked causes, and what is no fault; empty where the verdict is pass.
// There is no cause where nothing else diverged. Errors: cancelled, corrupt_file. What cannot be judged (values that
// were not captured, nodes the oracle refuses) is no error: a cause of unknown side says so.
Result<Diagnosis> find_causes(const BlameRequest& request, const Comparison& comparison);

}  // namespace parallax
