// SPDX-License-Identifier: Apache-2.0
// An unmatched value is reported as absent in B, and its counterpart as absent in A.
#include "inspector/diff/matching/unmatch.h"

#include <utility>

#include <fmt/format.h>

#include "inspector/diff/tolerance/value_compare.h"

namespace parallax {

void unmatch(ValueComparison& value, std::string_view note) {
  diff::set_not_compared(value, fmt::format("{}B", diff::kAbsentIn));
  value.note = note;
}

bool is_unmatched(const ValueComparison& value) {
  return value.note == kPairedWrongly || value.note == kEquivalentConstant || value.note == kCountedFromEnd;
}

ValueComparison counterpart_in_b(const ValueComparison& in_a) {
  ValueComparison in_b;
  in_b.path = in_b.b = in_a.b;
  in_b.dtype = in_a.dtype;
  in_b.shape = in_a.shape;
  in_b.origin = in_a.origin;
  diff::set_not_compared(in_b, fmt::format("{}A", diff::kAbsentIn));
  return in_b;
}

void split_unmatched(std::vector<ValueComparison>& values, const DescribeInB& describe) {
  std::vector<ValueComparison> split;
  split.reserve(values.size());
  for (ValueComparison& value : values) {
    ValueComparison& in_a = split.emplace_back(std::move(value));
    if (!is_unmatched(in_a) || in_a.b.empty()) continue;
    ValueComparison in_b = counterpart_in_b(in_a);
    in_a.b.clear();
    in_a.matched_by = MatchedBy::path;
    describe(in_b.path, in_b);
    split.push_back(std::move(in_b));
  }
  values = std::move(split);
}

}  // namespace parallax
