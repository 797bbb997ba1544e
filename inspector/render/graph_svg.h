// SPDX-License-Identifier: Apache-2.0
// A whole model as SVG by our own layout: graphs of any size, in time linear in it, without another program. Bodies are
// inside the box of the node that holds them.
#pragma once

#include <map>
#include <string>

#include "inspector/diff/comparison.h"
#include "inspector/model/ir.h"

namespace parallax {

// A look of a node that says something else than severity.
struct NodeMark {
  std::string fill, border;  // "#RRGGBB"
  std::string note;          // a line more within the node
};
// By the static frames and the display name: "loop.body[*]//add".
using NodeMarks = std::map<std::string, NodeMark>;

// `comparison` colors nodes by severity; may be null.
std::string graph_to_svg(const Graph& graph, const Comparison* comparison, const NodeMarks& marks = {});

}  // namespace parallax
