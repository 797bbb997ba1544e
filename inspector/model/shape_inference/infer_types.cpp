// SPDX-License-Identifier: Apache-2.0
// The walk of inference through graphs, bodies and function calls, and the merging of what is inferred with what is
// declared.
#include "inspector/model/shape_inference/infer_types.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <variant>

#include "inspector/model/link.h"
#include "inspector/model/shape_inference/rows.h"
#include "inspector/model/shape_inference/shape_conflicts.h"
#include "inspector/model/type_check.h"
#include "inspector/model/value_names.h"

namespace parallax {
namespace {

constexpr size_t kMostProblems = 100;
constexpr size_t kMostVisits =
    2'000'000;  // nodes, each counted as often as it is met through calls and rounds of loops
constexpr int kDeepestGraph = 256;

// A graph being inferred, and the one that contains it.
struct Scope {
  const Graph* graph = nullptr;
  std::vector<ValueFacts> facts;
  const Scope* outer = nullptr;
  NodeId node = kNoNode;                         // the node at hand
  mutable std::optional<ValueNames> names = {};  // from the first look-up of a body on

  const ValueFacts* find(std::string_view name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->outer) {
      if (!scope->names.has_value()) scope->names = values_by_name(*scope->graph);
      const ValueId value = find_value(*scope->names, name);
      if (value == kNoValue || scope->graph->values[static_cast<size_t>(value)].is_outer) continue;
      return &scope->facts[static_cast<size_t>(value)];
    }
    return nullptr;
  }
};

// Prefers what the file declares; an inferred number still beats a declared name.
DimExpression merged_dim(const DimExpression& declared, const DimExpression& inferred) {
  return !declared.is_known() || (!declared.number() && inferred.number()) ? inferred : declared;
}

// True where the declared type says at least as much as the inferred one, not counting dimensions of inner types.
bool is_more_definite(const TypeInfo& declared, const TypeInfo& inferred) {
  if (declared.kind == TypeInfo::Kind::unknown) return false;
  if (declared.dtype == DType::undefined && inferred.dtype != DType::undefined) return false;
  if (inferred.inner.empty()) return true;
  return !declared.inner.empty() && is_more_definite(declared.inner.front(), inferred.inner.front());
}

// An argument of a body may have a less general type than the body declares; then the declaration holds.
ValueFacts fitting(ValueFacts given, const ValueFacts& declared) {
  if (!types_agree(declared.type, given.type)) return {};
  if (!declared.shape || !given.shape) return given;
  const bool fits =
      std::ranges::equal(*declared.shape, *given.shape, [](const DimExpression& left, const DimExpression& right) {
        return !left.number() || !right.number() || same(left, right);
      });
  if (!fits) {
    given.shape.reset();
    given.contents.reset();
  }
  return given;
}

// `conflicts`: declarations of what nodes compute count for nothing, and shapes that do not fit are reported.
enum class InferenceOf : uint8_t { types, conflicts };

class Inference final : public BodyInference {
 public:
  Inference(const Model& model, InferenceOf what, ModelTypes& result) : model_(model), what_(what), result_(result) {}

  std::vector<ValueFacts> infer_graph(const Graph& graph, std::vector<ValueFacts> inputs, const Scope* outer);
  std::vector<ValueFacts> infer_body(const Graph& body, std::vector<ValueFacts> inputs) override;
  void report_conflict(std::string message) override { report(TypeProblem::Kind::type, std::move(message)); }

 private:
  void set_stored_values(Scope& scope);
  void set_inputs(Scope& scope, std::vector<ValueFacts> inputs);
  void set_outer_values(Scope& scope);
  void infer_node(Scope& scope, const Node& node);
  std::vector<ValueFacts> call_function(const Scope& scope, const Node& node);
  std::vector<ValueFacts> apply_schema(const Scope& scope, const Node& node);
  ValueFacts merged(const ValueDef& value, ValueFacts inferred);
  void report(TypeProblem::Kind kind, std::string message);
  void record(const Scope& scope);

  void report_unfitting(const Scope& scope, NodeContext& context);

