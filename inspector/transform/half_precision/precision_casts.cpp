// SPDX-License-Identifier: Apache-2.0
// One cast for a value and type, next to the node that makes the value.
#include "inspector/transform/half_precision/precision_casts.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "inspector/model/link.h"
#include "inspector/model/make_attribute.h"
#include "inspector/transform/graph_building.h"

namespace parallax::transform {
namespace {

constexpr int64_t kNumberedCast = 6;  // Cast before it names its type in words

class CastInsertion {
 public:
  CastInsertion(Model& model, const PrecisionGroups& groups, const std::vector<bool>& is_narrow, DType to)
      : model_(model), groups_(groups), is_narrow_(is_narrow), to_(to), names_(model) {
    for (const FloatValue& value : groups.values) floats_.insert({value.graph, value.id});
  }

  void insert() {
    name_outer_types();
    for (const FloatValue& value : groups_.values) insert_for(value);
    for (Graph* graph : groups_.graphs) drop_idle_casts(*graph);
    for (Graph* graph : groups_.graphs) insert_nodes(*graph);
    for (auto graph = groups_.graphs.rbegin(); graph != groups_.graphs.rend(); ++graph) drop_unused_values(**graph);
  }

 private:
  bool narrow(GroupId group) const { return is_narrow_[static_cast<size_t>(group)]; }
  static ValueDef& at(Graph& graph, ValueId id) { return graph.values[static_cast<size_t>(id)]; }

  Graph* around(const Graph* graph) const {
    const auto found = groups_.enclosing.find(graph);
    return found == groups_.enclosing.end() ? nullptr : found->second;
  }

  // Bodies know the types of what they read from around them.
  void name_outer_types() {
    for (Graph* graph : groups_.graphs) {
      Graph* outside = around(graph);
      if (outside == nullptr || graph->outer_values.empty()) continue;
      std::unordered_map<std::string_view, ValueId> ids;
      for (size_t id = 0; id < outside->values.size(); ++id)
        ids.emplace(outside->values[id].name, static_cast<ValueId>(id));
      for (const ValueId id : graph->outer_values) {
        const auto found = ids.find(at(*graph, id).name);
        if (found != ids.end()) at(*graph, id).type = at(*outside, found->second).type;
      }
    }
  }

  void insert_for(const FloatValue& value) {
    const bool own = narrow(value.group);
    std::vector<const FloatReader*> readers;
    for (const FloatReader& reader : value.readers) {
      if (reader.group != kAnyType && narrow(reader.group) != own) readers.push_back(&reader);
    }
    if (readers.empty()) return;
    const DType wanted = own ? DType::float32 : to_;
    const std::string old_name = at(*value.graph, value.id).name;
    const bool is_output = std::ranges::any_of(
        readers, [&](const FloatReader* reader) { return reader->node == kNoNode && reader->graph == &model_.graph; });
    const ValueId cast = cast_of(value, wanted, is_output);
    for (const FloatReader* reader : readers) {
      if (reader->node == kNoNode) {
        reader->graph->outputs[reader->index] = visible_in(*reader->graph, *value.graph, cast);
      } else {
        reader->graph->nodes[static_cast<size_t>(reader->node)].inputs[reader->index] =
            visible_in(*reader->graph, *value.graph, cast);
      }
    }
    if (is_output) rename_outer(value, old_name);
  }

  // The value in the wanted type. What a Cast gives is cast anew from what the Cast reads, so that none follows
  // another.
  ValueId cast_of(const FloatValue& value, DType wanted, bool takes_name) {
    Graph& graph = *value.graph;
    ValueId source = value.id;
    if (value.source == FloatValue::Source::cast)
      source = graph.nodes[static_cast<size_t>(value.producer)].inputs.front();
    if (at(graph, source).type.dtype == wanted && !takes_name) return source;
    TypeInfo type = at(graph, value.id).type;
    const DType own = type.dtype;
    type.dtype = wanted;
    std::string name = at(graph, value.id).name;
    if (takes_name) {
      const std::string other = names_.take(name + "_" + std::string(name_of(own)));
      const int32_t initializer = at(graph, value.id).initializer_index;
      if (initializer >= 0) graph.initializers[static_cast<size_t>(initializer)].name = other;
      at(graph, value.id).name = other;
      at(graph, value.id).is_graph_output = false;
    } else {
      name = names_.take(name + "_" + std::string(name_of(wanted)));
    }
    const ValueId made = add_value(graph, name, std::move(type));
    at(graph, made).has_value_info = at(graph, value.id).has_value_info && !takes_name;
    inserted_[{&graph, value.producer}].push_back(
        make_node("cast_" + name, "Cast", {source}, {made}, {type_attribute(graph, wanted)}));
    return made;
  }

