// SPDX-License-Identifier: Apache-2.0
// Lays a model flat: one walk in execution order for values, nodes and what they are made of, one walk back for what is
// made of them.
#include "inspector/diff/matching/matching_graph.h"

#include <algorithm>
#include <array>
#include <optional>

#include "inspector/diff/matching/matching_attributes.h"
#include "inspector/diff/tolerance/quantization.h"
#include "inspector/model/opset/opset_registry.h"

namespace parallax::diff {
namespace {

constexpr HashKey kAnyConstant = 0x6B;

bool is_standard(const Node& node) { return canonical_domain(node.domain) == "ai.onnx"; }

const std::vector<int64_t>* permutation_of(const Node& node) {
  const Attribute* attribute = find_attribute(node, "perm");
  return attribute == nullptr ? nullptr : std::get_if<std::vector<int64_t>>(&attribute->value);
}

bool undo_each_other(const Node& first, const Node& second) {
  const auto *p = permutation_of(first), *q = permutation_of(second);
  if (p == nullptr || q == nullptr || p->size() != q->size()) return false;
  for (size_t axis = 0; axis < q->size(); ++axis) {
    const int64_t middle = (*q)[axis];
    if (middle < 0 || middle >= static_cast<int64_t>(p->size())) return false;
    if ((*p)[static_cast<size_t>(middle)] != static_cast<int64_t>(axis)) return false;
  }
  return true;
}

bool same_known_dims(const TypeInfo& a, const TypeInfo& b) {
  if (!a.dims.has_value() || !b.dims.has_value() || a.dims != b.dims) return false;
  return std::ranges::all_of(*a.dims, [](const Dim& dim) { return dim.is_known() || !dim.name.empty(); });
}

class Flattener {
 public:
  Flattener(const ValueTable& table, const FlatOptions& options) : options_(options) {
    flat_.values.resize(table.value_infos().size());
    for (const ValueInfo& value_info : table.value_infos()) {
      FlatValue& value = flat_.values[static_cast<size_t>(value_info.id)];
      value.value_info = &value_info;
      value.type = value.stands_for = &value_info.graph->values[static_cast<size_t>(value_info.value)].type;
      value.root = value_info.id;
    }
    add_graph(table.main());
    const std::vector<ValueId>& results = table.main().graph->outputs;
    for (size_t index = 0; index < results.size(); ++index) {
      const int32_t id = value_info_of(table.main(), results[index]);
      if (id >= 0) root(id).output = mix(root(id).output, options.outputs[index]);
    }
    for (size_t node = flat_.nodes.size(); node-- > 0;) look_back(static_cast<int32_t>(node));
    for (FlatValue& value : flat_.values) finish_uses(value);
  }

  FlatGraph take() { return std::move(flat_); }

 private:
  FlatValue& at(int32_t id) { return flat_.values[static_cast<size_t>(id)]; }
  FlatValue& root(int32_t id) { return at(at(id).root); }

  static int32_t value_info_of(const GraphValues& location, ValueId value) {
    if (value == kNoValue) return -1;
    if (const ValueInfo* value_info = location.values[static_cast<size_t>(value)]; value_info != nullptr)
      return value_info->id;
    const auto outer = location.outer.find(value);
    return outer == location.outer.end() || outer->second == nullptr ? -1 : outer->second->id;
  }
  int32_t root_of(const GraphValues& location, ValueId value) {
    const int32_t id = value_info_of(location, value);
    return id < 0 ? -1 : at(id).root;
  }

  bool is_cancelled() const { return options_.watch != nullptr && options_.watch->cancel.is_cancelled(); }

