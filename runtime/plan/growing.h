// SPDX-License-Identifier: Apache-2.0
// Which nodes append to the states of a session, so that these grow in place.
#pragma once

#include <vector>

#include "inspector/exec/kept_states.h"
#include "runtime/plan/plan.h"

namespace parallax::runtime {

// Marks in `plan` the nodes that make a bound output by appending to the bound input: a Concat of it and new elements,
// an Attention with a past, on the host a GroupQueryAttention, also within the branches of an If. The answer, by
// binding: whether there is one.
std::vector<bool> mark_growing(GraphPlan& plan, const KeptStates& states, bool on_host);

}  // namespace parallax::runtime
