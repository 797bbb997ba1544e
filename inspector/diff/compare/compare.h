// SPDX-License-Identifier: Apache-2.0
// Comparing two dumps, and outputs with those of a test_data_set.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "inspector/base/cancel.h"
#include "inspector/base/result.h"
#include "inspector/diff/comparison.h"
#include "inspector/diff/tolerance/policy.h"
#include "inspector/dump/dump_reader.h"
#include "inspector/exec/observer.h"
#include "inspector/model/io/import.h"

namespace parallax {

// Limits of graph outputs.
using LimitsByPath = std::map<std::string, Limit, std::less<>>;

struct CompareOptions {
  bool match_by_name =
      true;  // values without a counterpart at their path match one of equal ONNX name, where that is unique
  bool error_pictures = false;  // of some diverged values (error_picture.h)
  CancelToken cancel;
};

// A is the expected side. Values are loaded pair by pair; payloads that were not captured on both sides are compared by
// their statistics where both have them. A damaged payload leaves its value uncompared, see Comparison::damages.
// Errors: cancelled.
Result<Comparison> compare_dumps(const DumpReader& a, const DumpReader& b, const Policy& policy,
                                 const CompareOptions& options = {});

// One execution's outputs (named) against the expected ones, in their order: by name, else by position. `side` goes
// into each `b` as "<executor>: <name>" when `executor` is not empty. Tolerance without a user's: that of results made
// by other programs, or what `carried` says where that is wider: how far rounding may have taken the output.
std::vector<ValueComparison> compare_expected(std::span<const NamedValue> expected, std::span<const NamedValue> actual,
                                              const std::string& executor, const Policy& policy,
                                              const LimitsByPath& carried = {});

ComparedExecution describe_execution(const RunInfo& run, Side side, double wall_ms);

}  // namespace parallax
