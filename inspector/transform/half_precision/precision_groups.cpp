// SPDX-License-Identifier: Apache-2.0
// One walk over a model: infers the element type of every value, and ties inputs and outputs to groups.
#include "inspector/transform/half_precision/precision_groups.h"

#include <algorithm>
#include <map>
#include <optional>

#include "inspector/exec/value_path.h"
#include "inspector/model/link.h"
#include "inspector/model/opset/op_schema.h"
#include "inspector/model/type_check.h"
#include "inspector/transform/half_precision/precision_rules.h"
#include "inspector/transform/half_precision/precision_types.h"

namespace parallax::transform {
namespace {

constexpr int32_t kNotFloat32 = -1;

// A formal input or output of a graph: what the graph around it gives or takes.
struct Formal {
  TypeInfo type;
  GroupId group = kFloat32;
};

struct GraphScope {
  Graph* graph = nullptr;
  const GraphScope* parent = nullptr;
  std::string prefix;
  std::vector<TypeInfo> types;  // by ValueId
  std::vector<int32_t> floats;  // by ValueId: index into PrecisionGroups::values, or kNotFloat32
  std::unordered_map<std::string_view, ValueId> by_name;
  std::set<ValueId> omitted = {};  // formal inputs of a function that its calls leave out
};

struct FunctionUse {
  std::vector<Formal> inputs, outputs;
};

class Walker {
 public:
  Walker(const GroupOptions& options, const std::set<const Function*>& untouched)
      : options_(options), untouched_(untouched) {
    groups_.demands = {Demand::narrow, Demand::float32};
  }

  PrecisionGroups walk(Model& model) {
    std::vector<Formal> inputs(model.graph.inputs.size()), outputs(model.graph.outputs.size());
    const GroupId edge = options_.keep_io ? kFloat32 : kNarrow;
    for (Formal& input : inputs) input.group = edge;
    for (Formal& output : outputs) output.group = edge;
    visit(model.graph, nullptr, "", inputs, outputs);
    return std::move(groups_);
  }

  const Function* conflict() const { return conflict_; }  // called with different types

 private:
  GroupId new_group(Demand demand = Demand::any) {
    groups_.demands.push_back(demand);
    return static_cast<GroupId>(groups_.demands.size()) - 1;
  }
  void demand_float32(GroupId group) {
    if (group > kFloat32) groups_.demands[static_cast<size_t>(group)] = Demand::float32;
  }

  // Types of `outputs` are filled where they are not known.
  void visit(Graph& graph, const GraphScope* parent, const std::string& prefix, const std::vector<Formal>& inputs,
             std::vector<Formal>& outputs) {
    GraphScope scope{&graph, parent, prefix, {}, std::vector<int32_t>(graph.values.size(), kNotFloat32), {}};
    groups_.graphs.push_back(&graph);
    if (parent != nullptr) groups_.enclosing[&graph] = parent->graph;
    for (const ValueDef& value : graph.values) scope.types.push_back(value.type);
    for (size_t id = 0; id < graph.values.size(); ++id)
      scope.by_name.emplace(graph.values[id].name, static_cast<ValueId>(id));
    define_inputs(scope, inputs);
    define_stored(scope);
    for (const ValueId id : graph.outer_values) resolve_outer(scope, id);
    for (const NodeId id : graph.order) visit_node(scope, id);
    for (size_t index = 0; index < graph.outputs.size(); ++index) {
      const ValueId id = graph.outputs[index];
      const TypeInfo& type = scope.types[static_cast<size_t>(id)];
      if (index >= outputs.size()) continue;
      const TypeInfo& formal = outputs[index].type;
      const bool differs = is_known(formal) && is_float32_tensor(formal) != is_float32_tensor(type);
      if (!is_known(type) || differs) mismatched_.push_back(outputs[index].group);
      if (!is_known(formal)) outputs[index].type = type;
      read(scope, id, {&graph, kNoNode, index, outputs[index].group});
    }
  }

  void define(GraphScope& scope, ValueId id, GroupId group, FloatValue::Source source, NodeId producer = kNoNode) {
    int32_t& known = scope.floats[static_cast<size_t>(id)];
    if (known != kNotFloat32) return;
    known = static_cast<int32_t>(groups_.values.size());
    groups_.values.push_back({scope.graph, id, group, source, producer, {}});
  }

