// SPDX-License-Identifier: Apache-2.0
// Two sides that run at once, compared value by value while they do.
#pragma once

#include <string>
#include <vector>

#include "inspector/diff/compare/stream_compare.h"
#include "inspector/workbench/run_side.h"

namespace parallax {

// Runs both sides at once, the comparer between them. Both hear of each other's end, so neither waits for ever. Where a
// node of one fails, the other goes on to its end, so that what is said of the first difference does not depend on
// which was quicker; where A ends otherwise (no memory, a full disk), B is cut short. Where both fail, the error is
// always that of A, the expected side.
Status run_side_by_side(RunSide& a, RunSide& b, StreamComparer& comparer, const ProgressCallback& progress);

// The comparison of two sides that have run, with both described. Where one executor computed a node for both, as
// `--fallback` does, equal values prove nothing: they are not compared.
Comparison finish_comparison(const RunSide& a, const RunSide& b, StreamComparer& comparer);

// A side's failure with what led to it, as far as the comparison has come: a node often fails at what one before it
// made wrong. `dumps`: where both sides' values are kept; none or two.
Error with_first_divergence(Error error, StreamComparer& comparer, const std::vector<std::string>& dumps);

}  // namespace parallax
