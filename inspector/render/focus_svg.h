// SPDX-License-Identifier: Apache-2.0
// The part of a graph around one value as SVG by our own layout, without another program.
#pragma once

#include <string>
#include <string_view>

#include "inspector/diff/comparison.h"
#include "inspector/model/ir.h"

namespace parallax {

// The nodes of the main graph that are at most `steps` edges away from the one that computes the value at `path`, or
// that reads it where none does; of a path into a body, from the node that holds the body, with all that it holds.
// `comparison` colors nodes by severity; may be null. Empty where the path names nothing in the graph.
std::string neighborhood_to_svg(const Graph& graph, std::string_view path, int steps, const Comparison* comparison);

}  // namespace parallax
