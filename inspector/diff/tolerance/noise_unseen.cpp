// SPDX-License-Identifier: Apache-2.0
// Walks back from values that were not observed.
#include "inspector/diff/tolerance/noise_unseen.h"

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "inspector/diff/tolerance/noise_inputs.h"
#include "inspector/diff/tolerance/noise_table.h"

namespace parallax::diff {

bool may_have_rounded(const Graph& graph, ValueId id, bool in_main_graph, int depth) {
  constexpr int kDeepest = 16;
  if (id == kNoValue) return false;
  const ValueDef& definition = value_at(graph, id);
  if (!is_counted(definition.type.dtype)) return false;
  if (definition.producer == kNoNode) return !in_main_graph && definition.initializer_index < 0;
  const Node& producer = graph.nodes[static_cast<size_t>(definition.producer)];
  if (producer.inputs.empty()) return false;
  const NoiseRow& row = noise_row_of(producer.op_type, producer.domain);
  if (row.propagation != ErrorPropagation::copy || depth == kDeepest) return true;
  return std::ranges::any_of(producer.inputs,
                             [&](ValueId input) { return may_have_rounded(graph, input, in_main_graph, depth + 1); });
}

DType coarsest_unseen(const Graph& graph, ValueId id, const std::function<bool(const ValueDef&)>& is_observed) {
  DType coarsest = DType::undefined;
  std::vector<ValueId> waiting{id};
  std::unordered_set<ValueId> seen{id};
  while (!waiting.empty()) {
    const ValueDef& definition = value_at(graph, waiting.back());
    waiting.pop_back();
    const bool is_made = definition.producer != kNoNode && is_counted(definition.type.dtype);
    if (!is_made || is_observed(definition)) continue;
    const Node& producer = graph.nodes[static_cast<size_t>(definition.producer)];
    if (!producer.inputs.empty()) coarsest = coarser(coarsest, real_part(definition.type.dtype));
    for (const ValueId input : producer.inputs) {
      if (input != kNoValue && seen.insert(input).second) waiting.push_back(input);
    }
  }
  return coarsest;
}

bool has_unknown_size(const Graph& graph, ValueId id) {
  const ValueDef& definition = value_at(graph, id);
  if (!is_counted(definition.type.dtype)) return false;
  return definition.producer == kNoNode || !graph.nodes[static_cast<size_t>(definition.producer)].inputs.empty();
}

}  // namespace parallax::diff
