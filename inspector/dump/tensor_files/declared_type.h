// SPDX-License-Identifier: Apache-2.0
// Tensors of files in the floating type that a model declares for them: numpy has no bfloat16, and tools write the
// inputs of float16 models as float32.
#pragma once

#include <string>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/tensor/type_info.h"
#include "inspector/tensor/value.h"

namespace parallax {

// The value in the floating type that `declared` names: floats of another type are rounded to it, uint16 are the bits
// of bfloat16. Any other value is returned as it is. `context` names the value in the note that says so, as "input 'x'
// of 'm.onnx'". Errors: out_of_memory.
Result<Value> in_declared_type(const Value& value, const TypeInfo& declared, const std::string& context,
                               std::vector<std::string>& notes);

}  // namespace parallax
