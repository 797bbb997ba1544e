// SPDX-License-Identifier: Apache-2.0
// A rewritten graph as a model: what the executor plans, written down as ONNX.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "runtime/rewrite/rewrite.h"

namespace parallax::runtime {

// A copy of `model` with the patterns applied to its graph and to the bodies in it; bodies of functions stay as they
// are. A fused node names its source nodes in its metadata ("parallax.sources"). A fused operator that no published
// domain has becomes a model-local function of the nodes it stands for.
// `counts`, where given, is filled with how often each pattern changed the model, in the order of `patterns`.
Result<std::shared_ptr<Model>> apply_rewrite(const Model& model, std::span<const ChosenPattern> patterns,
                                             const RewriteContext& context, std::vector<int64_t>* counts = nullptr);

}  // namespace parallax::runtime
