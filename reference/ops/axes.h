// SPDX-License-Identifier: Apache-2.0
// The argument `axes`, which was an attribute in early versions of an operator and became an input later.
#pragma once

#include <optional>
#include <vector>

#include "reference/ops/op_context.h"

namespace parallax::reference {

// From input `index` since `input_version`, else from the attribute; nothing where neither is given.
inline Result<std::optional<std::vector<int64_t>>> axes_argument(const OpContext& op, int64_t input_version,
                                                                 size_t index) {
  if (op.since_version() < input_version) return op.find_ints("axes");
  if (!op.has_input(index)) return std::optional<std::vector<int64_t>>();
  return std::optional(PX_TRY(op.int64s_of_input(index)));
}

}  // namespace parallax::reference
