// SPDX-License-Identifier: Apache-2.0
// Blame where the two sides run different models: a node is to blame when B's definition, on A's values, does not make
// what A's makes. Both are run by the oracle, so that no rounding stands between them.
#pragma once

#include "inspector/diff/localize/blame.h"

namespace parallax {

// The causes of a comparison of two models, ranked, and the matches that turned out to be none. Where both define the
// same, under the policy `auto`, what differs is an executor's fault, or rounding: then the diagnosis accepts it, with
// evidence, and there is no cause. Errors: cancelled, corrupt_file.
Status blame_models(const BlameRequest& request, const Comparison& comparison, Diagnosis& diagnosis);

}  // namespace parallax
