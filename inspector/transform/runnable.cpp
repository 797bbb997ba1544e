// SPDX-License-Identifier: Apache-2.0
// One walk in execution order finds the values that cannot be computed, each with the node or weight to blame.
#include "inspector/transform/runnable.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "inspector/exec/value_table.h"
#include "inspector/model/io/import.h"
#include "inspector/model/link.h"
#include "inspector/transform/extract.h"

namespace parallax::transform {
namespace {

// Finds nodes that cannot be executed whatever they read.
class Faults {
 public:
  bool has(const Node& node) {
    if (!node.problem.empty()) return true;
    if (std::ranges::any_of(bodies_of(node), [this](const Graph* body) { return in(*body); })) return true;
    return node.function != nullptr && in_function(*node.function);
  }

 private:
  bool in(const Graph& graph) {
    return has_absent_weight(graph) || std::ranges::any_of(graph.nodes, [this](const Node& node) { return has(node); });
  }

  bool in_function(const Function& function) {
    const auto known = functions_.find(&function);
    if (known != functions_.end()) return known->second;
    return functions_[&function] = in(function.body);
  }

  std::map<const Function*, bool> functions_;
};

struct Blocked {
  std::vector<bool> nodes;                // by NodeId
  std::map<ValueId, const Node*> values;  // that cannot be computed, and why not; null: an absent weight
  std::set<ValueId> sources;              // of these, what the faulty nodes make themselves, and absent weights
  std::set<ValueId> inputs;               // computed, and read by faulty nodes
};

Blocked blocked_by(const Graph& graph) {
  Blocked blocked{std::vector<bool>(graph.nodes.size()), {}, {}, {}};
  for (size_t index = 0; index < graph.initializers.size(); ++index) {
    if (graph.initializers[index].absence.empty()) continue;
    blocked.values.emplace(graph.initializer_values[index], nullptr);
    blocked.sources.insert(graph.initializer_values[index]);
  }
  Faults faults;
  for (const NodeId id : graph.order) {
    const Node& node = graph.nodes[static_cast<size_t>(id)];
    const bool is_faulty = faults.has(node);
    const Node* culprit = is_faulty ? &node : nullptr;
    bool is_blocked = is_faulty;
    for (const ValueId read : reads_of(graph, node)) {
      const auto found = blocked.values.find(read);
      if (is_faulty && found == blocked.values.end() && value_at(graph, read).producer != kNoNode)
        blocked.inputs.insert(read);
      if (is_blocked || found == blocked.values.end()) continue;
      is_blocked = true;
      culprit = found->second;
    }
    if (!is_blocked) continue;
    blocked.nodes[static_cast<size_t>(id)] = true;
    for (const ValueId made : node.outputs) {
      if (made == kNoValue) continue;
      blocked.values.emplace(made, culprit);
      if (is_faulty) blocked.sources.insert(made);
    }
  }
  return blocked;
}

// The problem of `culprit`, or of the first absent weight that the value needs.
Error problem_of(const Model& model, const Node* culprit) {
  const auto is_at = [&](const ModelProblem& problem) {
    return culprit == nullptr ? problem.where.starts_with("value ") : problem.node == culprit->display_name;
  };
  const auto found = std::ranges::find_if(model.problems, is_at);
  if (found != model.problems.end()) return error_of(*found);
  return model.problems.empty() ? invalid_model("it cannot be executed") : error_of(model.problems.front());
}

// The node of the main graph at which a scope begins.
NodeId node_of_scope(const Graph& graph, const GraphValues& main, const ValueInfo& value) {
  for (const GraphValues::Child& child : main.children) {
    if (value.scope.starts_with(child.value_infos->scope)) return child.node;
  }
  return graph.find_node(std::string(value.node));
}

// The values of the main graph that have to be computed for those that the globs match.
Result<std::vector<ValueId>> wanted_values(const std::shared_ptr<const Model>& model,
                                           const std::vector<std::string>& globs) {
  const ValueTable table = PX_TRY(ValueTable::build(model));
  const Graph& graph = model->graph;
  std::vector<std::string> patterns;
  for (const std::string& glob : globs) patterns.push_back(static_glob(glob));
  std::set<ValueId> wanted;
  for (const ValueInfo& value : table.value_infos()) {
    const std::string path = value.scope + value.escaped_name;
    if (std::ranges::none_of(patterns, [&](const std::string& glob) { return glob_matches(glob, path); })) continue;
    if (value.scope.empty()) {
      wanted.insert(value.value);
      continue;
    }
    const NodeId node = node_of_scope(graph, table.main(), value);
    if (node == kNoNode) continue;
    for (const ValueId made : graph.nodes[static_cast<size_t>(node)].outputs) {
      if (made != kNoValue) wanted.insert(made);
    }
  }
  return std::vector<ValueId>(wanted.begin(), wanted.end());
}

bool is_literal(const std::string& glob) { return glob.find_first_of("*?") == std::string::npos; }

// True where every output of the node that anybody wants is given.
bool is_replaced(const Graph& graph, NodeId node, const std::map<std::string, Value>& given) {
  if (node == kNoNode) return true;
  return std::ranges::all_of(graph.nodes[static_cast<size_t>(node)].outputs, [&](ValueId id) {
    if (id == kNoValue) return true;
    const ValueDef& value = value_at(graph, id);
    return given.contains(value.name) || (value.readers.empty() && !value.is_graph_output);
  });
}

// A model of its own with every input of the source, read or not: whoever gives data gives them all.
Result<std::shared_ptr<const Model>> as_model(const Part& part, const PartData& data) {
  const Model& source = *part.location.model;
  const std::shared_ptr<Model> made = assemble_model(part, data);
  std::set<std::string_view> present;
  for (const PartValue& input : part.inputs) present.insert(input.name);
  for (const ValueId id : source.graph.inputs) {
    const ValueDef& input = value_at(source.graph, id);
    if (present.contains(input.name) || input.initializer_index >= 0) continue;
    ValueDef copy;
    copy.name = input.name;
    copy.type = input.type;
    made->graph.inputs.push_back(static_cast<ValueId>(made->graph.values.size()));
    made->graph.values.push_back(std::move(copy));
  }
  made->is_part = true;
  made->path = source.path;
  return std::shared_ptr<const Model>(PX_TRY(finish_model(made)));
}

}  // namespace

bool has_absent_weight(const Graph& graph) {
  return std::ranges::any_of(graph.initializers, [](const StoredTensor& stored) { return !stored.absence.empty(); });
}

Result<std::shared_ptr<const Model>> model_of(const Part& part) { return as_model(part, {}); }

Result<Part> runnable_part(const std::shared_ptr<const Model>& model, const std::vector<std::string>& wanted) {
  const Location location = PX_TRY(find_location(model, {}));
  const Graph& graph = model->graph;
  const Blocked blocked = blocked_by(graph);
  if (wanted.empty()) {
    std::vector<NodeId> nodes;
    for (const NodeId id : graph.order) {
      if (!blocked.nodes[static_cast<size_t>(id)]) nodes.push_back(id);
    }
    if (nodes.empty()) return problem_of(*model, nullptr);
    return part_of_nodes(location, std::move(nodes));
  }
  const bool all_literal = std::ranges::all_of(wanted, is_literal);
  std::vector<ValueId> to;
  const Node* culprit = nullptr;
  ValueId first_blocked = kNoValue;
  for (const ValueId id : PX_TRY(wanted_values(model, wanted))) {
    const auto found = blocked.values.find(id);
    if (found == blocked.values.end()) {
      to.push_back(id);
    } else if (first_blocked == kNoValue) {
      first_blocked = id;
      culprit = found->second;
    }
  }
  if (first_blocked != kNoValue && (all_literal || to.empty())) {
    return problem_of(*model, culprit)
        .with_context(fmt::format("value '{}' cannot be computed", value_at(graph, first_blocked).name));
  }
  if (to.empty()) return usage_error(fmt::format("no value matches '{}'", fmt::join(wanted, "', '")));
  return part_between(location, {}, to);
}

Result<std::shared_ptr<const Model>> runnable_model(const std::shared_ptr<const Model>& model,
                                                    const std::vector<std::string>& wanted) {
  return model_of(PX_TRY(runnable_part(model, wanted)));
}

Result<std::shared_ptr<const Model>> with_stand_ins(const std::shared_ptr<const Model>& model,
                                                    const std::map<std::string, Value>& given) {
  const Graph& graph = model->graph;
  const Blocked blocked = blocked_by(graph);
  std::vector<ValueId> from;
  for (const ValueId id : blocked.sources) {
    if (given.contains(value_at(graph, id).name) && is_replaced(graph, value_at(graph, id).producer, given))
      from.push_back(id);
  }
  if (from.empty()) return model;
  std::vector<ValueId> to;
  const auto keep = [&](ValueId id) {
    if (std::ranges::find(to, id) == to.end()) to.push_back(id);
  };
  for (const ValueId id : graph.outputs) keep(id);
  for (const ValueId id : blocked.inputs) keep(id);
  const Part part = part_between(PX_TRY(find_location(model, {})), from, to);
  PartData data;
  for (const PartValue& input : part.inputs) {
    const auto found = given.find(input.name);
    const bool stands_in = std::ranges::find(from, input.id) != from.end();
    data.inputs.push_back(stands_in && found != given.end() ? found->second : Value());
  }
  return as_model(part, data);
}

std::string describe_left_out(const Model& model, const Part& part) {
  constexpr size_t kMostNamed = 3;
  std::string names;
  size_t named = 0;
  for (const ModelProblem& problem : model.problems) {
    if (named++ < kMostNamed)
      names += fmt::format("{}{}: {}", names.empty() ? "" : "; ", problem.where, problem.message);
  }
  if (named > kMostNamed) names += fmt::format("; and {} more", named - kMostNamed);
  const size_t left_out = model.graph.nodes.size() - part.nodes.size();
  if (left_out == 0) return fmt::format("no node is left out, though the model is not valid: {}", names);
  return fmt::format("{} of {} nodes are left out, since they cannot be executed: {}", left_out,
                     model.graph.nodes.size(), names);
}

}  // namespace parallax::transform
