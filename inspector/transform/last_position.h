// SPDX-License-Identifier: Apache-2.0
// The head of a language model reads the last position alone: what generates needs no logits of the others.
#pragma once

#include <memory>
#include <string_view>

#include "inspector/base/result.h"
#include "inspector/model/ir.h"

namespace parallax::transform {

// A copy of `model` in which the product that makes the output `logits` ([batch, sequence, vocabulary]) reads a slice
// of its input that holds the last position alone; the output's second dimension is 1. Nodes between that product and
// the output may be element by element with operands that all positions share (a bias, a scale, a softcap, a cast).
// Null where the model is built in another way. Errors: invalid_model.
Result<std::shared_ptr<Model>> last_position(const Model& model, std::string_view logits);

}  // namespace parallax::transform
