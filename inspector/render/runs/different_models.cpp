// SPDX-License-Identifier: Apache-2.0
// Counts the pairs that can be compared.
#include "inspector/render/runs/different_models.h"

#include <algorithm>

#include <fmt/format.h>

namespace parallax {

std::string different_models(const Comparison& comparison) {
  const auto& sides = comparison.executions;
  if (sides.size() != 2 || sides[0].model_sha256.empty() || sides[1].model_sha256.empty()) return {};
  if (sides[0].model_sha256 == sides[1].model_sha256) return {};
  int64_t in_a = 0, in_b = 0, comparable = 0, compared = 0;
  for (const ValueComparison& value : comparison.values) {
    in_a += !value.a.empty();
    in_b += !value.b.empty();
    const bool is_conflict = value.reason.starts_with("shape") || value.reason.starts_with("dtype");
    if (value.a.empty() || value.b.empty() || is_conflict) continue;
    ++comparable;
    compared += value.verdict != Verdict::not_compared;
  }
  if (2 * comparable >= std::min(in_a, in_b)) return {};
  const auto name = [](const ComparedExecution& side) {
    return side.model.empty() ? "the model of sha256 " + side.model_sha256.substr(0, 12) : "'" + side.model + "'";
  };
  return fmt::format(
      "A and B are of different models: {} and {}; values are paired by name and structure, and {} of {} could be "
      "compared",
      name(sides[0]), name(sides[1]), compared == 0 ? "none" : std::to_string(compared), comparison.values.size());
}

}  // namespace parallax
