// SPDX-License-Identifier: Apache-2.0
// Graph inputs of which the host reads the content: lengths, conditions, trip counts. On a GPU they stay where they
// are given, and what follows from them alone is computed on the host, too; a recorded run holds for one content.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/plan/plan.h"

namespace parallax::runtime {

// Fills `plan.read_on_host` by what kernels, control flow and the bodies below them read.
void mark_read_on_host(GraphPlan& plan);

// By input of the main graph, 1: this value stays on the host. Large ones do not.
bool stays_on_host(const GraphPlan& plan, size_t input, const Value& value);
std::vector<uint8_t> inputs_on_host(const GraphPlan& plan, std::span<const Value> inputs);

}  // namespace parallax::runtime
