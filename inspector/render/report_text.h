// SPDX-License-Identifier: Apache-2.0
// A comparison for the terminal: verdict first, then the first divergence, then the worst values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "inspector/diff/comparison.h"

namespace parallax {

struct TextReportOptions {
  int64_t top = 10;    // worst values listed; 0: none, -1: all values in execution order
  bool color = false;  // ANSI colors
};

std::string comparison_to_text(const Comparison& comparison, const TextReportOptions& options);

// The origin of the first divergence, which must exist: "made by Mul 'scale'", or "read by" of a value that no node
// made, or "not made by a node".
std::string origin_of_divergence(const Comparison& comparison);

// "cpu (AMD EPYC): m.onnx" of a side; of an import, which has no device, "imported tensors: m.onnx".
std::string execution_text(const ComparedExecution& execution);

// "Mul 'scale' (in B 'scale_1'), side B, introduced 3.2 (inherited 0.1): it multiplies by 2".
std::string cause_text(const Cause& cause);

// Why the verdict is what it is, where no value of two sides says so: what makes it inconclusive, or the expected
// output that was not met. Empty otherwise.
std::string reason_of(const Comparison& comparison);

// A verdict in words: "not compared"; tokens of contracts are name_of's.
inline std::string_view words_of(Verdict verdict) {
  return verdict == Verdict::not_compared ? "not compared" : name_of(verdict);
}

// The first expected output that was not met, on which side and by how much; empty where all were.
std::string missed_expectation(const Comparison& comparison);
// The sentence about one entry of `expected` that was not met.
std::string missed_expectation(const Comparison& comparison, const ValueComparison& missed);

// The element of largest severity in A and B: integers exactly, others with `digits` digits.
struct WorstElements {
  std::string a, b;
};
// True for metrics of texts, which only count the elements that differ.
bool are_texts(const Metrics& metrics);
WorstElements worst_elements(const Metrics& metrics, int digits = 9);

// A sentence for each value that is damaged; of many, the first and how many more.
std::vector<std::string> damage_sentences(const Comparison& comparison);

// One line for each value, the field names of the JSON form as header (RFC 4180).
std::string comparison_to_csv(const Comparison& comparison);

}  // namespace parallax