  Attribute type_attribute(const Graph& graph, DType wanted) const {
    int64_t version = model_.opset_version("");
    for (const auto& function : model_.functions) {
      const Graph* outermost = &graph;
      while (around(outermost) != nullptr) outermost = around(outermost);
      if (outermost == &function->body) version = opset_version_in(function->opset_imports, "");
    }
    if (version > 0 && version < kNumberedCast)
      return string_attribute("to", wanted == DType::float32 ? "FLOAT" : "FLOAT16");
    return int_attribute("to", static_cast<int64_t>(wanted));
  }

  // The id of a value of `owner` within `graph`, which is it or a body somewhere in it.
  ValueId visible_in(Graph& graph, Graph& owner, ValueId id) {
    if (&graph == &owner) return id;
    const std::string name = at(owner, id).name;
    const TypeInfo type = at(owner, id).type;
    for (Graph* between = around(&graph); between != nullptr && between != &owner; between = around(between))
      add_outer_value(*between, name, type);
    return add_outer_value(graph, name, type);
  }

  // Bodies that read a value of the main graph which has given its name to a cast.
  void rename_outer(const FloatValue& value, const std::string& old_name) {
    const std::string& name = at(*value.graph, value.id).name;
    for (const FloatReader& reader : value.readers) {
      const bool reads_cast = reader.group != kAnyType && narrow(reader.group) != narrow(value.group);
      if (reader.graph == value.graph) continue;
      for (Graph* graph = reader.graph; graph != nullptr && graph != value.graph; graph = around(graph)) {
        if (reads_cast) continue;
        const TypeInfo type = at(*value.graph, value.id).type;
        const ValueId other = add_outer_value(*graph, name, type);
        if (graph == reader.graph && reader.node != kNoNode)
          graph->nodes[static_cast<size_t>(reader.node)].inputs[reader.index] = other;
        if (graph == reader.graph && reader.node == kNoNode) graph->outputs[reader.index] = other;
      }
    }
    // Those that read the cast found the old name, which was the value's own and is the cast's now.
    for (Graph* graph : groups_.graphs) {
      for (const ValueId id : graph->outer_values) {
        if (at(*graph, id).name == old_name) at(*graph, id).type.dtype = narrow(value.group) ? DType::float32 : to_;
      }
    }
  }

  // ---- Cast nodes that give what they read ----

  void drop_idle_casts(Graph& graph) {
    std::map<ValueId, ValueId> replaced;
    for (size_t index = 0; index < graph.nodes.size(); ++index) {
      const Node& node = graph.nodes[index];
      if (!is_standard_operator(node, "Cast") || node.inputs.empty() || node.outputs.empty()) continue;
      const ValueId from = node.inputs.front(), made = node.outputs.front();
      if (from == kNoValue || made == kNoValue || at(graph, from).type.dtype != at(graph, made).type.dtype) continue;
      if (at(graph, from).type.dtype != to_ || (!floats_.contains({&graph, made}) && !is_float(graph, from))) continue;
      if (std::ranges::find(graph.outputs, made) != graph.outputs.end() || is_read_in_bodies(graph, made)) continue;
      replaced[made] = from;
      dropped_.insert({&graph, static_cast<NodeId>(index)});
    }
    if (replaced.empty()) return;
    const auto follow = [&](ValueId& id) {
      for (auto found = replaced.find(id); found != replaced.end(); found = replaced.find(id)) id = found->second;
    };
    for (Node& node : graph.nodes) std::ranges::for_each(node.inputs, follow);
    for (auto& [key, nodes] : inserted_) {
      if (key.first != &graph) continue;
      for (Node& node : nodes) std::ranges::for_each(node.inputs, follow);
    }
  }

