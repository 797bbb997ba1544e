// SPDX-License-Identifier: Apache-2.0
// The graph as it is shown, its groups open and closed as they are, in the colors they have: as SVG, and as dot for
// other tools.
#pragma once

#include <string>
#include <utility>

#include "gui/viewmodel/view_graph.h"

namespace parallax {

std::string scene_to_svg(GraphView& graph);
std::string scene_to_dot(GraphView& graph);
// Two models next to each other, A at the left. A box that has a counterpart leads to it; in dot, a dotted edge joins
// those that differ.
std::string scenes_to_svg(GraphView& a, GraphView& b, const TwoModels& models);
std::string scenes_to_dot(GraphView& a, GraphView& b, const TwoModels& models);

// The two lines of text in an item's box: what it is, and which.
std::pair<std::string, std::string> lines_of(const GraphItem& item);

}  // namespace parallax
