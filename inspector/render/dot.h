// SPDX-License-Identifier: Apache-2.0
// Graphs as dot: a model, or a comparison drawn on its model. Scopes and bodies are clusters, small initializers stand
// inside nodes, severity shows as color, border width and badge.
#pragma once

#include <string>

#include "inspector/base/result.h"
#include "inspector/diff/comparison.h"
#include "inspector/model/ir.h"

namespace parallax {

struct DotOptions {
  int depth = -1;     // scopes deeper than this are drawn as one box each; -1: all are open
  std::string focus;  // value path: only nodes within `focus_steps` edges of it (and in its body) is drawn
  int focus_steps = 3;
  const Comparison* comparison = nullptr;  // colors; may be null
  bool shapes = true;                      // edge labels
};

// Errors: usage, when `focus` names no value of the graph.
Result<std::string> graph_to_dot(const Graph& graph, const DotOptions& options);

// Nodes that would be drawn (of the main graph and of bodies): what a caller looks at before it asks for a picture.
int64_t count_nodes(const Graph& graph);

}  // namespace parallax