  void add_graph(const GraphValues& location) {
    const Graph& graph = *location.graph;
    for (size_t index = 0; index < graph.inputs.size() && location.parent == nullptr; ++index) {
      FlatValue& value = at(value_info_of(location, graph.inputs[index]));
      value.signature = mix(11, options_.inputs[index]);
      value.made_of = value.kind_made_of = value.signature;
    }
    for (size_t index = 0; index < graph.initializers.size() && !is_cancelled(); ++index) {
      const int32_t id = value_info_of(location, graph.initializer_values[index]);
      if (id >= 0 && at(id).value_info->role == ValueInfo::Role::initializer)
        set_constant(at(id), hash_tensor(graph.initializers[index]));
    }
    size_t child = 0;
    for (const NodeId id : graph.order) {
      if (is_cancelled()) return;
      if (options_.watch != nullptr && options_.watch->on_node) options_.watch->on_node();
      const size_t first = child;
      while (child < location.children.size() && location.children[child].node == id) ++child;
      const Node& node = graph.nodes[static_cast<size_t>(id)];
      if (first == child) {
        add_node(location, id, node);
      } else if (node.function != nullptr) {
        add_call(location, node, *location.children[first].value_infos);
      } else {
        add_control_flow(location, id, node, first, child);
      }
    }
  }

  static void set_constant(FlatValue& value, HashKey content) {
    value.signature = value.made_of = content;
    value.kind_made_of = kAnyConstant;
    value.is_constant = value.is_static = true;
  }

  void make_alias(int32_t alias, int32_t source) {
    if (alias < 0 || source < 0) return;
    at(alias).root = at(source).root;
  }

  // Quantized values represent the floats they were made of; where others made them, those that they are dequantized
  // to. Stored quantized values are constants of their own.
  bool passes_quantized(const Graph& graph, const Node& node, int32_t source) {
    if (!options_.passes_quantized || node.outputs[0] == kNoValue) return false;
    if (is_quantize(node) || clamps_at_zero(graph, node)) return true;
    if (!is_dequantize(node) || (root(source).is_constant && !is_floating(root(source).type->dtype))) return false;
    if (!is_floating(root(source).type->dtype)) root(source).stands_for = &value_at(graph, node.outputs[0]).type;
    return true;
  }

  static bool begins_at_zero(const Graph& graph, const Node& node) {
    if (!is_dequantize(node)) return clamps_at_zero(graph, node);
    const std::optional<QuantizedRange> range = quantized_range_of(graph, node);
    return range.has_value() && range->lowest == 0;
  }

  // The value that a node hands on as it is, or with another element type; -1 where it computes.
  int32_t passes_on(const GraphValues& location, const Node& node) {
    if (node.inputs.empty() || node.outputs.empty() || node.inputs[0] == kNoValue) return -1;
    const int32_t source = value_info_of(location, node.inputs[0]);
    if (source < 0) return -1;
    if (passes_quantized(*location.graph, node, source)) {
      if (const int32_t made = value_info_of(location, node.outputs[0]); made >= 0)
        at(made).clamps = begins_at_zero(*location.graph, node);
      return source;
    }
    if (!is_standard(node)) return -1;
    const TypeInfo& output = location.graph->values[static_cast<size_t>(node.outputs[0])].type;
    if (node.op_type == "Identity") return source;
    if (node.op_type == "Dropout" && node.inputs.size() < 3 && node.outputs.size() == 1) return source;
    if (node.op_type == "Cast" || node.op_type == "CastLike") {
      const DType from = at(source).type->dtype, to = output.dtype;
      const bool both_float = is_floating(from) && is_floating(to);
      return both_float || (from == to && from != DType::undefined) ? source : -1;
    }
    if (node.op_type == "Transpose") return undone_transpose(source, node);
    if (node.op_type == "Reshape" || node.op_type == "Flatten") return undone_reshape(source, output);
    return -1;
  }

  const Node* producer_named(int32_t id, std::string_view op) {
    const int32_t producer = at(at(id).root).producer;
    if (producer < 0) return nullptr;
    const FlatNode& flat = flat_.nodes[static_cast<size_t>(producer)];
    const Node& node = flat.location->graph->nodes[static_cast<size_t>(flat.id)];
    return !flat.is_part && node.op_type == op && is_standard(node) ? &node : nullptr;
  }

  int32_t undone_transpose(int32_t source, const Node& node) {
    const Node* first = producer_named(source, "Transpose");
    if (first == nullptr || !undo_each_other(*first, node)) return -1;
    return flat_.nodes[static_cast<size_t>(at(at(source).root).producer)].inputs[0];
  }

