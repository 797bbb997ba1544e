// SPDX-License-Identifier: Apache-2.0
// The output of `show --op`: an operator's signature, from the registry, and its documentation where libonnx has it.
#pragma once

#include <string>

#include "inspector/base/result.h"

namespace parallax {

// `name` is "Softmax", "Softmax-11", "com.microsoft.Gelu", "ai.onnx.ml.Scaler-1". Errors: usage, with near misses.
Result<std::string> operator_to_text(const std::string& name);
Result<std::string> operator_to_json(const std::string& name);

}  // namespace parallax
