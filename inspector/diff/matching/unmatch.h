// SPDX-License-Identifier: Apache-2.0
// Takes back a match of two values that turned out to be no pair.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "inspector/diff/comparison.h"

namespace parallax {

// Notes of values of two models that were unmatched: they are no pair, or equivalent constants.
inline constexpr std::string_view kPairedWrongly =
    "what B makes in its place is another value: all that follows agrees";
inline constexpr std::string_view kEquivalentConstant = "another constant, to the same effect";
inline constexpr std::string_view kCountedFromEnd = "the same indices, counted from the other end";

// The value is not compared from here on: B does not have it. It keeps the path of its counterpart until
// split_unmatched.
void unmatch(ValueComparison& value, std::string_view note);
bool is_unmatched(const ValueComparison& value);
// B's value of a pair as an entry of its own, absent in A; its producer is left to the caller.
ValueComparison counterpart_in_b(const ValueComparison& in_a);
// Makes an entry of its own of each counterpart in B of an unmatched value, after A's entry. `describe` fills in the
// producer of the value of this path in B.
using DescribeInB = std::function<void(const std::string& path, ValueComparison& value)>;
void split_unmatched(std::vector<ValueComparison>& values, const DescribeInB& describe);

}  // namespace parallax
