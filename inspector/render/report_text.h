// A comparison for the terminal: verdict first, then the first divergence, then the worst values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "inspector/diff/comparison.h"

namespace parallax {

struct TextReportOptions {
  int64_t top = 10;     // worst values listed; 0: none, -1: all values in execution order
  bool colour = false;  // ANSI colours
};

std::string comparison_to_text(const Comparison& comparison, const TextReportOptions& options);

// A sentence for each value that is damaged; of many, the first and how many more.
std::vector<std::string> damage_sentences(const Comparison& comparison);

// One line for each value, the field names of the JSON form as header (RFC 4180).
std::string comparison_to_csv(const Comparison& comparison);

}  // namespace parallax
