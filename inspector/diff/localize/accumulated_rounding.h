// SPDX-License-Identifier: Apache-2.0
// Values that exceed the table's limits although no node is to blame: rounding that accumulated on the way, and
// choices that rounding has decided (near ties).
#pragma once

#include <optional>
#include <string>

#include "inspector/diff/diagnosis.h"
#include "inspector/diff/localize/blame_roots.h"

namespace parallax::diff {

// The first value that is Inf or NaN on one side and something else at the same index on the other: that is no
// rounding, even where every node is right on its own inputs. Nothing where there is none. Values that follow from
// constants alone are another definition, and left out where definitions are judged separately.
std::optional<Cause> find_left_range(const Comparison& comparison, bool with_constants = true);

// True for ArgMax, ArgMin and TopK: they choose among numbers, and hand out indices.
bool is_chooser(const Node& node);
// Two choices of such a node from the same scores: the distance of the chosen scores in ULP. Nothing where the indices
// are none of the scores'.
std::optional<double> score_gap(const Node& node, const Tensor& scores, const Tensor& a, const Tensor& b);

// To be called when every node was judged and is right on its own inputs on both sides: then what differs follows from
// rounding. Every value that diverged is accepted, with what was seen at its node.
Status accept_accumulated_rounding(const RootFinder& finder, const Comparison& comparison, Diagnosis& diagnosis);

}  // namespace parallax::diff
