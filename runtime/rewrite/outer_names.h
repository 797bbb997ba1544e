// SPDX-License-Identifier: Apache-2.0
// Bodies read values of the graphs around them by name: when such a value becomes an alias, its name changes in them.
#pragma once

#include <set>
#include <string>

#include "runtime/rewrite/rewrite.h"

namespace parallax::runtime {

// In all bodies that the node holds, at any depth, the names of aliased values become those of what they stand for.
void rename_outer_values(Node& node, const GraphEdit& edit);

// Names that bodies of the graph's nodes read from outside of themselves.
std::set<std::string> names_read_by_bodies(const Graph& graph);

}  // namespace parallax::runtime
