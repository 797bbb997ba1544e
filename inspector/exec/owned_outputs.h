// SPDX-License-Identifier: Apache-2.0
// Outputs of a session that own their memory: for callers that write to them in place.
#pragma once

#include <span>

#include "inspector/base/result.h"
#include "inspector/tensor/value.h"

namespace parallax {

// Copies every tensor of `outputs`, also within sequences, optionals and maps, whose memory has another owner: an
// input, a weight, a constant of the session, another output. Afterwards none of them shares memory with anything else.
// Called while the inputs are still alive and before the outputs are copied. Tensors on a device are left as they are:
// sessions copy them there. Errors: out_of_memory.
Status separate_outputs(std::span<Value> outputs);

// True where no tensor of the value has another owner.
bool owns_memory(const Value& value);

}  // namespace parallax
