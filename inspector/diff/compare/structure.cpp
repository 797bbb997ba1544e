// SPDX-License-Identifier: Apache-2.0
// Walks both models along the matching of their nodes.
#include "inspector/diff/compare/structure.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "inspector/diff/matching/matching.h"
#include "inspector/diff/matching/matching_attributes.h"
#include "inspector/diff/matching/matching_consumers.h"
#include "inspector/model/opset/op_schema.h"

namespace parallax {
namespace {

struct LocatedNode {
  const GraphValues* location = nullptr;
  NodeId id = kNoNode;
  const Node& node() const { return location->graph->nodes[static_cast<size_t>(id)]; }
  auto operator<=>(const LocatedNode&) const = default;
};

void collect(const GraphValues& location, std::vector<LocatedNode>& nodes) {
  for (const NodeId id : location.graph->order) {
    nodes.push_back({&location, id});
    for (const GraphValues::Child& child : location.children_of(id)) collect(*child.value_infos, nodes);
  }
}

// The value that an id of the graph stands for, in a graph around it where it is an outer one; null for an omitted one.
const ValueInfo* value_of(const GraphValues& location, ValueId id) {
  if (id == kNoValue) return nullptr;
  if (const ValueInfo* own = location.values[static_cast<size_t>(id)]) return own;
  const auto outer = location.outer.find(id);
  return outer == location.outer.end() ? nullptr : outer->second;
}

bool have_equal_elements(const StoredTensor& a, const StoredTensor& b) {
  if (a.tensor.dtype() != b.tensor.dtype() || a.tensor.shape() != b.tensor.shape()) return false;
  if (!a.absence.empty() || !b.absence.empty()) return a.absence.empty() == b.absence.empty();  // nothing is known
  if (a.tensor.dtype() == DType::string)
    return std::ranges::equal(a.tensor.as<std::string>(), b.tensor.as<std::string>());
  return std::ranges::equal(a.tensor.view().bytes(), b.tensor.view().bytes());
}

// Equality of attributes' values; bodies are compared node by node elsewhere.
struct SameValue {
  template <class Value>
  bool operator()(const Value& a, const Value& b) const {
    return a == b;
  }
  bool operator()(const StoredTensor& a, const StoredTensor& b) const { return have_equal_elements(a, b); }
  bool operator()(const SparseTensor& a, const SparseTensor& b) const {
    return a.dims == b.dims && have_equal_elements(a.values, b.values) && have_equal_elements(a.indices, b.indices);
  }
  bool operator()(const std::shared_ptr<Graph>&, const std::shared_ptr<Graph>&) const { return true; }
  template <class Item>
  bool operator()(const std::vector<Item>& a, const std::vector<Item>& b) const {
    return std::ranges::equal(a, b, [this](const Item& x, const Item& y) { return (*this)(x, y); });
  }
  template <class A, class B>
  requires(!std::is_same_v<A, B>) bool operator()(const A&, const B&) const { return false; }
};

bool are_same(const Attribute& a, const Attribute& b) {
  return a.ref_attr_name == b.ref_attr_name && std::visit(SameValue{}, a.value, b.value);
}

std::string default_text(const Node& node, const std::string& name) {
  const AttributeSchema* schema = node.schema == nullptr ? nullptr : node.schema->attribute(name);
  return schema == nullptr ? "" : to_string(schema->default_value);
}

// True where `node`, which leaves the attribute out, has that value by default.
bool is_default_of(const Node& node, const Attribute& attribute) {
  return node.schema != nullptr && diff::is_default(attribute, node.schema->attribute(attribute.name));
}

class Comparer {
 public:
  Comparer(const ValueTable& a, const ValueTable& b, const StructureOptions& options, StructureComparison& result)
      : a_(a), b_(b), options_(options), result_(result) {}

