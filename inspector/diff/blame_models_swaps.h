// Outputs of one node that are swapped in the other model: seen only at the nodes that read them.
#pragma once

#include <optional>

#include "inspector/diff/blame_models_side.h"

namespace parallax::diff {

// Two outputs of one node that lead, each by a chain of nodes of one operand, to two given values.
struct CommonOrigin {
  PlacedNode node;
  size_t first_output = 0, second_output = 0;
};

// Nothing where the values come from different nodes, or from one output.
std::optional<CommonOrigin> common_origin(const ModelSide& side, int32_t first, int32_t second);

}  // namespace parallax::diff
