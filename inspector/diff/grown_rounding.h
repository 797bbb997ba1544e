// Values that exceed the table's limits although no node is to blame: rounding that grew on the way, and choices that
// rounding has decided (near ties).
#pragma once

#include "inspector/diff/blame_roots.h"

namespace parallax::diff {

// To be called when every node was judged and is right on its own inputs on both sides: then what differs follows from
// rounding, and passes, each value with its reason.
Status accept_grown_rounding(const RootFinder& finder, Comparison& comparison);

}  // namespace parallax::diff