  Status compare() {
    std::vector<LocatedNode> nodes_a, nodes_b;
    collect(a_.main(), nodes_a);
    collect(b_.main(), nodes_b);
    result_.nodes_a = static_cast<int64_t>(nodes_a.size());
    result_.nodes_b = static_cast<int64_t>(nodes_b.size());
    // The constants of both are read for the matching, and once more where they are compared.
    steps_ = 2 * result_.nodes_a + result_.nodes_b;
    matching_ = match_models(a_, b_, {[this] { step(); }, options_.cancel});
    if (options_.cancel.is_cancelled()) return was_cancelled();
    pair_matched();
    pair_by_results(nodes_a, nodes_b);
    pair_by_names(nodes_a, nodes_b, true);
    pair_by_names(nodes_a, nodes_b, false);
    compare_signature();
    add_problems(Side::a, *result_.a, *result_.b);
    add_problems(Side::b, *result_.b, *result_.a);
    for (const LocatedNode& node : nodes_a) {
      if (options_.cancel.is_cancelled()) return was_cancelled();
      step();
      if (const auto pair = b_of_a_.find(node); pair != b_of_a_.end()) {
        compare_nodes(node, pair->second);
      } else if (!is_shown_with_its_reader(node)) {
        result_.nodes.push_back({NodeDifference::Kind::only_a, node.location->scope, "", &node.node(), nullptr});
      }
    }
    for (const LocatedNode& node : nodes_b) {
      if (paired_in_b_.contains(node) || is_shown_with_its_reader(node)) continue;
      result_.nodes.push_back({NodeDifference::Kind::only_b, "", node.location->scope, nullptr, &node.node()});
    }
    return {};
  }

 private:
  static Error was_cancelled() {
    return {ErrorCode::cancelled, "the comparison of the two models was cancelled", {}, {}};
  }

  void step() {
    if (options_.progress) options_.progress(++step_, steps_);
  }

  // A Constant is data of the node that reads it, as an initializer is.
  static bool is_shown_with_its_reader(const LocatedNode& node) {
    return node.node().op_type == "Constant" && node.node().inputs.empty();
  }

  void pair(const LocatedNode& a, const LocatedNode& b) {
    if (b_of_a_.contains(a) || paired_in_b_.contains(b)) return;  // one node of B may stand for several of A
    b_of_a_.emplace(a, b);
    paired_in_b_.insert(b);
  }

  void pair_matched() {
    for (const NodeMatch& match : matching_.nodes) pair({match.location_a, match.a}, {match.location_b, match.b});
  }

  // Nodes that matching looks through (casts, calls, reshapes) are pairs where their results are and they do the same.
  void pair_by_results(const std::vector<LocatedNode>& nodes_a, const std::vector<LocatedNode>& nodes_b) {
    std::map<const Graph*, const GraphValues*> location_of_graph;
    for (const LocatedNode& node : nodes_b) location_of_graph.emplace(node.location->graph, node.location);
    for (const LocatedNode& node : nodes_a) {
      for (const ValueId made : node.node().outputs) {
        const ValueInfo* value = value_of(*node.location, made);
        const int32_t other = value == nullptr ? -1 : matching_.b_of_a[static_cast<size_t>(value->id)];
        if (other < 0) continue;
        const ValueInfo& in_b = b_.value_infos()[static_cast<size_t>(other)];
        const NodeId producer = value_at(*in_b.graph, in_b.value).producer;
        const auto location = location_of_graph.find(in_b.graph);
        if (producer == kNoNode || location == location_of_graph.end()) continue;
        const LocatedNode candidate{location->second, producer};
        if (candidate.node().op_type == node.node().op_type) pair(node, candidate);
      }
    }
  }

  // Pairs nodes that are left by name, frames and, `by_op`, operator. Without it they have the model's own names, not
  // those that we gave them.
  void pair_by_names(const std::vector<LocatedNode>& nodes_a, const std::vector<LocatedNode>& nodes_b, bool by_op) {
    const auto key_of = [by_op](const LocatedNode& node) {
      return std::pair(node.location->scope + node.node().display_name, by_op ? node.node().op_type : std::string());
    };
    const auto is_nameable = [by_op](const LocatedNode& node) { return by_op || !node.node().name.empty(); };
    std::map<std::pair<std::string, std::string>, LocatedNode> left;
    for (const LocatedNode& node : nodes_b) {
      if (!paired_in_b_.contains(node) && is_nameable(node)) left.emplace(key_of(node), node);
    }
    for (const LocatedNode& node : nodes_a) {
      const auto same = is_nameable(node) ? left.find(key_of(node)) : left.end();
      if (same != left.end()) pair(node, same->second);
    }
  }

