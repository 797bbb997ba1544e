// SPDX-License-Identifier: Apache-2.0
// Hiding by name: the stand-ins survive any rewrite that keeps nodes it does not know.
#include "inspector/transform/hidden_faults.h"

#include "inspector/model/link.h"
#include "inspector/model/shape_inference/infer_types.h"
#include "inspector/transform/runnable.h"

namespace parallax::transform {
namespace {

constexpr const char* kHiddenDomain = "parallax.hidden";

}  // namespace

HiddenFaults::HiddenFaults(const Model& model) : model_(copy_model(model)) {
  hide(model_->graph);
  for (const auto& function : model_->functions) hide(function->body);
  hide_weights();
  resolve_operators(*model_);
  model_->problems.clear();
}

// True where the graph has absent weights, which then hide the node that holds it.
bool HiddenFaults::hide(Graph& graph) {
  for (Node& node : graph.nodes) {
    bool is_hidden = !node.problem.empty();
    for (const Graph* body : bodies_of(node)) is_hidden = hide(const_cast<Graph&>(*body)) || is_hidden;
    if (!is_hidden) continue;
    const std::string name = "N" + std::to_string(operators_.size());
    operators_.emplace(name, Operator{node.op_type, node.domain, node.overload, node.problem});
    node.op_type = name;
    node.domain = kHiddenDomain;
    node.overload.clear();
    node.problem.clear();
  }
  return has_absent_weight(graph);
}

void HiddenFaults::hide_weights() {
  Graph& graph = model_->graph;
  std::vector<StoredTensor> initializers;
  std::vector<ValueId> values;
  for (size_t index = 0; index < graph.initializers.size(); ++index) {
    const ValueId value = graph.initializer_values[index];
    if (graph.initializers[index].absence.empty()) {
      initializers.push_back(std::move(graph.initializers[index]));
      values.push_back(value);
      continue;
    }
    const bool was_input = value_at(graph, value).input_index >= 0;
    weights_.emplace(value_at(graph, value).name, Weight{std::move(graph.initializers[index]), was_input});
    if (!was_input) graph.inputs.push_back(value);
  }
  graph.initializers = std::move(initializers);
  graph.initializer_values = std::move(values);
  link_graph(graph);
}

std::shared_ptr<const Model> HiddenFaults::restored(const Model& rewritten) const {
  const std::shared_ptr<Model> made = copy_model(rewritten);
  restore(made->graph);
  for (const auto& function : made->functions) restore(function->body);
  Graph& graph = made->graph;
  std::vector<ValueId> inputs;
  for (const ValueId id : graph.inputs) {
    const auto weight = weights_.find(value_at(graph, id).name);
    if (weight == weights_.end() || weight->second.was_input) inputs.push_back(id);
    if (weight == weights_.end()) continue;
    graph.initializers.push_back(weight->second.stored);
    graph.initializer_values.push_back(id);
  }
  graph.inputs = std::move(inputs);
  link_graph(graph);
  resolve_operators(*made);
  fill_types(*made, infer_types(*made));
  return made;
}

void HiddenFaults::restore(Graph& graph) const {
  for (Node& node : graph.nodes) {
    for (const Graph* body : bodies_of(node)) restore(const_cast<Graph&>(*body));
    const auto found = node.domain == kHiddenDomain ? operators_.find(node.op_type) : operators_.end();
    if (found == operators_.end()) continue;
    node.op_type = found->second.op_type;
    node.domain = found->second.domain;
    node.overload = found->second.overload;
    node.problem = found->second.problem;
  }
}

}  // namespace parallax::transform
