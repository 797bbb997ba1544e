// SPDX-License-Identifier: Apache-2.0
// The trust in the names of two graphs where hardly any value is made alike. Private to this folder.
#pragma once

#include "inspector/diff/matching/matching_search.h"

namespace parallax::diff {

// True where half of A's names are known in B, and three quarters of these are made by one operator.
bool do_names_agree_by_operators(const MatchSide& a, const MatchSide& b);

// An optimizer has fused nearly all nodes. Names agree where half of the smaller model's are known in the other, and
// three quarters of these values are made with the same weights since the last of them, or one with some of the
// other's. They are sure where nearly all are (thresholds::kSureNameShare).
struct NamesByWeights {
  bool do_agree = false, are_sure = false;
};
NamesByWeights judge_names_by_weights(const MatchSide& a, const MatchSide& b);

}  // namespace parallax::diff