  void define_inputs(GraphScope& scope, const std::vector<Formal>& inputs) {
    const Graph& graph = *scope.graph;
    for (size_t index = 0; index < graph.inputs.size(); ++index) {
      const ValueId id = graph.inputs[index];
      TypeInfo& type = scope.types[static_cast<size_t>(id)];
      const Formal formal = index < inputs.size() ? inputs[index] : Formal{};
      if (!is_known(type)) type = formal.type;
      if (scope.parent == nullptr && !scope.prefix.empty() && !is_known(type)) scope.omitted.insert(id);
      if (is_float32_tensor(type)) define(scope, id, formal.group, FloatValue::Source::input);
    }
  }

  void define_stored(GraphScope& scope) {
    const Graph& graph = *scope.graph;
    for (size_t index = 0; index < graph.initializers.size(); ++index) {
      const ValueId id = graph.initializer_values[index];
      const TypeInfo type = TypeInfo::tensor(graph.initializers[index].tensor.dtype());
      if (!is_known(scope.types[static_cast<size_t>(id)])) scope.types[static_cast<size_t>(id)] = type;
      if (is_float32_tensor(type)) define(scope, id, new_group(), FloatValue::Source::initializer);
    }
    for (const ValueId id : graph.sparse_initializer_values) {
      if (is_float32_tensor(scope.types[static_cast<size_t>(id)]))
        define(scope, id, kFloat32, FloatValue::Source::computed);
    }
  }

  static void resolve_outer(GraphScope& scope, ValueId id) {
    const std::string& name = value_at(*scope.graph, id).name;
    for (const GraphScope* around = scope.parent; around != nullptr; around = around->parent) {
      const auto found = around->by_name.find(name);
      if (found == around->by_name.end()) continue;
      scope.types[static_cast<size_t>(id)] = around->types[static_cast<size_t>(found->second)];
      scope.floats[static_cast<size_t>(id)] = around->floats[static_cast<size_t>(found->second)];
      return;
    }
  }

  void read(const GraphScope& scope, ValueId id, const FloatReader& reader) {
    const int32_t value = scope.floats[static_cast<size_t>(id)];
    if (value != kNotFloat32) groups_.values[static_cast<size_t>(value)].readers.push_back(reader);
  }

  // ---- one node ----

  struct NodeVisit {
    NodeId id;
    Node& node;
    FloatNode entry;
    std::map<std::string_view, GroupId> parameters = {};  // type parameter -> group
  };

  const TypeInfo& type_of(const GraphScope& scope, ValueId id) const {
    static const TypeInfo kUnknown;
    return id == kNoValue ? kUnknown : scope.types[static_cast<size_t>(id)];
  }

  void visit_node(GraphScope& scope, NodeId id) {
    Node& node = scope.graph->nodes[static_cast<size_t>(id)];
    NodeVisit visit{id, node, {scope.graph, id, scope.prefix + escape_name(node.display_name), {}, false, false}};
    visit.entry.is_kept = options_.kept.contains({scope.graph, id});
    infer_outputs(scope, node);
    const size_t slot = groups_.nodes.size();
    groups_.nodes.emplace_back();  // keeps its position in execution order before the nodes of its bodies
    if (node.function != nullptr) {
      visit_call(scope, visit);
    } else {
      visit_operator(scope, visit);
    }
    groups_.nodes[slot] = std::move(visit.entry);
  }

  void visit_operator(GraphScope& scope, NodeVisit& visit) {
    switch (node_rule(scope, visit)) {
      case PrecisionRule::constant:
      case PrecisionRule::fills:
        return visit_source(scope, visit);
      case PrecisionRule::casts:
        return visit_cast(scope, visit);
      case PrecisionRule::reads_shape:
        return read_input(scope, visit, 0, kAnyType);
      case PrecisionRule::branches:
        return visit_if(scope, visit);
      case PrecisionRule::loops:
        return visit_loop(scope, visit);
      case PrecisionRule::scans:
        return visit_scan(scope, visit);
      case PrecisionRule::float32_only:
        return visit_float32(scope, visit);
      case PrecisionRule::computes:
      case PrecisionRule::moves:
      case PrecisionRule::quantizes:
        return visit_schema(scope, visit);
    }
  }