  void add_problems(Side side, const Model& model, const Model& other) {
    std::set<std::string_view> shared;
    for (const ModelProblem& problem : other.problems) shared.insert(problem.message);
    for (const ModelProblem& problem : model.problems) {
      if (!shared.contains(problem.message) && problem.code != ErrorCode::io)
        result_.problems.emplace_back(side, problem.where + ": " + problem.message);
    }
  }

  void compare_signature() {
    const Graph &a = *a_.main().graph, &b = *b_.main().graph;
    compare_list(true, a, a.inputs, b, b.inputs, match_inputs(a, b), result_.inputs);
    compare_list(false, a, a.outputs, b, b.outputs, match_outputs(a, b), result_.outputs);
  }

  void compare_list(bool is_input, const Graph& a, const std::vector<ValueId>& in_a, const Graph& b,
                    const std::vector<ValueId>& in_b, const SignatureMatch& match,
                    std::vector<std::pair<std::string, std::string>>& pairs) {
    std::vector<bool> is_known(in_a.size());
    for (size_t index = 0; index < in_b.size(); ++index) {
      const ValueDef& value_b = value_at(b, in_b[index]);
      const int32_t at = match.a_of_b[index];
      if (at < 0) {
        result_.signature.push_back({is_input, "", value_b.name, "", to_string(value_b.type)});
        continue;
      }
      is_known[static_cast<size_t>(at)] = true;
      const ValueDef& value_a = value_at(a, in_a[static_cast<size_t>(at)]);
      pairs.emplace_back(value_a.name, value_b.name);
      if (value_a.type == value_b.type) continue;
      result_.signature.push_back(
          {is_input, value_a.name, value_b.name, to_string(value_a.type), to_string(value_b.type)});
    }
    for (size_t index = 0; index < in_a.size(); ++index) {
      const ValueDef& value = value_at(a, in_a[index]);
      if (!is_known[index]) result_.signature.push_back({is_input, value.name, "", to_string(value.type), ""});
    }
  }

  void compare_nodes(const LocatedNode& a, const LocatedNode& b) {
    ++result_.matched;
    const Node &node_a = a.node(), &node_b = b.node();
    result_.pairs.push_back({a.location->scope, b.location->scope, &node_a, &node_b});
    if (node_a.display_name != node_b.display_name) ++result_.renamed;
    NodeDifference difference{NodeDifference::Kind::changed, a.location->scope, b.location->scope, &node_a, &node_b};
    const std::string op_a = versioned_op_name(node_a), op_b = versioned_op_name(node_b);
    const bool is_same_op = node_a.op_type == node_b.op_type && op_a == op_b;
    if (!is_same_op) difference.changes.push_back({NodeChange::Kind::op, "", op_a, op_b});
    if (node_a.op_type == node_b.op_type) {
      compare_attributes(node_a, node_b, difference.changes);
      compare_inputs(a, b, difference.changes);
      compare_outputs(node_a, node_b, difference.changes);
    }
    if (!difference.changes.empty()) result_.nodes.push_back(std::move(difference));
  }

  static void compare_attributes(const Node& a, const Node& b, std::vector<NodeChange>& changes) {
    std::set<std::string> names;
    for (const Node* node : {&a, &b}) {
      for (const Attribute& attribute : node->attributes) names.insert(attribute.name);
    }
    for (const std::string& name : names) {
      const Attribute *in_a = find_attribute(a, name), *in_b = find_attribute(b, name);
      if (in_a != nullptr && in_b != nullptr && are_same(*in_a, *in_b)) continue;
      if (in_a == nullptr && is_default_of(a, *in_b)) continue;
      if (in_b == nullptr && is_default_of(b, *in_a)) continue;
      NodeChange change{NodeChange::Kind::attribute, name, "", ""};
      change.attribute_a = in_a;
      change.attribute_b = in_b;
      if (in_a == nullptr) change.text_a = default_text(a, name);
      if (in_b == nullptr) change.text_b = default_text(b, name);
      changes.push_back(std::move(change));
    }
  }

