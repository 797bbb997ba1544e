// SPDX-License-Identifier: Apache-2.0
// How large a dump will become, as far as shapes are known beforehand.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "inspector/base/memory_budget.h"
#include "inspector/model/ir.h"
#include "inspector/tensor/value.h"

namespace parallax {

// Bytes of the payloads of one call: inputs, weights, and what the nodes of the main graph make under the sizes that
// the inputs have. Views of other values and what bodies make are left out, and so is what has no known shape.
int64_t foreseen_payload_bytes(const Graph& graph, std::span<const Value> inputs);

// Reserves what a capture of every value into a file of `folder` takes of the job's memory: all of it where the file
// system keeps files in memory; else nothing, for values count while they are read. Errors: out_of_memory.
Result<MemoryBudget::Reservation> reserve_capture(const std::string& folder, const Graph& graph,
                                                  std::span<const Value> inputs);

}  // namespace parallax
