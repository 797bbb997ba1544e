// SPDX-License-Identifier: Apache-2.0
// Reports of `reduce` as JSON and text.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "inspector/base/shown_text.h"
#include "inspector/render/report_json.h"
#include "inspector/workbench/reduce/reduce.h"

namespace parallax {

std::string reduce_to_json(const ReduceResult& result) {
  nlohmann::ordered_json json;
  if (!result.fails) {
    json["error"] = {{"code", 1}, {"message", one_safe_line(result.explanation)}, {"node", nullptr}, {"op", nullptr}};
  } else {
    json = {{"written", result.part.written}, {"nodes", result.part.nodes.size()}, {"names", result.part.nodes},
            {"place", result.location},       {"inputs", result.part.inputs},      {"outputs", result.part.outputs},
            {"checks", result.checks},        {"remembered", result.remembered},   {"minimal", result.is_minimal}};
  }
  return json_text(json);
}

std::string reduce_to_text(const ReduceResult& result) {
  const PartSummary& part = result.part;
  std::string text =
      fmt::format("{} node{} left, still failing: {}\n", part.nodes.size(), part.nodes.size() == 1 ? "" : "s",
                  printable(fmt::format("{}", fmt::join(part.nodes, ", "))));
  if (!result.location.empty()) text += fmt::format("they stand in {}\n", printable(result.location));
  text += fmt::format("{} candidate{} judged{}{}\n", result.checks, result.checks == 1 ? "" : "s",
                      result.remembered > 0 ? fmt::format(", {} of them by the journal", result.remembered) : "",
                      result.is_minimal ? "" : "; the search ended at its limit, fewer nodes may do");
  for (const std::string& file : part.written) text += fmt::format("wrote {}\n", file);
  return text + fmt::format("repeat it with: {}/repeat.sh\n", part.directory);
}

}  // namespace parallax
