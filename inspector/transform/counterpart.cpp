// SPDX-License-Identifier: Apache-2.0
// Cuts B where A was cut, and gives the edges A's names.
#include "inspector/transform/counterpart.h"

#include <algorithm>
#include <unordered_set>

#include "inspector/model/link.h"

namespace parallax::transform {
namespace {

struct Edge {
  size_t in_part = 0;  // position among the part's inputs or outputs
  ValueId id = kNoValue;
};

// The cut of B. The edges are in the order of the part's.
struct Cut {
  Location location;
  std::vector<Edge> from, to;
  std::vector<ValueId> further;  // values equal to A's where the way back ends, too
};

void rename_outer(Graph& body, const std::string& old_name, const std::string& name) {
  for (const ValueId id : body.outer_values) {
    ValueDef& value = body.values[static_cast<size_t>(id)];
    if (value.name == old_name) value.name = name;
  }
  for (const Node& node : body.nodes) {
    for (const Graph* inner : bodies_of(node)) rename_outer(const_cast<Graph&>(*inner), old_name, name);
  }
}

// Names of values in a graph that is a copy of its own, bodies included.
class Renamer {
 public:
  explicit Renamer(Graph& graph) : graph_(graph) {
    for (const ValueDef& value : graph.values) taken_.insert(value.name);
  }

  // Whatever else is called so gets out of the way.
  void rename(ValueId id, const std::string& name) {
    if (value_at(id).name == name) return;
    const ValueId other = graph_.find_value(name);
    if (other != kNoValue) set_name(other, unused(name));
    set_name(id, name);
  }

  std::string unused(const std::string& name) const {
    std::string fresh = name + "_b";
    while (taken_.contains(fresh)) fresh += "_b";
    return fresh;
  }

  ValueId add_value(const std::string& name, const TypeInfo& type) {
    taken_.insert(name);
    ValueDef& value = graph_.values.emplace_back();
    value.name = name;
    value.type = type;
    return static_cast<ValueId>(graph_.values.size() - 1);
  }

 private:
  ValueDef& value_at(ValueId id) { return graph_.values[static_cast<size_t>(id)]; }

  void set_name(ValueId id, const std::string& name) {
    const std::string old_name = value_at(id).name;
    value_at(id).name = name;
    taken_.insert(name);
    if (const int32_t stored = value_at(id).initializer_index; stored >= 0)
      graph_.initializers[static_cast<size_t>(stored)].name = name;
    if (const int32_t stored = value_at(id).sparse_initializer_index; stored >= 0)
      graph_.sparse_initializers[static_cast<size_t>(stored)].values.name = name;
    for (const Node& node : graph_.nodes) {
      for (const Graph* body : bodies_of(node)) rename_outer(const_cast<Graph&>(*body), old_name, name);
    }
  }

