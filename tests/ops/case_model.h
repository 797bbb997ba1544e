// SPDX-License-Identifier: Apache-2.0
// The model of a case, from its JSON to ONNX text, which the importer reads as it reads any model.
#pragma once

#include <string>

#include "tests/ops/case_values.h"

namespace parallax::tests {

// A case of one operator has "op", "domain", "attributes", and becomes a graph of one node; any other has "graph" and
// may have "functions" (README.md describes both). Graph inputs and outputs have the types of the case's values.
// Errors: usage.
Result<std::string> model_text(const Json& op_case);

}  // namespace parallax::tests
