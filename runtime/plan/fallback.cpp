// SPDX-License-Identifier: Apache-2.0
// One-node models, made for the element types at hand.
#include "runtime/plan/fallback.h"

#include <algorithm>

#include <fmt/format.h>

namespace parallax::runtime {
namespace {

TypeInfo type_without_dims(const Value& value) {
  if (value.is_absent()) return {};
  if (value.is_tensor()) return TypeInfo::tensor(value.tensor().dtype());
  TypeInfo type = type_of(value);
  for (TypeInfo* inner = &type; inner != nullptr; inner = inner->inner.empty() ? nullptr : &inner->inner[0]) {
    inner->dims.reset();
  }
  return type;
}

// Inputs and outputs of the graph are the node's own, in order; omitted ones stay omitted.
std::shared_ptr<const Model> model_of(const Node& node, std::span<const TypeInfo> types) {
  auto model = std::make_shared<Model>();
  model->path = "node '" + node.display_name + "' alone";
  model->ir_version = 10;
  model->opset_imports.push_back({node.domain, node.opset_version});
  Graph& graph = model->graph;
  graph.name = node.display_name;
  Node copy = node;
  const auto add_value = [&](std::string name) {
    graph.values.emplace_back().name = std::move(name);
    return static_cast<ValueId>(graph.values.size()) - 1;
  };
  for (size_t index = 0; index < node.inputs.size(); ++index) {
    if (types[index].kind == TypeInfo::Kind::unknown) {
      copy.inputs[index] = kNoValue;
      continue;
    }
    const ValueId value = add_value(fmt::format("input_{}", index));
    ValueDef& definition = graph.values.back();
    definition.type = types[index];
    definition.input_index = static_cast<int32_t>(graph.inputs.size());
    definition.readers = {0};
    graph.inputs.push_back(value);
    copy.inputs[index] = value;
  }
  for (size_t index = 0; index < node.outputs.size(); ++index) {
    if (node.outputs[index] == kNoValue) continue;
    const ValueId value = add_value(fmt::format("output_{}", index));
    ValueDef& definition = graph.values.back();
    definition.producer = 0;
    definition.output_index = static_cast<int32_t>(index);
    definition.is_graph_output = true;
    graph.outputs.push_back(value);
    copy.outputs[index] = value;
  }
  graph.nodes.push_back(std::move(copy));
  graph.order = {0};
  return model;
}

bool has_body(const Node& node) {
  return std::any_of(node.attributes.begin(), node.attributes.end(), [](const Attribute& attribute) {
    return std::holds_alternative<std::shared_ptr<Graph>>(attribute.value);
  });
}

}  // namespace

FallbackNode::FallbackNode(const Node& node, std::shared_ptr<Executor> executor, const RunOptions& options)
    : node_(node), executor_(std::move(executor)) {
  options_.seed = options.seed;
  options_.cancel = options.cancel;
}

Result<std::unique_ptr<FallbackNode>> FallbackNode::create(const Node& node, std::shared_ptr<Executor> executor,
                                                           const RunOptions& options) {
  if (has_body(node)) return unsupported("a node with a body cannot run in another executor");
  return std::unique_ptr<FallbackNode>(new FallbackNode(node, std::move(executor), options));
}

Status FallbackNode::prepare(std::span<const Value> inputs) {
  std::vector<TypeInfo> types;
  for (const Value& value : inputs) types.push_back(type_without_dims(value));
  if (session_ != nullptr && types == types_) return {};
  session_ = PX_TRY(executor_->prepare(model_of(node_, types), options_));
  types_ = std::move(types);
  return {};
}

Result<std::vector<Value>> FallbackNode::run(std::span<const Value> inputs) {
  PX_TRY(prepare(inputs));
  std::vector<Value> present;
  for (const Value& value : inputs) {
    if (!value.is_absent()) present.push_back(value);
  }
  NullObserver nobody;
  std::vector<Value> results = PX_TRY(session_->run(present, nobody));
  std::vector<Value> outputs(node_.outputs.size());
  size_t next = 0;
  for (size_t index = 0; index < outputs.size(); ++index) {
    if (node_.outputs[index] != kNoValue && next < results.size()) outputs[index] = std::move(results[next++]);
  }
  return outputs;
}

}  // namespace parallax::runtime