  Graph& graph_;
  std::unordered_set<std::string> taken_;
};

bool is_stored(const Definition& definition) {
  return stored_tensor(definition) != nullptr || definition.value().sparse_initializer_index >= 0;
}

// The values besides `from` at which the way back from the outputs may end.
std::vector<ValueId> equal_values(const Cut& cut, const MatchedValues& matched) {
  std::vector<ValueId> equal;
  for (size_t index = 0; index < cut.location.graph().values.size(); ++index) {
    const auto id = static_cast<ValueId>(index);
    const auto definition = definition_of(cut.location, id);
    const bool is_edge = std::ranges::find(cut.from, id, &Edge::id) != cut.from.end() ||
                         std::ranges::find(cut.to, id, &Edge::id) != cut.to.end();
    if (is_edge || !definition.has_value() || is_stored(*definition)) continue;
    if (matched.equal_in_b.contains(definition->path())) equal.push_back(id);
  }
  return equal;
}

// The value of the cut's graph that `located` is: its own, or one that it reads from around it.
ValueId value_in(const Location& location, const LocatedValue& located) {
  if (located.location.prefix() == location.prefix()) return located.id;
  const ValueId id = location.graph().find_value(located.location.graph().values[static_cast<size_t>(located.id)].name);
  return id != kNoValue && location.graph().values[static_cast<size_t>(id)].is_outer ? id : kNoValue;
}

std::optional<Cut> find_cut(const Part& part, const MatchedValues& matched,
                            const std::shared_ptr<const Model>& model_b) {
  Cut cut;
  const auto locate = [&](const PartValue& edge) -> std::optional<LocatedValue> {
    const auto match = matched.b_of_a.find(edge.path);
    if (match == matched.b_of_a.end()) return std::nullopt;
    auto located = locate_value(model_b, match->second);
    return located.ok() ? std::optional(std::move(located).take()) : std::nullopt;
  };
  for (size_t index = 0; index < part.outputs.size(); ++index) {
    const auto located = locate(part.outputs[index]);
    if (!located.has_value()) continue;
    if (cut.to.empty()) cut.location = located->location;
    if (located->location.prefix() == cut.location.prefix()) cut.to.push_back({index, located->id});
  }
  if (cut.to.empty()) return std::nullopt;
  for (size_t index = 0; index < part.inputs.size(); ++index) {
    const auto located = locate(part.inputs[index]);
    if (!located.has_value()) return std::nullopt;
    const ValueId id = value_in(cut.location, *located);
    const bool is_new = std::ranges::find(cut.from, id, &Edge::id) == cut.from.end();
    if (id != kNoValue && is_new) cut.from.push_back({index, id});
  }
  cut.further = equal_values(cut, matched);
  return cut;
}

// Values of B's part that A's part does not have as inputs, stored as they were in B's own run.
Result<bool> store_inputs(Graph& graph, const Part& part_b, const std::vector<bool>& is_given,
                          const ValueLookup& computed_in_b) {
  std::vector<ValueId> inputs;
  for (size_t index = 0; index < graph.inputs.size(); ++index) {
    if (is_given[index]) {
      inputs.push_back(graph.inputs[index]);
      continue;
    }
    const Value value = PX_TRY(computed_in_b(part_b, part_b.inputs[index]));
    if (!value.is_tensor()) return false;
    StoredTensor stored;
    stored.name = part_b.inputs[index].name;
    stored.tensor = value.tensor();
    graph.initializers.push_back(std::move(stored));
    graph.initializer_values.push_back(graph.inputs[index]);
    graph.values[static_cast<size_t>(graph.inputs[index])].type = type_of(value);
  }
  graph.inputs = std::move(inputs);
  return true;
}

// An output that no node of the part computes, or that is one already, comes out of an Identity.
void give_output_a_node(Graph& graph, size_t output, Renamer& names) {
  const ValueId id = graph.outputs[output];
  const bool is_made = std::ranges::any_of(
      graph.nodes, [&](const Node& node) { return std::ranges::find(node.outputs, id) != node.outputs.end(); });
  const auto begin = graph.outputs.begin();
  const bool is_first =
      std::find(begin, begin + static_cast<std::ptrdiff_t>(output), id) == begin + static_cast<std::ptrdiff_t>(output);
  if (is_made && is_first) return;
  const ValueDef& value = graph.values[static_cast<size_t>(id)];
  const TypeInfo type = value.type;
  const std::string name = names.unused(value.name);
  Node node;
  node.name = "identity_of_" + value.name;
  node.op_type = "Identity";
  node.inputs = {id};
  node.outputs = {names.add_value(name, type)};
  graph.outputs[output] = node.outputs.front();
  graph.nodes.push_back(std::move(node));
}

}  // namespace

Result<std::shared_ptr<Model>> counterpart_of(const Part& part, const PartData& data, const MatchedValues& matched,
                                              const std::shared_ptr<const Model>& model_b,
                                              const ValueLookup& computed_in_b) {
  const std::shared_ptr<Model> none;
  const auto cut = find_cut(part, matched, model_b);
  if (!cut.has_value()) return none;
  std::vector<ValueId> from, to;
  for (const Edge& edge : cut->from) from.push_back(edge.id);
  from.insert(from.end(), cut->further.begin(), cut->further.end());
  for (const Edge& edge : cut->to) to.push_back(edge.id);
  const Part part_b = part_between(cut->location, from, to);
  PartData data_b;
  std::vector<bool> is_given;
  std::vector<std::string> input_names;
  for (const PartValue& input : part_b.inputs) {
    const auto edge = std::ranges::find(cut->from, input.id, &Edge::id);
    is_given.push_back(edge != cut->from.end());
    data_b.inputs.push_back(is_given.back() ? data.inputs[edge->in_part] : Value());
    if (is_given.back()) input_names.push_back(part.inputs[edge->in_part].name);
  }
  auto model = assemble_model(part_b, data_b);
  Graph& graph = model->graph;
  if (!PX_TRY(store_inputs(graph, part_b, is_given, computed_in_b))) return none;
  link_graph(graph);
  Renamer names(graph);
  for (size_t index = 0; index < graph.outputs.size(); ++index) give_output_a_node(graph, index, names);
  for (size_t index = 0; index < graph.outputs.size(); ++index)
    names.rename(graph.outputs[index], part.outputs[cut->to[index].in_part].name);
  for (size_t index = 0; index < graph.inputs.size(); ++index) names.rename(graph.inputs[index], input_names[index]);
  return finish_model(std::move(model));
}

}  // namespace parallax::transform
