// SPDX-License-Identifier: Apache-2.0
// Regions of a model of floats and its quantised form: what they make without codes, and which codes do more than
// round.
#pragma once

#include <optional>
#include <vector>

#include "inspector/diff/localize_models/blame_models_culprits.h"

namespace parallax::diff {

struct WithoutQuantization {
  RegionRunner runner;            // that takes nothing of the region to codes
  Region region;                  // as it is without codes
  double severity = 0;            // of the difference that it has with them
  std::vector<Culprit> culprits;  // nodes of codes that are enough to take it beyond the limit
};

// Nothing where neither side of a region is quantised, or what was quantised is not to be had. Without a limit, since
// nobody compared the value, codes may do a good part of its size.
std::optional<WithoutQuantization> without_quantization(const ModelSide& a, const ModelSide& b,
                                                        const ModelMatching& matching, const RegionRunner& runner,
                                                        const ValueMatch& match, const Instance& instance,
                                                        const Region& region, const std::optional<Limit>& known_limit);

}  // namespace parallax::diff
