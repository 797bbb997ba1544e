// SPDX-License-Identifier: Apache-2.0
// How large a dump will become, as far as shapes are known beforehand.
#pragma once

#include <cstdint>
#include <span>

#include "inspector/model/ir.h"
#include "inspector/tensor/value.h"

namespace parallax {

// Bytes of the payloads of one call: inputs, weights, and what the nodes of the main graph make under the sizes that
// the inputs have. Views of other values and what bodies make are left out, and so is what has no known shape.
int64_t foreseen_payload_bytes(const Graph& graph, std::span<const Value> inputs);

}  // namespace parallax
