// SPDX-License-Identifier: Apache-2.0
// Freezing: inputs whose values are known become initializers, so that they can be folded, fused and packed.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "inspector/base/result.h"
#include "inspector/model/ir.h"

namespace parallax::transform {

// A copy of `model` in which each named input of the main graph is an initializer that shares the given tensor's
// memory: the tensor must not change afterwards. Types after it are inferred anew. Errors: usage (no input of that
// name, a tensor that does not fit what is declared), invalid_model.
Result<std::shared_ptr<Model>> freeze_inputs(const Model& model, const std::map<std::string, Tensor>& values);

}  // namespace parallax::transform
