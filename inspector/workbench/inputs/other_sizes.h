// SPDX-License-Identifier: Apache-2.0
// --against: one model's data must have the sizes that the other fixes.
#pragma once

#include "inspector/workbench/inputs/inputs.h"

namespace parallax {

// The sizes of A's inputs that B fixes. Errors: usage, where no data suits both.
Result<OtherSizes> sizes_of_other(const Model& a, const Model& b);

// Checks that the data generated for A's free dimensions fit B's fixed ones. Errors: usage, naming the options that
// make it.
Status check_sizes_for_other(const Model& a, const std::vector<Value>& values, const Model& b,
                             const InputRequest& request);

}  // namespace parallax
