// SPDX-License-Identifier: Apache-2.0
// Constants that B's narrower type cannot hold: an epsilon that became 0, a bound that became infinite, and the values
// that leave the range of numbers by that.
#pragma once

#include "inspector/diff/localize_models/blame_models_side.h"
#include "inspector/diff/matching/matching.h"

namespace parallax::diff {

// A value of A left the range of numbers on one side: where the nearest constant before it is one that B's type cannot
// hold, and its reader hands on zeros or infinities in B where A has none, that reader is the cause.
void name_vanished_constant(const ModelSide& a, const ModelSide& b, const ModelMatching& matching, Cause& left);

}  // namespace parallax::diff