  int32_t undone_reshape(int32_t source, const TypeInfo& output) {
    if (same_known_dims(*at(source).type, output)) return source;
    if (producer_named(source, "Reshape") == nullptr) return -1;
    const int32_t before = flat_.nodes[static_cast<size_t>(at(at(source).root).producer)].inputs[0];
    return before >= 0 && same_known_dims(*at(before).type, output) ? before : -1;
  }

  void add_node(const GraphValues& location, NodeId id, const Node& node) {
    if (const int32_t source = passes_on(location, node); source >= 0) {
      make_alias(value_info_of(location, node.outputs[0]), source);
      return;
    }
    FlatNode flat{&location, id, hash_operator(node), 0, false, commutes(node), false, {}, {}, 0};
    for (const ValueId input : node.inputs) flat.inputs.push_back(root_of(location, input));
    for (const ValueId output : node.outputs) flat.outputs.push_back(value_info_of(location, output));
    const bool has_output = !flat.outputs.empty() && flat.outputs[0] >= 0;
    if (node.op_type == "Constant" && is_standard(node) && has_output) {
      set_constant(at(flat.outputs[0]), hash_constant(node));
      at(flat.outputs[0]).producer = static_cast<int32_t>(flat_.nodes.size());
      flat.is_static = true;
      flat_.nodes.push_back(std::move(flat));
      return;
    }
    flat.attributes = hash_attributes(*location.graph, node);
    const bool reads_shape = is_standard(node) && (node.op_type == "Shape" || node.op_type == "Size");
    add(std::move(flat), reads_shape);
  }

  void add_call(const GraphValues& location, const Node& node, const GraphValues& body) {
    const Graph& graph = *body.graph;
    for (size_t index = 0; index < graph.inputs.size() && index < node.inputs.size(); ++index)
      make_alias(value_info_of(body, graph.inputs[index]), value_info_of(location, node.inputs[index]));
    add_graph(body);
    for (size_t index = 0; index < graph.outputs.size() && index < node.outputs.size(); ++index)
      make_alias(value_info_of(location, node.outputs[index]), value_info_of(body, graph.outputs[index]));
  }

  // Values that enter and leave bodies have a node of their own for each port, so that a fault at one says nothing
  // about the others.
  void add_control_flow(const GraphValues& location, NodeId id, const Node& node, size_t first, size_t last) {
    const HashKey op = hash_operator(node), attributes = hash_attributes(*location.graph, node);
    const bool is_loop = node.op_type == "Loop";
    // By name: in which order a file lists its attributes says nothing.
    std::vector<const GraphValues::Child*> children;
    for (size_t child = first; child < last; ++child) children.push_back(&location.children[child]);
    std::ranges::sort(children, {}, [](const GraphValues::Child* child) { return child->attribute; });
    for (const GraphValues::Child* child : children) {
      const GraphValues& body = *child->value_infos;
      const HashKey attribute = hash_text(child->attribute);
      const size_t skipped = node.op_type == "Scan" && node.opset_version < 9 ? 1 : 0;
      for (size_t port = 0; port < body.graph->inputs.size(); ++port) {
        FlatNode enter{&location, id, mix(op, attribute), mix(attributes, port), true, false, false, {}, {}, 0};
        if (port + skipped < node.inputs.size()) enter.inputs.push_back(root_of(location, node.inputs[port + skipped]));
        enter.outputs.push_back(value_info_of(body, body.graph->inputs[port]));
        add(std::move(enter), false);
      }
      add_graph(body);
    }
    for (size_t port = 0; port < node.outputs.size(); ++port) {
      FlatNode leave{&location, id, mix(op, 3), mix(attributes, port), true, false, false, {}, {}, 0};
      const size_t shared = is_loop ? 2 : node.op_type == "If" ? 1 : 0;  // trip count and condition
      for (size_t index = 0; index < shared && index < node.inputs.size(); ++index)
        leave.inputs.push_back(root_of(location, node.inputs[index]));
      for (const GraphValues::Child* child : children) {
        const GraphValues& body = *child->value_infos;
        const size_t output = port + (is_loop ? 1 : 0);
        if (output < body.graph->outputs.size()) leave.inputs.push_back(root_of(body, body.graph->outputs[output]));
        if (is_loop) leave.inputs.push_back(root_of(body, body.graph->outputs[0]));
      }
      leave.outputs.push_back(value_info_of(location, node.outputs[port]));
      add(std::move(leave), false);
    }
  }

