// SPDX-License-Identifier: Apache-2.0
// The sentence on two runs of models that have little in common.
#pragma once

#include <string>

#include "inspector/diff/comparison.h"

namespace parallax {

// A sentence where the sides ran two models of which fewer values than half are pairs that can be compared: "A and B
// are of different models: 'a.onnx' and 'b.onnx'; values are paired by name and structure, and none of 387 could be
// compared". Empty otherwise.
std::string different_models(const Comparison& comparison);

}  // namespace parallax
