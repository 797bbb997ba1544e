// SPDX-License-Identifier: Apache-2.0
// Diagnosis: what the search for causes found about a comparison. It is evidence: a comparison changes only where
// `apply` (compare/apply_diagnosis.h) enters a diagnosis into it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "inspector/diff/comparison.h"

namespace parallax {

// A value that diverged although no node is to blame.
struct AcceptedRounding {
  std::string path;
  Acceptance acceptance;
};

// A match of two values that are no pair, or equivalent constants.
struct UnmatchedValue {
  std::string path;  // in A
  std::string note;  // one of the two of matching/unmatch.h
  // B's value by itself, with its producer; it becomes an entry of its own. Empty: A's entry keeps it.
  std::optional<ValueComparison> in_b = std::nullopt;
};

// A value within its limit, which another comparison of the same two sides found beyond it: of the run before, of a
// second run, or of a run with nothing fused away. Limits depend a little on what was compared before, and fused
// operators leave little to bound them by.
struct RecheckedValue {
  std::string path;
  double severity = 0;  // in the other comparison, as is the limit
  Limit limit;
};

// An output that is not what a data set expects, by rounding alone.
struct AcceptedExpected {
  std::string path;
  Side side = Side::a;  // whose output it is
  Acceptance acceptance;
};

// Paths are those of ValueComparison::path.
struct Diagnosis {
  std::vector<Cause> causes;  // by rank
  std::vector<AcceptedRounding> accepted_as_rounding;
  std::vector<UnmatchedValue> unmatched;
  std::vector<RecheckedValue> rechecked;
  std::vector<AcceptedExpected> expected;
};

}  // namespace parallax