  // A node without schema, or one that reads or makes containers, stays in float32.
  PrecisionRule node_rule(const GraphScope& scope, const NodeVisit& visit) const {
    const PrecisionRule rule = precision_rule_of(visit.node);
    const bool has_body =
        rule == PrecisionRule::branches || rule == PrecisionRule::loops || rule == PrecisionRule::scans;
    if (has_body) return rule;
    if (visit.node.schema == nullptr) return PrecisionRule::float32_only;
    const auto is_container = [&](ValueId id) { return holds_float32(type_of(scope, id)); };
    if (std::ranges::any_of(visit.node.inputs, is_container) || std::ranges::any_of(visit.node.outputs, is_container))
      return PrecisionRule::float32_only;
    const bool has_graph = std::ranges::any_of(visit.node.attributes, [](const Attribute& attribute) {
      return std::holds_alternative<std::shared_ptr<Graph>>(attribute.value);
    });
    return has_graph ? PrecisionRule::float32_only : rule;
  }

  void infer_outputs(GraphScope& scope, const Node& node) {
    if (node.schema == nullptr) return;
    std::vector<TypedInput> inputs;
    for (const ValueId id : node.inputs)
      inputs.push_back(id == kNoValue ? TypedInput{}
                                      : TypedInput{value_at(*scope.graph, id).name, &type_of(scope, id)});
    const NodeTypes types = check_node_types(node, inputs);
    for (size_t index = 0; index < node.outputs.size(); ++index) {
      if (node.outputs[index] == kNoValue) continue;
      TypeInfo& type = scope.types[static_cast<size_t>(node.outputs[index])];
      if (!is_known(type)) type = types.outputs[index];
    }
  }

  void read_input(GraphScope& scope, NodeVisit& visit, size_t index, GroupId group) {
    if (index >= visit.node.inputs.size() || visit.node.inputs[index] == kNoValue) return;
    if (!is_float32_tensor(type_of(scope, visit.node.inputs[index]))) return;
    if (group != kAnyType) visit.entry.groups.push_back(group);
    read(scope, visit.node.inputs[index], {scope.graph, visit.id, index, group});
  }

  void define_output(GraphScope& scope, NodeVisit& visit, size_t index, GroupId group,
                     FloatValue::Source source = FloatValue::Source::computed) {
    if (index >= visit.node.outputs.size() || visit.node.outputs[index] == kNoValue) return;
    if (!is_float32_tensor(type_of(scope, visit.node.outputs[index]))) return;
    visit.entry.groups.push_back(group);
    define(scope, visit.node.outputs[index], group, source, visit.id);
  }

  void visit_float32(GraphScope& scope, NodeVisit& visit) {
    for (size_t index = 0; index < visit.node.inputs.size(); ++index) read_input(scope, visit, index, kFloat32);
    for (size_t index = 0; index < visit.node.outputs.size(); ++index) define_output(scope, visit, index, kFloat32);
    for (Attribute& attribute : visit.node.attributes) {
      if (auto* body = std::get_if<std::shared_ptr<Graph>>(&attribute.value)) {
        std::vector<Formal> inputs((*body)->inputs.size()), outputs((*body)->outputs.size());
        this->visit(**body, &scope, frame_prefix(visit, attribute.name), inputs, outputs);
      }
    }
  }

  static std::string frame_prefix(const NodeVisit& visit, std::string_view attribute) {
    if (attribute == "then_branch") return visit.entry.path + ".then//";
    return visit.entry.path + (attribute == "else_branch" ? ".else//" : ".body[*]//");
  }

  // A Constant's tensor, or the number that ConstantOfShape repeats.
  void visit_source(GraphScope& scope, NodeVisit& visit) {
    visit.entry.has_narrow = true;
    const bool fills = precision_rule_of(visit.node) == PrecisionRule::fills;
    const bool is_bound =
        std::ranges::any_of(visit.node.attributes, [](const Attribute& item) { return !item.ref_attr_name.empty(); });
    const bool is_stored = find_attribute(visit.node, "sparse_value") == nullptr && !is_bound;
    const FormalParameter* output = visit.node.schema->output(0);
    const bool fits = output != nullptr && output->types->contains_tensor(options_.to);
    const bool can_change = is_stored && fits && !(fills && visit.entry.is_kept);
    const auto source = !is_stored ? FloatValue::Source::computed
                        : fills    ? FloatValue::Source::fill
                                   : FloatValue::Source::constant;
    define_output(scope, visit, 0, can_change ? new_group() : kFloat32, source);
  }

