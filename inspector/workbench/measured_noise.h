// SPDX-License-Identifier: Apache-2.0
// The rounding noise of a model on given inputs, measured: the reference in the declared types compared with the
// reference in double, and an executor with itself on numbers that are moved by a few units in the last place.
#pragma once

#include <vector>

#include "inspector/diff/comparison.h"
#include "inspector/workbench/run_side.h"

namespace parallax {

// Fills the measured noise of the values that exceed their limits, the accepted ones among them: evidence next to the
// limit, which stays the policy's. `side` is one whose model and inputs they are.
Status measure_noise(const ExecutorFactory& make_executor, const RunSide& side, Comparison& comparison);

// The outputs of the side's executor compared with its outputs where the float32 inputs and initializers are moved by
// `ulps` units in the last place, each element up or down by chance: scales of quantized values among them, so that
// near ties go to the other step. Whole numbers (counts, bounds, masks) and large weights stay as they are. Nothing
// where the executor fails.
std::vector<ValueComparison> measure_nudged(const RunRequest& request, const RunSide& side,
                                            const ExecutorFactory& make_executor, double ulps);

}  // namespace parallax