  void compare_inputs(const LocatedNode& a, const LocatedNode& b, std::vector<NodeChange>& changes) {
    const auto &inputs_a = a.node().inputs, &inputs_b = b.node().inputs;
    for (size_t slot = 0; slot < std::max(inputs_a.size(), inputs_b.size()); ++slot) {
      const ValueInfo* value_a = slot < inputs_a.size() ? value_of(*a.location, inputs_a[slot]) : nullptr;
      const ValueInfo* value_b = slot < inputs_b.size() ? value_of(*b.location, inputs_b[slot]) : nullptr;
      if (value_a == nullptr && value_b == nullptr) continue;
      compare_input(name_of_input(a.node(), slot), value_a, value_b, changes);
    }
  }

  void compare_input(std::string name, const ValueInfo* a, const ValueInfo* b, std::vector<NodeChange>& changes) {
    const StoredTensor *stored_a = diff::stored_tensor_of(a), *stored_b = diff::stored_tensor_of(b);
    if (stored_a != nullptr && stored_b != nullptr) {
      result_.constants.emplace_back(a, b);
      if (have_equal_elements(*stored_a, *stored_b)) return;
      NodeChange change{NodeChange::Kind::constant, std::move(name), path_of(a), path_of(b)};
      change.tensor_a = stored_a;
      change.tensor_b = stored_b;
      const bool are_alike =
          stored_a->tensor.dtype() == stored_b->tensor.dtype() && stored_a->tensor.shape() == stored_b->tensor.shape();
      if (are_alike && stored_a->absence.empty() && stored_b->absence.empty())
        change.metrics = compare_views(stored_a->tensor, stored_b->tensor, {});
      changes.push_back(std::move(change));
      return;
    }
    const bool are_counterparts = a != nullptr && b != nullptr &&
                                  (matching_.b_of_a[static_cast<size_t>(a->id)] == b->id ||
                                   matching_.a_of_b[static_cast<size_t>(b->id)] == a->id);
    if (!are_counterparts) changes.push_back({NodeChange::Kind::input, std::move(name), path_of(a), path_of(b)});
  }

  static void compare_outputs(const Node& a, const Node& b, std::vector<NodeChange>& changes) {
    const auto count = [](const Node& node) {
      return std::ranges::count_if(node.outputs, [](ValueId id) { return id != kNoValue; });
    };
    if (count(a) == count(b)) return;
    changes.push_back({NodeChange::Kind::outputs, "", std::to_string(count(a)), std::to_string(count(b))});
  }

  static std::string path_of(const ValueInfo* value) {
    return value == nullptr ? "" : value->scope + value->escaped_name;
  }

  static std::string name_of_input(const Node& node, size_t slot) {
    const FormalParameter* parameter = node.schema == nullptr ? nullptr : node.schema->input(slot);
    const bool is_variadic = parameter != nullptr && parameter->option == ParameterOption::variadic;
    return parameter == nullptr || is_variadic ? std::to_string(slot) : std::string(parameter->name);
  }

  const ValueTable& a_;
  const ValueTable& b_;
  const StructureOptions& options_;
  int64_t step_ = 0, steps_ = 0;
  ModelMatching matching_;
  std::map<LocatedNode, LocatedNode> b_of_a_;
  std::set<LocatedNode> paired_in_b_;
  StructureComparison& result_;
};

}  // namespace

bool StructureComparison::is_same_graph() const {
  const auto is_constant = [](const NodeChange& change) { return change.kind == NodeChange::Kind::constant; };
  return signature.empty() && renamed == 0 && std::ranges::all_of(nodes, [&](const NodeDifference& difference) {
           return difference.kind == NodeDifference::Kind::changed &&
                  std::ranges::all_of(difference.changes, is_constant);
         });
}

Result<StructureComparison> compare_structure(std::shared_ptr<const Model> a, std::shared_ptr<const Model> b,
                                              const StructureOptions& options) {
  StructureComparison result;
  result.a = std::move(a);
  result.b = std::move(b);
  result.values_a = std::make_shared<ValueTable>(PX_TRY(ValueTable::build(result.a)));
  result.values_b = std::make_shared<ValueTable>(PX_TRY(ValueTable::build(result.b)));
  PX_TRY(Comparer(*result.values_a, *result.values_b, options, result).compare());
  return result;
}

}  // namespace parallax
