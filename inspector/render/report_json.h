// Documents as JSON, exactly as the command line's contract spells them. Numbers that are not finite are the strings
// "nan", "inf" and "-inf".
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "inspector/base/result.h"
#include "inspector/diff/comparison.h"
#include "inspector/dump/statistics.h"

namespace parallax {

std::string comparison_to_json(const Comparison& comparison);
nlohmann::ordered_json comparison_json(const Comparison& comparison);

// Any document as it is printed; bytes that are no UTF-8 (names may hold any) are replaced.
std::string json_text(const nlohmann::ordered_json& json);

// Parts of other documents.
nlohmann::ordered_json number_json(double value);
nlohmann::ordered_json execution_json(const ComparedExecution& execution);
nlohmann::ordered_json values_json(const std::vector<ValueComparison>& values);
// { "min", "max", "mean", "std", "zeros", "nan", "inf" }
nlohmann::ordered_json statistics_json(const TensorStatistics& statistics);

// { "error": { "code", "message", "node", "op" } }; the code is the process's exit code.
std::string error_to_json(const Error& error);

}  // namespace parallax