  void add(FlatNode flat, bool reads_shape) {
    const auto index = static_cast<int32_t>(flat_.nodes.size());
    HashKey key = mix(flat.op, flat.attributes), kind = key, sum = 0, kind_sum = 0;
    bool is_constant = !flat.is_part, is_static = !flat.is_part;
    for (size_t port = 0; port < flat.inputs.size(); ++port) {
      const int32_t input = flat.inputs[port];
      const HashKey made_of = input < 0 ? 1 : at(input).made_of;
      const HashKey kind_made_of = input < 0 ? 1 : at(input).is_static ? kAnyConstant : at(input).kind_made_of;
      sum += mix(17, made_of);
      kind_sum += mix(17, kind_made_of);
      key = flat.commutes ? key : mix(key, made_of);
      kind = flat.commutes ? kind : mix(kind, kind_made_of);
      if (input < 0) continue;
      is_constant = is_constant && at(input).is_constant;
      is_static = is_static && at(input).is_static;
      if (at(input).is_constant) flat.constants += mix(flat.commutes ? 0 : port, at(input).made_of);
      at(input).uses.push_back({index, static_cast<int32_t>(port)});
    }
    is_constant = is_constant && !flat.inputs.empty();
    is_static = (is_static && !flat.inputs.empty()) || reads_shape;
    flat.is_static = is_static;
    if (flat.commutes) key = mix(key, sum), kind = mix(kind, kind_sum);
    for (size_t port = 0; port < flat.outputs.size(); ++port) {
      if (flat.outputs[port] < 0) continue;
      FlatValue& value = at(flat.outputs[port]);
      value.producer = index;
      value.port = static_cast<int32_t>(port);
      value.made_of = mix(key, port);
      value.kind_made_of = mix(kind, port);
      value.is_constant = is_constant;
      value.is_static = is_static;
    }
    flat_.nodes.push_back(std::move(flat));
  }

  // Hands a node's uses to its inputs: its outputs' own are complete, as all their readers come later.
  void look_back(int32_t index) {
    const FlatNode& flat = flat_.nodes[static_cast<size_t>(index)];
    if (flat.is_static) return;  // shape arithmetic may be folded away in the other graph
    HashKey used_for = mix(flat.op, flat.attributes), kind = used_for, near = 0;
    for (const int32_t output : flat.outputs) {
      if (output < 0) continue;
      FlatValue& value = at(output);
      used_for = mix(used_for, value.used_for + value.output);
      kind = mix(kind, value.kind_used_for + value.output);
      near += mix(5, value.near_uses + value.output);
    }
    used_for = mix(used_for, flat.constants);
    for (size_t port = 0; port < flat.inputs.size(); ++port) {
      if (flat.inputs[port] < 0) continue;
      FlatValue& value = at(flat.inputs[port]);
      const HashKey at_port = flat.commutes ? 0 : port;
      value.used_for += mix(used_for, at_port);
      value.kind_used_for += mix(kind, at_port);
      value.near_uses += mix(flat.op, at_port);
      value.next_uses += mix(mix(flat.op, at_port), near);
    }
  }

  static void finish_uses(FlatValue& value) {
    value.used_for += value.output;
    value.kind_used_for += value.output;
    value.near_uses += value.output;
    value.next_uses += value.output;
  }

  const FlatOptions& options_;
  FlatGraph flat_;
};

}  // namespace

FlatGraph flatten(const ValueTable& table, const FlatOptions& options) { return Flattener(table, options).take(); }

}  // namespace parallax::diff
