// SPDX-License-Identifier: Apache-2.0
// The text and JSON forms of a model's graph: what `parallax show` prints.
#pragma once

#include <string>

#include "inspector/model/ir.h"

namespace parallax {

struct GraphTextOptions {
  bool shapes = false;  // types of every node's outputs
  int depth = -1;       // scopes below this depth are folded into one line each; -1: none are
};

// One line a node, in execution order; bodies of If, Loop and Scan and local functions indented below.
std::string graph_to_text(const Model& model, const GraphTextOptions& options);

// {"model", "ir_version", "producer", "producer_version", "domain", "model_version", "doc", "metadata",
// "opset_imports", "problems", "graph", "inputs", "outputs", "initializers", "nodes", "functions"}. Attributes have
// JSON's own types: numbers, texts, lists; a tensor is {"dtype", "shape", "values"}, whose values are left out where
// they are many; a body is a graph. What cannot be executed has "problem", a weight that is not here "absence".
std::string graph_to_json(const Model& model, const GraphTextOptions& options);

}  // namespace parallax
