// SPDX-License-Identifier: Apache-2.0
// Near ties against a data set: outputs that hold what is expected in another order, or another choice, because scores
// are next to each other.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "inspector/diff/comparison.h"
#include "inspector/model/io/import.h"
#include "inspector/workbench/run_side.h"

namespace parallax {

// An output of one side next to the expected one. Both outlive it.
struct ExpectedOutput {
  const ValueComparison* comparison = nullptr;
  const Value *expected = nullptr, *actual = nullptr;
};
// The side's outputs that have a counterpart, in the order of `expected`.
std::vector<ExpectedOutput> pair_expected(std::span<const NamedValue> expected, std::span<const NamedValue> actual,
                                          std::span<const ValueComparison> compared);

// Detections, or what a TopK gives: rows that are the expected ones in another order, where each stands in place of one
// whose score, in an output that is as expected, is next to its own. Holds for all diverged outputs that have as many
// rows as scores together; their paths, and the evidence. Nothing where a row is not among the expected ones.
struct Reordered {
  std::vector<std::string> paths;
  std::string evidence;
};
std::optional<Reordered> find_reordered(const std::vector<ExpectedOutput>& outputs);

// Indices that an ArgMax, ArgMin or TopK chose, where those expected have scores next to theirs: within what rounding
// does to the scores, whose limits are `measured`'s. Nothing where another node makes the output, or the
// scores differ by more.
std::optional<Acceptance> accepted_as_near_tie(const ExpectedOutput& output, const RunSide& side,
                                               const RunRequest& request, const ExecutorFactory& make_executor,
                                               const Comparison& measured);

}  // namespace parallax
