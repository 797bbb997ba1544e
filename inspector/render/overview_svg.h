// SPDX-License-Identifier: Apache-2.0
// A large model as one picture that stays small: scopes closed into one box each, but for those that a comparison found
// wrong, as far as there is room.
#pragma once

#include <cstddef>
#include <string>

#include "inspector/diff/comparison.h"
#include "inspector/model/ir.h"

namespace parallax {

// At most about `most_boxes`, unless the outermost level alone has more. Boxes bear the worst verdict of what is in
// them. `comparison` may be null. Empty for a graph whose values cannot be numbered.
std::string overview_to_svg(const Graph& graph, const Comparison* comparison, size_t most_boxes = 600);

}  // namespace parallax
