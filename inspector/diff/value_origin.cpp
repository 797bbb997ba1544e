// One walk over each graph, when it is first asked for.
#include "inspector/diff/value_origin.h"

#include <algorithm>
#include <variant>

namespace parallax::diff {
namespace {

// What bodies compute, and what a called function does, is not looked into.
bool has_graph(const Node& node) {
  return node.function != nullptr || std::ranges::any_of(node.attributes, [](const Attribute& attribute) {
           return std::holds_alternative<std::shared_ptr<Graph>>(attribute.value);
         });
}

// Values that follow from initializers, constants and shapes alone: they are there whatever the inputs hold.
std::vector<bool> given_values(const Graph& graph) {
  std::vector<bool> given(graph.values.size());
  for (const auto* initializers : {&graph.initializer_values, &graph.sparse_initializer_values}) {
    for (const ValueId id : *initializers) {
      const auto index = static_cast<size_t>(id);
      given[index] = graph.values[index].input_index < 0;
    }
  }
  for (const NodeId id : graph.order) {
    const Node& node = graph.nodes[static_cast<size_t>(id)];
    if (has_graph(node)) continue;
    const bool is_standard = node.domain.empty() || node.domain == "ai.onnx";
    const bool is_shape = is_standard && (node.op_type == "Shape" || node.op_type == "Size");
    const bool reads_any =
        !node.inputs.empty() || node.op_type == "Constant";  // a generator of random numbers does not
    const bool reads_given = std::ranges::all_of(
        node.inputs, [&](ValueId input) { return input == kNoValue || given[static_cast<size_t>(input)]; });
    if (!is_shape && !(reads_any && reads_given)) continue;
    for (const ValueId output : node.outputs) {
      if (output != kNoValue) given[static_cast<size_t>(output)] = true;
    }
  }
  return given;
}

}  // namespace

Origin OriginIndex::of(const ValueSite& site) {
  if (site.role == ValueSite::Role::initializer) return Origin::constant;
  if (site.role == ValueSite::Role::input && site.scope.empty()) return Origin::input;
  if (site.graph == nullptr || site.value == kNoValue) return Origin::computed;
  const auto [found, is_new] = given_.try_emplace(site.graph);
  if (is_new) found->second = given_values(*site.graph);
  return found->second[static_cast<size_t>(site.value)] ? Origin::constant : Origin::computed;
}

}  // namespace parallax::diff