  const Model& model_;
  InferenceOf what_;
  ModelTypes& result_;
  const Scope* current_ = nullptr;
  // The call at which a problem inside a function is reported: the one that the user can see.
  const Scope* call_site_ = nullptr;
  std::set<std::pair<const Graph*, std::pair<NodeId, std::string>>> reported_;
  size_t visits_ = 0;
  int depth_ = 0;
};

std::vector<const ValueFacts*> input_facts(const Scope& scope, const Node& node) {
  std::vector<const ValueFacts*> inputs;
  for (const ValueId value : node.inputs) {
    inputs.push_back(value == kNoValue ? nullptr : &scope.facts[static_cast<size_t>(value)]);
  }
  return inputs;
}

std::vector<ValueFacts> Inference::infer_graph(const Graph& graph, std::vector<ValueFacts> inputs, const Scope* outer) {
  if (depth_ >= kDeepestGraph) return std::vector<ValueFacts>(graph.outputs.size());
  ++depth_;
  Scope scope{&graph, std::vector<ValueFacts>(graph.values.size()), outer, kNoNode};
  set_stored_values(scope);
  set_inputs(scope, std::move(inputs));
  set_outer_values(scope);
  const Scope* const enclosing = std::exchange(current_, &scope);
  for (const NodeId node : graph.order) {
    if (++visits_ > kMostVisits) break;
    scope.node = node;
    infer_node(scope, graph.nodes[static_cast<size_t>(node)]);
  }
  current_ = enclosing;
  --depth_;
  if (call_site_ == nullptr) record(scope);
  std::vector<ValueFacts> outputs;
  for (const ValueId value : graph.outputs) {
    outputs.push_back(value == kNoValue ? ValueFacts{} : scope.facts[static_cast<size_t>(value)]);
  }
  return outputs;
}

std::vector<ValueFacts> Inference::infer_body(const Graph& body, std::vector<ValueFacts> inputs) {
  return infer_graph(body, std::move(inputs), current_);
}

// From IR version 4 on an initializer that is also an input is only a default, whose contents nobody may rely on.
void Inference::set_stored_values(Scope& scope) {
  const Graph& graph = *scope.graph;
  for (size_t index = 0; index < graph.initializers.size() && index < graph.initializer_values.size(); ++index) {
    const ValueId value = graph.initializer_values[index];
    if (value == kNoValue) continue;
    ValueFacts facts = facts_of(graph.initializers[index].tensor);
    constexpr int64_t kFirstWithDefaults = 4;
    if (model_.ir_version >= kFirstWithDefaults && graph.values[static_cast<size_t>(value)].input_index >= 0) {
      facts = facts_of(graph.values[static_cast<size_t>(value)].type);
    }
    scope.facts[static_cast<size_t>(value)] = std::move(facts);
  }
  for (size_t index = 0; index < graph.sparse_initializers.size() && index < graph.sparse_initializer_values.size();
       ++index) {
    const ValueId value = graph.sparse_initializer_values[index];
    if (value == kNoValue) continue;
    // Nodes read a sparse initializer as the dense tensor it stands for.
    const SparseTensor& sparse = graph.sparse_initializers[index];
    ValueFacts& facts = scope.facts[static_cast<size_t>(value)];
    facts.type = TypeInfo::tensor(sparse.values.tensor.dtype());
    facts.shape = DimExpressions(sparse.dims.begin(), sparse.dims.end());
  }
}

void Inference::set_inputs(Scope& scope, std::vector<ValueFacts> inputs) {
  const Graph& graph = *scope.graph;
  for (size_t index = 0; index < graph.inputs.size(); ++index) {
    const ValueId value = graph.inputs[index];
    if (value == kNoValue || scope.facts[static_cast<size_t>(value)].constant != nullptr) continue;
    ValueFacts given = index < inputs.size() ? std::move(inputs[index]) : ValueFacts{};
    const ValueDef& definition = graph.values[static_cast<size_t>(value)];
    given = fitting(std::move(given), facts_of(definition.type));
    scope.facts[static_cast<size_t>(value)] = merged(definition, std::move(given));
  }
}

void Inference::set_outer_values(Scope& scope) {
  for (const ValueId value : scope.graph->outer_values) {
    if (value == kNoValue || scope.outer == nullptr) continue;
    const ValueFacts* facts = scope.outer->find(scope.graph->values[static_cast<size_t>(value)].name);
    if (facts != nullptr) scope.facts[static_cast<size_t>(value)] = *facts;
  }
}

void Inference::infer_node(Scope& scope, const Node& node) {
  std::vector<ValueFacts> outputs;
  if (!node.problem.empty()) {
    // Its rule may rely on what it lacks.
  } else if (node.function != nullptr) {
    outputs = call_function(scope, node);
  } else if (node.schema != nullptr) {
    outputs = apply_schema(scope, node);
  }
  outputs.resize(node.outputs.size());
  for (size_t index = 0; index < node.outputs.size(); ++index) {
    const ValueId value = node.outputs[index];
    if (value == kNoValue) continue;
    scope.facts[static_cast<size_t>(value)] =
        merged(scope.graph->values[static_cast<size_t>(value)], std::move(outputs[index]));
  }
}

// The body of a call does not see the graph around it.
std::vector<ValueFacts> Inference::call_function(const Scope& scope, const Node& node) {
  if (depth_ >= kDeepestGraph || visits_ >= kMostVisits) return {};
  const auto body = bind_function(*node.function, node);
  if (body == nullptr) return {};
  std::vector<ValueFacts> inputs;
  for (const ValueFacts* facts : input_facts(scope, node)) inputs.push_back(facts == nullptr ? ValueFacts{} : *facts);
  const Scope* const outer_call = call_site_;
  if (call_site_ == nullptr) call_site_ = &scope;
  auto outputs = infer_graph(*body, std::move(inputs), nullptr);
  call_site_ = outer_call;
  for (ValueFacts& facts : outputs) facts.constant = nullptr;  // it may be in the body, which ends here
  return outputs;
}

std::vector<ValueFacts> Inference::apply_schema(const Scope& scope, const Node& node) {
  auto facts = input_facts(scope, node);
  std::vector<TypedInput> inputs;
  for (size_t index = 0; index < facts.size(); ++index) {
    if (facts[index] == nullptr) {
      inputs.push_back({});
    } else {
      inputs.push_back({scope.graph->values[static_cast<size_t>(node.inputs[index])].name, &facts[index]->type});
    }
  }
  NodeTypes types = check_node_types(node, inputs);
  if (!types.conflict.empty()) report(TypeProblem::Kind::type, std::move(types.conflict));
  NodeContext context(node, std::move(facts), *this);
  for (size_t index = 0; index < types.outputs.size(); ++index)
    context.output(index).type = std::move(types.outputs[index]);
  if (const ShapeFunction function = shape_function(node.domain, node.op_type)) function(context);
  report_unfitting(scope, context);
  return std::move(context.outputs());
}

// An If may never take a branch, and a function may be called in one.
void Inference::report_unfitting(const Scope& scope, NodeContext& context) {
  const bool is_in_body = scope.outer != nullptr || (call_site_ != nullptr && call_site_->outer != nullptr);
  if (what_ != InferenceOf::conflicts || is_in_body) return;
  if (std::string why = shape_conflict(context); !why.empty()) report(TypeProblem::Kind::conflict, std::move(why));
}

ValueFacts Inference::merged(const ValueDef& value, ValueFacts inferred) {
  ValueFacts declared = facts_of(value.type);
  const bool is_graph_input = value.input_index >= 0 && current_ == nullptr;
  if (what_ == InferenceOf::conflicts && !is_graph_input) {
    declared.shape.reset();
    for (TypeInfo& inner : declared.type.inner) inner.dims.reset();
  }
  const auto differs = [&](TypeProblem::Kind kind) {
    report(kind, "value '" + value.name + "' is declared as " + to_string(value.type) + ", but the node computes " +
                     to_string(type_info_of(inferred)));
  };
  if (!types_agree(declared.type, inferred.type)) {
    differs(TypeProblem::Kind::type);
    return declared;
  }
  if (is_more_definite(declared.type, inferred.type)) inferred.type = declared.type;
  if (!declared.shape) return inferred;
  if (inferred.shape && inferred.shape->size() != declared.shape->size()) {
    differs(TypeProblem::Kind::shape);
    inferred.contents.reset();
    inferred.shape = declared.shape;
    return inferred;
  }
  DimExpressions dims = *declared.shape;
  for (size_t axis = 0; inferred.shape && axis < dims.size(); ++axis) {
    const auto left = dims[axis].number(), right = (*inferred.shape)[axis].number();
    if (left && right && *left != *right) {
      differs(TypeProblem::Kind::shape);
      break;
    }
    dims[axis] = merged_dim(dims[axis], (*inferred.shape)[axis]);
  }
  inferred.shape = std::move(dims);
  return inferred;
}

void Inference::report(TypeProblem::Kind kind, std::string message) {
  const Scope* value_info = call_site_ != nullptr ? call_site_ : current_;
  if (value_info == nullptr || value_info->node == kNoNode || result_.problems.size() >= kMostProblems) return;
  if (call_site_ != nullptr && current_ != nullptr && current_->node != kNoNode) {
    const Node& inner = current_->graph->nodes[static_cast<size_t>(current_->node)];
    message = "inside the function, node '" + inner.display_name + "' (" + inner.op_type + "): " + message;
  }
  // Iterations of a loop visit a node several times.
  if (!reported_.insert({value_info->graph, {value_info->node, message}}).second) return;
  result_.problems.push_back({kind, value_info->graph, value_info->node, std::move(message)});
}

void Inference::record(const Scope& scope) {
  std::vector<TypeInfo>& types = result_.graphs[scope.graph];
  types.clear();
  for (const ValueFacts& facts : scope.facts) types.push_back(type_info_of(facts));
}

void forget_computed_shapes(Graph& graph) {
  for (ValueDef& value : graph.values) {
    if (value.producer != kNoNode) value.type.dims.reset();
  }
  for (Node& node : graph.nodes) {
    for (Attribute& attribute : node.attributes) {
      if (auto* body = std::get_if<std::shared_ptr<Graph>>(&attribute.value)) forget_computed_shapes(**body);
    }
  }
}

void fill_types(Graph& graph, const ModelTypes& types) {
  for (size_t index = 0; index < graph.values.size(); ++index) {
    ValueDef& value = graph.values[index];
    const bool is_listed = value.input_index >= 0 || value.is_graph_output || value.has_value_info;
    if (value.type.kind != TypeInfo::Kind::unknown || is_listed) continue;
    value.type = types.type_of(graph, static_cast<ValueId>(index));
  }
  graph.inferred_outputs.clear();
  for (const ValueId value : graph.outputs) graph.inferred_outputs.push_back(types.type_of(graph, value));
  for (Node& node : graph.nodes) {
    for (Attribute& attribute : node.attributes) {
      if (auto* body = std::get_if<std::shared_ptr<Graph>>(&attribute.value)) fill_types(**body, types);
    }
  }
}

}  // namespace

