// SPDX-License-Identifier: Apache-2.0
// Reports of `extract` as JSON and text.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "inspector/base/shown_text.h"
#include "inspector/render/report_json.h"
#include "inspector/workbench/transforms/extract.h"

namespace parallax {

std::string extract_to_json(const ExtractResult& result) {
  const nlohmann::ordered_json json{{"written", result.part.written},
                                    {"nodes", result.part.nodes.size()},
                                    {"names", result.part.nodes},
                                    {"inputs", result.part.inputs},
                                    {"outputs", result.part.outputs}};
  return json_text(json);
}

std::string extract_to_text(const ExtractResult& result) {
  const PartSummary& part = result.part;
  std::string text = fmt::format("{} node{}, from {} to {}", part.nodes.size(), part.nodes.size() == 1 ? "" : "s",
                                 part.inputs.empty() ? "constants" : fmt::format("{}", fmt::join(part.inputs, ", ")),
                                 fmt::join(part.outputs, ", "));
  text = printable(text) + "\n";
  for (const std::string& file : part.written) text += fmt::format("wrote {}\n", file);
  return text + fmt::format("check it with: parallax test {} --with {}\n", part.directory, result.executor);
}

}  // namespace parallax
