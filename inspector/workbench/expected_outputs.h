// SPDX-License-Identifier: Apache-2.0
// Outputs compared with those that a test_data_set expects: results of other programs, on other hardware, which round
// and decide near ties in their own way.
#pragma once

#include <vector>

#include "inspector/diff/compare/compare.h"
#include "inspector/workbench/run_side.h"

namespace parallax {

// How far rounding takes each output, from the limits of two sides' comparison; empty where they diverged: the limit of
// a value after a fault includes the fault's own size, which is no rounding.
LimitsByPath output_limits(const Comparison& comparison);

// Compares each side's outputs with the expected ones and lets that weigh in the verdict. `carried`: how far rounding
// may have taken the outputs. Nothing where none are expected.
void add_expected(const Policy& policy, const std::vector<NamedValue>& expected,
                  const std::vector<const RunSide*>& sides, const LimitsByPath& carried, Comparison& comparison);

// Judges once more what is not as expected, where the sides themselves agree and the limits are not the user's: by the
// limits that add_expected was given, widened by what the executor and another one differ in; and what is accepted with
// evidence:
// - an output of B that is accepted as rounding or near ties of A's, which is as expected;
// - an output that was dequantized, no element of which is more than one quantization step off;
// - outputs that hold what is expected in another order, or choose another element, where the
//   scores are near each other;
// - an output of a quantized model that is as far from the expected one as two executors are from each other, or as an
//   executor is from itself where numbers are moved by a few units in the last place (thresholds::kMeasuredRoom times
//   at most).
void look_into_expected(const RunRequest& request, const std::vector<NamedValue>& expected,
                        const std::vector<const RunSide*>& sides, LimitsByPath carried,
                        const ExecutorFactory& make_executor, Comparison& comparison);

}  // namespace parallax