  // True for a value that was float32, in whichever graph it is defined.
  bool is_float(Graph& graph, ValueId id) const {
    if (!at(graph, id).is_outer) return floats_.contains({&graph, id});
    Graph* outside = around(&graph);
    if (outside == nullptr) return false;
    const ValueId other = outside->find_value(at(graph, id).name);
    return other != kNoValue && is_float(*outside, other);
  }

  static bool is_read_in_bodies(const Graph& graph, ValueId id) {
    const std::string& name = value_at(graph, id).name;
    for (const Node& node : graph.nodes) {
      for (const Graph* body : bodies_of(node)) {
        const auto reads = [&](ValueId outer) { return value_at(*body, outer).name == name; };
        if (std::ranges::any_of(body->outer_values, reads)) return true;
      }
    }
    return false;
  }

  // ---- the graphs' new shape ----

  void insert_nodes(Graph& graph) {
    const bool changes =
        std::ranges::any_of(inserted_, [&](const auto& entry) { return entry.first.first == &graph; }) ||
        std::ranges::any_of(dropped_, [&](const NodeKey& key) { return key.first == &graph; });
    if (!changes) return;
    std::vector<Node> nodes;
    const auto insert_after = [&](NodeId id) {
      const auto found = inserted_.find({&graph, id});
      if (found != inserted_.end()) std::ranges::move(found->second, std::back_inserter(nodes));
    };
    insert_after(kNoNode);
    for (const NodeId id : graph.order) {
      if (!dropped_.contains({&graph, id})) nodes.push_back(std::move(graph.nodes[static_cast<size_t>(id)]));
      insert_after(id);
    }
    graph.nodes = std::move(nodes);
  }

  // Values that nothing defines or reads any more are taken out, with the ids of the others moved up.
  static void drop_unused_values(Graph& graph) {
    std::vector<bool> used(graph.values.size(), false);
    const auto use = [&](ValueId id) {
      if (id != kNoValue) used[static_cast<size_t>(id)] = true;
    };
    for (const auto* ids : {&graph.inputs, &graph.outputs, &graph.initializer_values, &graph.sparse_initializer_values})
      std::ranges::for_each(*ids, use);
    std::set<std::string_view> read_in_bodies;
    for (const Node& node : graph.nodes) {
      std::ranges::for_each(node.inputs, use);
      std::ranges::for_each(node.outputs, use);
      for (const Graph* body : bodies_of(node)) {
        for (const ValueId outer : body->outer_values) read_in_bodies.insert(value_at(*body, outer).name);
      }
    }
    for (size_t id = 0; id < used.size() && !read_in_bodies.empty(); ++id)
      used[id] = used[id] || read_in_bodies.contains(graph.values[id].name);
    if (std::ranges::find(used, false) == used.end()) return;
    std::vector<ValueId> moved(used.size(), kNoValue);
    std::vector<ValueDef> values;
    for (size_t id = 0; id < used.size(); ++id) {
      if (!used[id]) continue;
      moved[id] = static_cast<ValueId>(values.size());
      values.push_back(std::move(graph.values[id]));
    }
    graph.values = std::move(values);
    std::erase_if(graph.outer_values, [&](ValueId id) { return !used[static_cast<size_t>(id)]; });
    const auto renumber = [&](ValueId& id) { id = id == kNoValue ? kNoValue : moved[static_cast<size_t>(id)]; };
    for (auto* ids : {&graph.inputs, &graph.outputs, &graph.initializer_values, &graph.sparse_initializer_values,
                      &graph.outer_values})
      std::ranges::for_each(*ids, renumber);
    for (Node& node : graph.nodes) {
      std::ranges::for_each(node.inputs, renumber);
      std::ranges::for_each(node.outputs, renumber);
    }
  }

  Model& model_;
  const PrecisionGroups& groups_;
  const std::vector<bool>& is_narrow_;
  DType to_;
  FreshNames names_;
  std::set<std::pair<const Graph*, ValueId>> floats_;
  std::map<NodeKey, std::vector<Node>> inserted_;  // casts, by the node that they follow
  std::set<NodeKey> dropped_;
};

}  // namespace

void insert_casts(Model& model, const PrecisionGroups& groups, const std::vector<bool>& is_narrow, DType to) {
  CastInsertion(model, groups, is_narrow, to).insert();
}

}  // namespace parallax::transform
