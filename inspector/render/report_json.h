// Documents as JSON, exactly as the command line's contract spells them. Numbers that are not finite are the strings
// "nan", "inf" and "-inf".
#pragma once

#include <string>

#include "inspector/base/result.h"
#include "inspector/diff/comparison.h"
#include "inspector/dump/statistics.h"

namespace parallax {

std::string comparison_to_json(const Comparison& comparison);

// { "min", "max", "mean", "std", "zeros", "nan", "inf" }
std::string statistics_to_json(const TensorStatistics& statistics);

// { "error": { "code", "message", "node", "op" } }; the code is the process's exit code.
std::string error_to_json(const Error& error);

}  // namespace parallax
