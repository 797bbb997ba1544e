// SPDX-License-Identifier: Apache-2.0
// Documents as JSON, exactly as the command line's contract spells them. Numbers that are not finite are the strings
// "nan", "inf" and "-inf".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "inspector/base/result.h"
#include "inspector/diff/comparison.h"
#include "inspector/dump/statistics/statistics.h"

namespace parallax {

// With `failure` (may be null), what failed after the comparison was made stands in the document's "error", unless
// damage does.
std::string comparison_to_json(const Comparison& comparison, const Error* failure = nullptr);
nlohmann::ordered_json comparison_json(const Comparison& comparison);

// Any document as it is printed, on one line where `indent` is -1. Bytes that are no UTF-8 (names may hold any) are
// replaced, and all control characters are escaped, DEL and C1 too.
std::string json_text(const nlohmann::ordered_json& json, int indent = 2);

// Parts of other documents.
nlohmann::ordered_json number_json(double value);
nlohmann::ordered_json text_or_null(const std::string& text);  // null for an empty one
nlohmann::ordered_json execution_json(const ComparedExecution& execution);
// Entries of `expected`: as values, with the "side" that was held against them.
nlohmann::ordered_json expected_json(const std::vector<ValueComparison>& values);
// { "min", "max", "mean", "std", "zeros", "nan", "inf" }
nlohmann::ordered_json statistics_json(const TensorStatistics& statistics);

// "Gather" of "Gather-13", "Gelu" of "com.microsoft.Gelu-1": as operators are named next to a node.
std::string plain_operator(std::string_view versioned);

// { "error": { "code", "message", "node", "op" } }; the code is the process's exit code.
std::string error_to_json(const Error& error);
nlohmann::ordered_json error_json(const Error& error);  // the inner object

}  // namespace parallax
