// SPDX-License-Identifier: Apache-2.0
// A whole model as SVG by our own layout: graphs of any size, in time linear in it, without another program. Bodies are
// inside the box of the node that holds them.
#pragma once

#include <string>

#include "inspector/diff/comparison.h"
#include "inspector/model/ir.h"

namespace parallax {

// `comparison` colors nodes by severity; may be null.
std::string graph_to_svg(const Graph& graph, const Comparison* comparison);

}  // namespace parallax
