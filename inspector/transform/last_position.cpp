// SPDX-License-Identifier: Apache-2.0
// From the output back to the product, then a Slice before it.
#include "inspector/transform/last_position.h"

#include <algorithm>
#include <array>

#include "inspector/model/link.h"
#include "inspector/transform/graph_building.h"

namespace parallax::transform {
namespace {

constexpr std::array<std::string_view, 9> kElementwise = {"Add",  "Sub",      "Mul",  "Div",     "Cast",
                                                          "Tanh", "Identity", "Clip", "CastLike"};

const Node* producer_of(const Graph& graph, ValueId id) {
  const NodeId node = value_at(graph, id).producer;
  return node == kNoNode ? nullptr : &graph.nodes[static_cast<size_t>(node)];
}

// A constant that is broadcast over positions: a scalar, or of rank 1.
bool is_shared_by_positions(const Graph& graph, ValueId id) {
  const ValueDef& value = value_at(graph, id);
  if (value.initializer_index >= 0 && value.input_index < 0)
    return graph.initializers[static_cast<size_t>(value.initializer_index)].tensor.shape().rank() <= 1;
  const Node* maker = producer_of(graph, id);
  if (maker == nullptr || maker->op_type != "Constant" || !maker->inputs.empty()) return false;
  const Attribute* tensor = find_attribute(*maker, "value");
  if (tensor == nullptr) return find_attribute(*maker, "value_float") != nullptr;
  const auto* stored = std::get_if<StoredTensor>(&tensor->value);
  return stored != nullptr && stored->tensor.shape().rank() <= 1;
}

bool is_read_once(const Graph& graph, ValueId id) { return value_at(graph, id).readers.size() == 1; }

// The operand of an elementwise node that varies with the position; kNoValue: more than one, or none.
ValueId varying_operand(const Graph& graph, const Node& node) {
  ValueId varying = kNoValue;
  for (const ValueId input : node.inputs) {
    if (input == kNoValue || is_shared_by_positions(graph, input)) continue;
    if (varying != kNoValue) return kNoValue;
    varying = input;
  }
  return varying;
}

// The product whose first operand is [batch, sequence, hidden] and whose second is a matrix that all positions share.
NodeId find_head(const Graph& graph, ValueId logits) {
  ValueId id = logits;
  for (int depth = 0; depth < 16; ++depth) {
    const Node* node = producer_of(graph, id);
    const bool is_readable =
        node != nullptr && (id == logits ? value_at(graph, id).readers.empty()
                                         : is_read_once(graph, id) && !value_at(graph, id).is_graph_output);
    if (!is_readable || !(node->domain.empty() || node->domain == "ai.onnx")) return kNoNode;
    if (node->op_type == "MatMul") {
      const TypeInfo& weights = value_at(graph, node->inputs[1]).type;
      const TypeInfo& states = value_at(graph, node->inputs[0]).type;
      const bool fits =
          weights.dims.has_value() && weights.dims->size() == 2 && states.dims.has_value() && states.dims->size() == 3;
      return fits ? value_at(graph, id).producer : kNoNode;
    }
    if (std::ranges::find(kElementwise, node->op_type) == kElementwise.end()) return kNoNode;
    id = varying_operand(graph, *node);
    if (id == kNoValue) return kNoNode;
  }
  return kNoNode;
}

ValueId add_constant(Graph& graph, FreshNames& names, const std::string& name, int64_t number) {
  TypeInfo type = TypeInfo::tensor(DType::int64);
  type.dims = std::vector<Dim>{Dim{1, ""}};
  const ValueId value = add_value(graph, names.take(name), type);
  graph.nodes.push_back(make_node(name, "Constant", {}, {value}, {int64_constant(number, false)}));
  return value;
}

void set_positions(ValueDef& value) {
  if (value.type.dims.has_value() && value.type.dims->size() == 3) (*value.type.dims)[1] = Dim{1, ""};
}

}  // namespace

Result<std::shared_ptr<Model>> last_position(const Model& model, std::string_view logits) {
  const ValueId output = model.graph.find_value(logits);
  if (output == kNoValue) return std::shared_ptr<Model>();
  const NodeId head = find_head(model.graph, output);
  if (head == kNoNode || model.opset_version("") < 13) return std::shared_ptr<Model>();
  std::shared_ptr<Model> copy = copy_model(model);
  Graph& graph = copy->graph;
  FreshNames names(*copy);
  const ValueId states = graph.nodes[static_cast<size_t>(head)].inputs[0];
  // The nodes before the head come first in the file's order, too: a topological order is made anew.
  const ValueId begin = add_constant(graph, names, "last_position_begin", -1);
  const ValueId end = add_constant(graph, names, "last_position_end", INT64_MAX);
  const ValueId axis = add_constant(graph, names, "last_position_axis", 1);
  TypeInfo type = value_at(graph, states).type;
  (*type.dims)[1] = Dim{1, ""};
  const ValueId last = add_value(graph, names.take("last_position"), type);
  graph.nodes.push_back(make_node("last_position", "Slice", {states, begin, end, axis}, {last}));
  graph.nodes[static_cast<size_t>(head)].inputs[0] = last;
  for (ValueId id = output; id != kNoValue && graph.values[static_cast<size_t>(id)].producer != kNoNode;) {
    ValueDef& value = graph.values[static_cast<size_t>(id)];
    const NodeId node = value.producer;
    set_positions(value);
    if (node == head) break;
    id = varying_operand(graph, graph.nodes[static_cast<size_t>(node)]);
  }
  graph.inferred_outputs.clear();
  link_graph(graph);
  resolve_operators(*copy);
  return copy;
}

}  // namespace parallax::transform