  void visit_cast(GraphScope& scope, NodeVisit& visit) {
    visit.entry.has_narrow = true;
    const bool like = visit.node.op_type == "CastLike";
    const Attribute* to = find_attribute(visit.node, "to");
    const bool is_bound = !like && (to == nullptr || !to->ref_attr_name.empty());
    const FormalParameter* output = visit.node.schema->output(0);
    const bool fits = output != nullptr && output->types->contains_tensor(options_.to);
    const GroupId group = visit.entry.is_kept || is_bound || !fits ? kFloat32 : new_group();
    read_input(scope, visit, 0, kAnyType);
    if (like) read_input(scope, visit, 1, group);
    define_output(scope, visit, 0, group, like ? FloatValue::Source::computed : FloatValue::Source::cast);
  }

  // ---- operators that their schema describes ----

  // True where the type parameter may be the narrow type on this node.
  bool allows_narrow(const GraphScope& scope, const NodeVisit& visit, std::string_view parameter) const {
    const OpSchema& schema = *visit.node.schema;
    const TypeConstraint* constraint = schema.type_constraint(parameter);
    if (constraint == nullptr || !constraint->types.contains_tensor(options_.to)) return false;
    for (size_t index = 0; index < visit.node.inputs.size(); ++index) {
      const FormalParameter* input = schema.input(index);
      const ValueId id = visit.node.inputs[index];
      if (input == nullptr || id == kNoValue || input->type != parameter || scope.omitted.contains(id)) continue;
      if (!is_known(type_of(scope, id)) && input->homogeneous) return false;
    }
    return true;
  }

  GroupId group_of(const GraphScope& scope, NodeVisit& visit, const FormalParameter& parameter) {
    const PrecisionRule rule = precision_rule_of(visit.node);
    const std::string_view name = rule == PrecisionRule::quantizes ? std::string_view("*") : parameter.type;
    if (parameter.homogeneous) {
      if (const auto known = visit.parameters.find(name); known != visit.parameters.end()) return known->second;
    }
    const Demand demand = rule == PrecisionRule::moves ? Demand::any : Demand::narrow;
    const GroupId group = new_group(allows_narrow(scope, visit, parameter.type) ? demand : Demand::float32);
    if (parameter.homogeneous) visit.parameters[name] = group;
    return group;
  }

  void visit_schema(GraphScope& scope, NodeVisit& visit) {
    const OpSchema& schema = *visit.node.schema;
    std::vector<GroupId> inputs(visit.node.inputs.size(), kFloat32), outputs(visit.node.outputs.size(), kFloat32);
    bool has_unbound = false;
    for (size_t index = 0; index < inputs.size(); ++index) {
      const FormalParameter* parameter = schema.input(index);
      const ValueId id = visit.node.inputs[index];
      if (parameter == nullptr || id == kNoValue || !is_float32_tensor(type_of(scope, id))) continue;
      if (!is_always_float32(visit.node, index)) inputs[index] = group_of(scope, visit, *parameter);
      restrict_quantized(visit, *parameter, inputs[index]);
    }
    for (size_t index = 0; index < outputs.size(); ++index) {
      const FormalParameter* parameter = schema.output(index);
      const ValueId id = visit.node.outputs[index];
      if (parameter == nullptr || id == kNoValue || !is_float32_tensor(type_of(scope, id))) continue;
      const bool quantizes = precision_rule_of(visit.node) == PrecisionRule::quantizes;
      const auto bound = visit.parameters.find(quantizes ? std::string_view("*") : parameter->type);
      if (bound != visit.parameters.end()) {
        outputs[index] = bound->second;
        restrict_quantized(visit, *parameter, outputs[index]);
      } else if (schema.type_constraint(parameter->type) != nullptr && index == 0) {
        has_unbound = true;  // an attribute names its type
      }
    }
    const bool stays = visit.entry.is_kept || has_unbound;
    for (const auto& list : {inputs, outputs}) {
      for (const GroupId group : list) {
        visit.entry.has_narrow |= group > kFloat32 && demand_of(group) != Demand::float32;
        if (stays) demand_float32(group);
      }
    }
    for (size_t index = 0; index < inputs.size(); ++index) read_input(scope, visit, index, inputs[index]);
    for (size_t index = 0; index < outputs.size(); ++index) define_output(scope, visit, index, outputs[index]);
  }

