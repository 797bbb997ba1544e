// SPDX-License-Identifier: Apache-2.0
// Reports of `merge-decoders` as JSON and text.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "inspector/base/memory_budget.h"
#include "inspector/base/shown_text.h"
#include "inspector/render/report_json.h"
#include "inspector/workbench/transforms/merge_decoders.h"

namespace parallax {
namespace {

using MergeJson = nlohmann::ordered_json;

MergeJson json_of(const MergeCheck& check) {
  return {{"executor", check.executor},
          {"against", check.against},
          {"outputs", check.outputs},
          {"different", check.different}};
}

}  // namespace

std::string merge_to_json(const MergeResult& result) {
  const transform::WeightCounts& weights = result.merged.weights;
  MergeJson json{{"output", result.output}, {"condition", result.merged.condition}};
  json["weights"] = {
      {"shared", weights.shared},
      {"only_first", weights.only_first},
      {"only_second", weights.only_second},
      {"bytes", {{"first", weights.first_bytes}, {"second", weights.second_bytes}, {"merged", weights.merged_bytes}}}};
  json["passed_through"] = result.merged.passed_through;
  json["renamed"] = MergeJson::array();
  for (const transform::RenamedItem& item : result.merged.renamed)
    json["renamed"].push_back({{"kind", item.kind}, {"model", item.model}, {"from", item.from}, {"to", item.to}});
  json["verification"] = nullptr;
  if (result.checks) {
    json["verification"] = {{"verdict", result.passed() ? "pass" : "diverged"}, {"checks", MergeJson::array()}};
    for (const MergeCheck& check : *result.checks) json["verification"]["checks"].push_back(json_of(check));
  }
  return json_text(json);
}

std::string merge_to_text(const MergeResult& result) {
  const transform::WeightCounts& weights = result.merged.weights;
  std::string text = fmt::format(
      "wrote {}: '{}' chooses the branch\nweights  {} shared, {} of the first decoder alone, {} of the second; {}, {} "
      "+ "
      "{} before\n",
      result.output, printable(result.merged.condition), weights.shared, weights.only_first, weights.only_second,
      bytes_text(weights.merged_bytes), bytes_text(weights.first_bytes), bytes_text(weights.second_bytes));
  if (!result.merged.passed_through.empty())
    text +=
        printable(fmt::format("passed through with a cache: {}", fmt::join(result.merged.passed_through, ", "))) + "\n";
  if (!result.checks) return text;
  for (const MergeCheck& check : *result.checks) {
    const std::string outcome =
        check.different.empty() ? "equal" : fmt::format("different: {}", fmt::join(check.different, ", "));
    text +=
        fmt::format("{:<10} {}: {} outputs, {}\n", check.executor, check.against, check.outputs, printable(outcome));
  }
  return text + (result.passed() ? "pass: each branch computes what its model does\n"
                                 : "diverged: a branch does not compute what its model does\n");
}

}  // namespace parallax
