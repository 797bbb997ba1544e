// SPDX-License-Identifier: Apache-2.0
// Reduce: the search for a small part of a model that still fails, whatever failing means.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>

#include "inspector/transform/part.h"

namespace parallax::transform {

// Returns true where a part fails. An error ends the search.
using PartCheck = std::function<Result<bool>(const Part&)>;

// Removes what the failure does not need: nodes after it, nodes before it, then any others (Zeller and Hildebrandt,
// "Simplifying and Isolating Failure-Inducing Input", 2002: ddmin), until no single node can go. `part` fails.
Result<Part> shrink_part(Part part, const PartCheck& fails);

// A failing part around a suspicious node: the node alone; with the nodes between it and values known to be `sound`
// (paths); with its neighbors, ever further away. Nothing where even the farthest does not fail.
Result<std::optional<Part>> find_failing_part(const Location& location, NodeId suspect,
                                              const std::set<std::string>& sound, const PartCheck& fails);

}  // namespace parallax::transform
