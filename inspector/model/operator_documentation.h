// SPDX-License-Identifier: Apache-2.0
// Documentation of operators for people, from libonnx where the build found it.
#pragma once

#include <string>

#include "inspector/model/opset/op_schema.h"

namespace parallax {

// The text libonnx holds for this operator at this version (or its nearest earlier one); "" where it knows none.
std::string operator_documentation(const OpSchema& schema);

}  // namespace parallax