  Demand demand_of(GroupId group) const { return groups_.demands[static_cast<size_t>(group)]; }

  // Scale, data and result of a quantizing node have one type: one of them that cannot change holds the others.
  void restrict_quantized(const NodeVisit& visit, const FormalParameter& parameter, GroupId group) {
    if (precision_rule_of(visit.node) != PrecisionRule::quantizes) return;
    if (!parameter.types->contains_tensor(options_.to)) demand_float32(group);
  }

  // ---- control flow and calls ----

  // Groups for the outputs of a node with bodies: `first` outputs of the bodies have no counterpart.
  void settle(const std::vector<Formal>& formals) {
    for (const GroupId group : mismatched_) {
      const bool is_own = std::ranges::any_of(formals, [&](const Formal& formal) { return formal.group == group; });
      if (is_own) demand_float32(group);
    }
    std::erase_if(mismatched_, [&](GroupId group) {
      return std::ranges::any_of(formals, [&](const Formal& formal) { return formal.group == group; });
    });
  }

  void name_type(GraphScope& scope, ValueId id, const TypeInfo& type) {
    if (id != kNoValue && !is_known(type_of(scope, id))) scope.types[static_cast<size_t>(id)] = without_dims(type);
  }

  void visit_if(GraphScope& scope, NodeVisit& visit) {
    visit.entry.has_narrow = true;
    std::vector<Formal> outputs(visit.node.outputs.size());
    for (size_t index = 0; index < outputs.size(); ++index) {
      outputs[index] = {type_of(scope, visit.node.outputs[index]), state_group(visit)};
    }
    for (Attribute& attribute : visit.node.attributes) {
      auto* body = std::get_if<std::shared_ptr<Graph>>(&attribute.value);
      if (body != nullptr) this->visit(**body, &scope, frame_prefix(visit, attribute.name), {}, outputs);
    }
    settle(outputs);
    for (size_t index = 0; index < outputs.size(); ++index) {
      name_type(scope, visit.node.outputs[index], outputs[index].type);
      define_output(scope, visit, index, outputs[index].group);
    }
  }

  GroupId state_group(const NodeVisit& visit) { return new_group(visit.entry.is_kept ? Demand::float32 : Demand::any); }

  // `first_input` and `first_body` are the positions of the first state among the node's inputs and the body's inputs;
  // `body_skip` is how many outputs of the body (a Loop's condition) come before the states.
  void visit_iterated(GraphScope& scope, NodeVisit& visit, size_t first_input, size_t first_body, size_t body_skip) {
    visit.entry.has_narrow = true;
    auto* body = body_attribute(visit.node);
    if (body == nullptr) return;
    std::vector<Formal> inputs((*body)->inputs.size()), outputs((*body)->outputs.size());
    const size_t count = visit.node.inputs.size() > first_input ? visit.node.inputs.size() - first_input : 0;
    for (size_t index = 0; index < count && first_body + index < inputs.size(); ++index)
      inputs[first_body + index] = {without_dims(type_of(scope, visit.node.inputs[first_input + index])),
                                    state_group(visit)};
    for (size_t index = body_skip; index < outputs.size(); ++index) {
      const size_t output = index - body_skip;
      const bool is_state = output < state_count(visit.node, count);
      if (output < visit.node.outputs.size()) outputs[index].type = type_of(scope, visit.node.outputs[output]);
      outputs[index].group = is_state ? inputs[first_body + output].group : state_group(visit);
      if (is_state && !is_known(outputs[index].type)) outputs[index].type = inputs[first_body + output].type;
    }
    this->visit(**body, &scope, frame_prefix(visit, "body"), inputs, outputs);
    settle(outputs);
    for (size_t index = 0; index < count && first_body + index < inputs.size(); ++index)
      read_input(scope, visit, first_input + index, inputs[first_body + index].group);
    for (size_t index = body_skip; index < outputs.size(); ++index) {
      if (index - body_skip >= visit.node.outputs.size()) continue;
      name_type(scope, visit.node.outputs[index - body_skip], outputs[index].type);
      define_output(scope, visit, index - body_skip, outputs[index].group);
    }
  }

