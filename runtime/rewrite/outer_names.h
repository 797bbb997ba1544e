// SPDX-License-Identifier: Apache-2.0
// Bodies read values of the graphs around them by name: when such a value becomes an alias, its name changes in them.
#pragma once

#include <map>
#include <set>
#include <string>

#include "runtime/rewrite/rewrite.h"

namespace parallax::runtime {

// The names of aliased values, and those of what they stand for.
using Renames = std::map<std::string, std::string>;
Renames renames_of(const GraphEdit& edit);

// Renames what the bodies that the node holds read from outside, at any depth.
void rename_outer_values(Node& node, const Renames& names);

// Names that bodies of the graph's nodes read from outside of themselves.
std::set<std::string> names_read_by_bodies(const Graph& graph);

}  // namespace parallax::runtime