void fill_types(Model& model, const ModelTypes& types) { fill_types(model.graph, types); }

const TypeInfo& ModelTypes::type_of(const Graph& graph, ValueId value) const {
  static const TypeInfo kUnknown;
  const auto types = graphs.find(&graph);
  if (types == graphs.end() || value < 0 || static_cast<size_t>(value) >= types->second.size()) return kUnknown;
  return types->second[static_cast<size_t>(value)];
}

ModelTypes infer_types(const Model& model) {
  ModelTypes result;
  Inference(model, InferenceOf::types, result).infer_graph(model.graph, {}, nullptr);
  return result;
}

std::vector<TypeInfo> computed_output_types(const Model& model) {
  const std::shared_ptr<Model> copy = copy_model(model);
  forget_computed_shapes(copy->graph);
  const ModelTypes types = infer_types(*copy);
  std::vector<TypeInfo> outputs;
  for (const ValueId id : model.graph.outputs) outputs.push_back(types.type_of(copy->graph, id));
  return outputs;
}

bool are_contradictory(const TypeInfo& a, const TypeInfo& b) {
  if (a.kind != TypeInfo::Kind::tensor || !a.dims.has_value() || !b.dims.has_value()) return false;
  const auto may_be_equal = [](const Dim& x, const Dim& y) {
    return !x.is_known() || !y.is_known() || x.value == y.value;
  };
  return !std::ranges::equal(*a.dims, *b.dims, may_be_equal);
}

std::vector<TypeProblem> find_shape_conflicts(const Model& model) {
  ModelTypes result;
  Inference(model, InferenceOf::conflicts, result).infer_graph(model.graph, {}, nullptr);
  std::erase_if(result.problems, [](const TypeProblem& found) { return found.kind != TypeProblem::Kind::conflict; });
  return std::move(result.problems);
}

}  // namespace parallax
