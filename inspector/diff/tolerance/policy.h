// SPDX-License-Identifier: Apache-2.0
// Policy: how much a value may differ. `auto` judges by the table of rounding bounds (noise_model.h); users may set
// tolerances for all values, for globs over paths, or in a file (README.md describes it). Integers, bool and strings
// are always exact.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/diff/comparison.h"
#include "inspector/diff/metrics/metrics.h"

namespace parallax {

struct PolicyRule {
  std::string glob;  // over whole value paths, as in exec/value_path.h
  Tolerance tolerance;
};

struct Policy {
  std::optional<Tolerance> tolerance;  // of all values; nothing: `auto`
  std::vector<PolicyRule> rules;       // the last that matches wins over the above

  // The user's limit for a value, or nothing where the table decides.
  std::optional<Limit> limit_of(std::string_view path) const;
};

// 'GLOB@rtol=1e-3,atol=1e-5', either number may be missing (then 0). Errors: usage.
Result<PolicyRule> parse_policy_rule(std::string_view text);

// A non-negative finite number or "inf". Errors: usage, naming `what`.
Result<double> parse_tolerance(std::string_view text, std::string_view what);

// Errors: io; usage naming the file and the key that is wrong.
Result<Policy> read_policy_file(const std::string& path);

}  // namespace parallax