  static size_t state_count(const Node& node, size_t count) {
    const Attribute* scanned = find_attribute(node, "num_scan_inputs");
    const auto* number = scanned == nullptr ? nullptr : std::get_if<int64_t>(&scanned->value);
    const size_t inputs = number == nullptr || *number < 0 ? 0 : static_cast<size_t>(*number);
    return count > inputs ? count - inputs : 0;
  }

  static std::shared_ptr<Graph>* body_attribute(Node& node) {
    for (Attribute& attribute : node.attributes) {
      if (auto* body = std::get_if<std::shared_ptr<Graph>>(&attribute.value)) return body;
    }
    return nullptr;
  }

  void visit_loop(GraphScope& scope, NodeVisit& visit) { visit_iterated(scope, visit, 2, 2, 1); }
  void visit_scan(GraphScope& scope, NodeVisit& visit) {
    visit_iterated(scope, visit, visit.node.opset_version < 9 ? 1 : 0, 0, 0);  // Scan-8 has sequence_lens first
  }

  void visit_call(GraphScope& scope, NodeVisit& visit) {
    visit.entry.has_narrow = true;
    auto& function = const_cast<Function&>(*visit.node.function);  // of the copy that the transform works on
    if (untouched_.contains(&function)) return visit_float32(scope, visit);
    auto [found, is_new] = functions_.try_emplace(&function);
    if (is_new) {
      FunctionUse use;
      use.inputs.resize(function.body.inputs.size());
      use.outputs.resize(function.body.outputs.size());
      for (size_t index = 0; index < use.inputs.size(); ++index) {
        const ValueId id = index < visit.node.inputs.size() ? visit.node.inputs[index] : kNoValue;
        use.inputs[index] = {without_dims(type_of(scope, id)), new_group()};
      }
      for (Formal& output : use.outputs) output.group = new_group();
      this->visit(function.body, nullptr, visit.entry.path + ".call//", use.inputs, use.outputs);
      mismatched_.clear();
      found = functions_.insert_or_assign(&function, std::move(use)).first;
    }
    connect_call(scope, visit, function, found->second);
  }

  void connect_call(GraphScope& scope, NodeVisit& visit, const Function& function, const FunctionUse& use) {
    for (size_t index = 0; index < std::min(use.inputs.size(), visit.node.inputs.size()); ++index) {
      const ValueId id = visit.node.inputs[index];
      if (id != kNoValue && without_dims(type_of(scope, id)) != use.inputs[index].type) conflict_ = &function;
      if (visit.entry.is_kept) demand_float32(use.inputs[index].group);
      read_input(scope, visit, index, use.inputs[index].group);
    }
    for (size_t index = 0; index < std::min(use.outputs.size(), visit.node.outputs.size()); ++index) {
      name_type(scope, visit.node.outputs[index], use.outputs[index].type);
      // A value whose type the body's inference does not know is float32 as the call has it, and stays so.
      if (visit.entry.is_kept || !is_float32_tensor(use.outputs[index].type)) demand_float32(use.outputs[index].group);
      define_output(scope, visit, index, use.outputs[index].group);
    }
  }

  const GroupOptions& options_;
  const std::set<const Function*>& untouched_;
  PrecisionGroups groups_;
  std::map<const Function*, FunctionUse> functions_;
  std::vector<GroupId> mismatched_;  // groups of body outputs whose types differ, until the node is done
  const Function* conflict_ = nullptr;
};

}  // namespace

PrecisionGroups find_precision_groups(Model& model, const GroupOptions& options) {
  std::set<const Function*> untouched;
  for (;;) {
    Walker walker(options, untouched);
    PrecisionGroups groups = walker.walk(model);
    if (walker.conflict() == nullptr) {
      std::erase_if(groups.nodes, [](const FloatNode& node) { return node.groups.empty(); });
      return groups;
    }
    untouched.insert(walker.conflict());
    add_with_calls(walker.conflict()->body, untouched);
  }
}

}  // namespace parallax::transform
