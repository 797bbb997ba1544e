// SPDX-License-Identifier: Apache-2.0
// Extract: a part of a model as a model of its own. Names stay as they were.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "inspector/tensor/value.h"
#include "inspector/transform/part.h"

namespace parallax::transform {

// The values of one execution at a part's edges; absent where they are not known.
struct PartData {
  std::vector<Value> inputs;   // as Part::inputs
  std::vector<Value> outputs;  // as Part::outputs
};

// The part with what it needs: nodes, initializers, functions, operator sets. Inputs and outputs have the types and
// shapes of `data`, else those declared. A node without a name of its own gets its display name, which would change
// with the nodes around it. Errors: invalid_model, where the part is no valid model (an output of unknown type, say).
Result<std::shared_ptr<Model>> extract_model(const Part& part, const PartData& data = {});

// Extracts the model between value paths, without data.
Result<std::shared_ptr<Model>> extract_model(const std::shared_ptr<const Model>& model,
                                             const std::vector<std::string>& from, const std::vector<std::string>& to);

// ---- the two halves of extract_model, for those who change the model in between ----

// A model of its own (bodies are copied, weights are not) with unlinked graph.
std::shared_ptr<Model> assemble_model(const Part& part, const PartData& data);

// Fills in edges, operators and types, and drops functions and operator sets that are not used. Errors: as
// extract_model.
Result<std::shared_ptr<Model>> finish_model(std::shared_ptr<Model> model);

}  // namespace parallax::transform
