// SPDX-License-Identifier: Apache-2.0
// The choice of patterns by their names, and the account of what they did.
#include "inspector/executors/rewrite.h"

#include <fmt/format.h>

#include "inspector/exec/rewrite_choice.h"
#include "inspector/model/link.h"
#include "inspector/model/shape_inference/infer_types.h"
#include "runtime/plan/evaluate.h"
#include "runtime/plan/plan.h"
#include "runtime/rewrite/apply.h"

namespace parallax {
namespace {

// Counts the nodes of a graph and its bodies; those of other domains than ai.onnx by domain, too.
int64_t count(const Graph& graph, std::map<std::string, int64_t>* custom_ops) {
  int64_t nodes = 0;
  for (const Node& node : graph.nodes) {
    ++nodes;
    if (custom_ops != nullptr && !node.domain.empty() && node.domain != "ai.onnx") ++(*custom_ops)[node.domain];
    for (const Graph* body : bodies_of(node)) nodes += count(*body, custom_ops);
  }
  return nodes;
}

// A declared shape of a value in between may be stale, and hide that the declared shape of an output is, too. Without
// that value inference sees it: the model must not become one that `check` refuses.
void correct_outputs(Model& model, std::vector<std::string>& corrected) {
  const std::vector<TypeInfo> computed = computed_output_types(model);
  for (size_t index = 0; index < computed.size(); ++index) {
    ValueDef& output = model.graph.values[static_cast<size_t>(model.graph.outputs[index])];
    if (!are_contradictory(output.type, computed[index])) continue;
    corrected.push_back(fmt::format("output '{}' was declared as {}, but the graph computes {}, which is declared now",
                                    output.name, to_string(output.type), to_string(computed[index])));
    output.type.dims = computed[index].dims;
  }
}

}  // namespace

std::vector<RewritePattern> list_rewrite_patterns() {
  std::vector<RewritePattern> patterns;
  for (const runtime::Pattern& pattern : runtime::rewrite_patterns()) {
    const std::string_view target = runtime::kOperatorSetNames[static_cast<size_t>(pattern.target)];
    patterns.push_back({pattern.name, pattern.on_by_default, target, pattern.description});
  }
  return patterns;
}

Result<RewrittenModel> rewrite_model(const Model& model, const std::string& patterns) {
  RunOptions options;
  options.rewrite = PX_TRY(parse_patterns("--patterns", patterns));
  for (const auto& [name, on] : options.rewrite.changes) {
    if (runtime::find_pattern(name) == nullptr)
      return usage_error(fmt::format("there is no rewrite pattern '{}'; `parallax rewrite --list` names them", name));
  }
  const auto chosen = PX_TRY(runtime::chosen_patterns(options, true));
  std::vector<int64_t> counts;
  RewrittenModel rewritten;
  const std::shared_ptr<Model> made =
      PX_TRY(runtime::apply_rewrite(model, chosen, {runtime::host_evaluation()}, &counts));
  correct_outputs(*made, rewritten.corrected_outputs);
  rewritten.model = made;
  rewritten.nodes_before = count(model.graph, nullptr);
  rewritten.nodes_after = count(rewritten.model->graph, &rewritten.custom_ops);
  for (size_t at = 0; at < chosen.size(); ++at) {
    if (counts[at] > 0) rewritten.applied.push_back({chosen[at].pattern->name, counts[at]});
  }
  return rewritten;
}

}  // namespace parallax
