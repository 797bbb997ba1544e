// SPDX-License-Identifier: Apache-2.0
// Inputs of a call that are values of an earlier call, such as a cache that a step returned: they differ by what those
// were found to differ by.
#pragma once

#include <algorithm>
#include <string>
#include <unordered_map>

#include <fmt/format.h>

#include "inspector/diff/comparison.h"
#include "inspector/diff/tolerance/judge.h"
#include "inspector/diff/tolerance/value_compare.h"
#include "inspector/dump/dump_reader.h"

namespace parallax::diff {

// Values of side A are recognized by type, shape and statistics, whose signed projections depend on every element.
class CarriedErrors {
 public:
  // An output of a call that passed; other values are no input of another call, or carry nothing.
  void remember(const DumpEntry& entry, const ValueComparison& value) {
    if (!entry.is_graph_output || value.verdict != Verdict::pass || !value.metrics.has_value() ||
        !entry.statistics.has_value())
      return;
    double& error = errors_[key_of(entry)];
    error = std::max(error, inherited_error(*value.metrics));
  }

  // The error that an input of a later call carries; 0 where it is not an earlier value.
  double error_of(const DumpEntry& entry) const {
    if (entry.role != ValueInfo::Role::input || !entry.statistics.has_value()) return 0;
    const auto found = errors_.find(key_of(entry));
    return found == errors_.end() ? 0 : found->second;
  }

  // Tells both judges of the error that a pair of inputs carries; called before they get the values.
  void expect(const DumpEntry& a, const DumpEntry& b, Judge& judge_a, Judge& judge_b) const {
    const double error = error_of(a);
    if (error == 0) return;
    judge_a.expect_error(a.path, error);
    judge_b.expect_error(b.path, error);
  }

 private:
  static std::string key_of(const DumpEntry& entry) {
    const TensorStatistics& statistics = *entry.statistics;
    return fmt::format("{} {} {} {} {} {}", shape_text(entry.type), statistics.count, statistics.l2, statistics.min,
                       statistics.max, fmt::join(statistics.projections, " "));
  }

  std::unordered_map<std::string, double> errors_;
};

}  // namespace parallax::diff
