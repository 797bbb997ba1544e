// SPDX-License-Identifier: Apache-2.0
// The rounding noise of a model on given inputs, measured: the reference in the declared types compared with the
// reference in double.
#pragma once

#include "inspector/diff/comparison.h"
#include "inspector/workbench/run_side.h"

namespace parallax {

// Fills the measured noise of the values that exceed their limits, the accepted ones among them: evidence next to the
// limit, which stays the policy's. `side` is one whose model and inputs they are.
Status measure_noise(const ExecutorFactory& make_executor, const RunSide& side, Comparison& comparison);

}  // namespace parallax
