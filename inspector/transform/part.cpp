// SPDX-License-Identifier: Apache-2.0
// Cutting a graph at values, and around nodes.
#include "inspector/transform/part.h"

#include <algorithm>

#include <fmt/format.h>

namespace parallax::transform {
namespace {

// The nodes that compute some values, as far back as other values are given.
struct Cone {
  std::vector<bool> nodes;    // by NodeId
  std::vector<bool> reached;  // by ValueId: read, or asked for
};

Cone cone_of(const Graph& graph, const std::vector<ValueId>& to, const std::vector<ValueId>& from) {
  Cone cone{std::vector<bool>(graph.nodes.size()), std::vector<bool>(graph.values.size())};
  std::vector<ValueId> open = to;
  while (!open.empty()) {
    const ValueId id = open.back();
    open.pop_back();
    if (cone.reached[static_cast<size_t>(id)]) continue;
    cone.reached[static_cast<size_t>(id)] = true;
    const NodeId producer = value_at(graph, id).producer;
    if (producer == kNoNode || std::ranges::find(from, id) != from.end()) continue;
    if (cone.nodes[static_cast<size_t>(producer)]) continue;
    cone.nodes[static_cast<size_t>(producer)] = true;
    for (const ValueId read : reads_of(graph, graph.nodes[static_cast<size_t>(producer)])) open.push_back(read);
  }
  return cone;
}

bool reaches(const Cone& cone, ValueId id) { return cone.reached[static_cast<size_t>(id)]; }

std::string describe_location(const Location& location) {
  return location.prefix().empty() ? "the main graph" : fmt::format("'{}'", location.prefix());
}

// The value of the graph at `location` that the located one is: its own, or one of a graph around it that it reads.
Result<ValueId> value_in(const Location& location, const LocatedValue& located, const std::string& path) {
  if (located.location.prefix() == location.prefix()) return located.id;
  const std::string& name = value_at(located.location.graph(), located.id).name;
  const ValueId id = location.graph().find_value(name);
  if (id != kNoValue && value_at(location.graph(), id).is_outer) {
    const auto definition = definition_of(location, id);
    if (definition.has_value() && definition->scope->prefix == located.location.prefix()) return id;
  }
  return usage_error(fmt::format("'{}' is in {} and --to in {}, which does not read it: a part is cut out of one graph",
                                 path, describe_location(located.location), describe_location(location)));
}

Result<Location> locate_targets(const std::shared_ptr<const Model>& model, const std::vector<std::string>& to,
                                std::vector<ValueId>& ids) {
  if (to.empty()) return usage_error("--to: no value is asked for");
  Location location;
  for (const std::string& path : to) {
    LocatedValue located = PX_TRY(locate_value(model, path));
    const ValueDef& value = value_at(located.location.graph(), located.id);
    if (value.producer == kNoNode) {
      const char* what = value.is_outer           ? "a value of a graph around it"
                         : value.input_index >= 0 ? "an input"
                                                  : "an initializer";
      return usage_error(fmt::format("--to '{}' is {}: no node computes it", path, what));
    }
    if (ids.empty()) location = located.location;
    if (located.location.prefix() != location.prefix()) {
      return usage_error(fmt::format("--to '{}' is in {}, --to '{}' in {}: a part is cut out of one graph", to.front(),
                                     describe_location(location), path, describe_location(located.location)));
    }
    if (std::ranges::find(ids, located.id) == ids.end()) ids.push_back(located.id);
  }
  return location;
}

// That every --from is needed, and that every --to needs one.
Status check_dependence(const Graph& graph, const std::vector<std::string>& from, const std::vector<ValueId>& from_ids,
                        const std::vector<std::string>& to, const std::vector<ValueId>& to_ids) {
  const Cone all = cone_of(graph, to_ids, from_ids);
  const Cone uncut = cone_of(graph, to_ids, {});
  for (size_t index = 0; index < from_ids.size(); ++index) {
    if (std::ranges::find(to_ids, from_ids[index]) != to_ids.end())
      return usage_error(fmt::format("'{}' is both --from and --to; it must be one of them", from[index]));
    if (reaches(all, from_ids[index])) continue;
    if (reaches(uncut, from_ids[index])) {
      return usage_error(fmt::format(
          "--from '{}' is not needed: every way from it to --to leads through another --from", from[index]));
    }
    return usage_error(fmt::format("--to '{}' does not depend on --from '{}'", fmt::join(to, "', '"), from[index]));
  }
  for (size_t index = 0; index < to_ids.size(); ++index) {
    const Cone own = cone_of(graph, {to_ids[index]}, from_ids);
    const auto is_reached = [&](ValueId id) { return reaches(own, id); };
    if (!from_ids.empty() && std::ranges::none_of(from_ids, is_reached)) {
      return usage_error(fmt::format("--to '{}' does not depend on --from '{}'", value_at(graph, to_ids[index]).name,
                                     fmt::join(from, "', '")));
    }
  }
  return {};
}

void add_input(Part& part, ValueId id) {
  const auto definition = definition_of(part.location, id);
  const std::string path = definition.has_value() ? definition->path() : part.location.path_of(id);
  part.inputs.push_back({id, value_at(part.location.graph(), id).name, path});
}

// Sorts what the nodes read and do not make into inputs and stored values; `first` are inputs in any case, in their
// order, then come the graph's own inputs.
void add_sources(Part& part, const std::vector<ValueId>& first, const std::vector<ValueId>& reads) {
  const Graph& graph = part.location.graph();
  for (const ValueId id : first) add_input(part, id);
  const auto add = [&](ValueId id) {
    if (std::ranges::find(first, id) != first.end()) return;
    const auto definition = definition_of(part.location, id);
    if (definition.has_value() && definition->is_omitted()) return;
    if (definition.has_value() &&
        (definition->value().sparse_initializer_index >= 0 || stored_tensor(*definition) != nullptr)) {
      part.stored.push_back(id);
    } else {
      add_input(part, id);
    }
  };
  for (const ValueId id : graph.inputs) {
    if (std::ranges::find(reads, id) != reads.end()) add(id);
  }
  for (const ValueId id : reads) {
    if (value_at(graph, id).input_index < 0) add(id);
  }
}

}  // namespace

Part part_between(const Location& location, const std::vector<ValueId>& from, const std::vector<ValueId>& to) {
  Part part;
  part.location = location;
  const Graph& graph = location.graph();
  const Cone cone = cone_of(graph, to, from);
  for (const NodeId node : graph.order) {
    if (cone.nodes[static_cast<size_t>(node)]) part.nodes.push_back(node);
  }
  std::vector<ValueId> reads, first;
  for (size_t id = 0; id < graph.values.size(); ++id) {
    const NodeId producer = graph.values[id].producer;
    const bool is_made = producer != kNoNode && cone.nodes[static_cast<size_t>(producer)];
    if (cone.reached[id] && !is_made) reads.push_back(static_cast<ValueId>(id));
  }
  for (const ValueId id : from) {
    if (reaches(cone, id)) first.push_back(id);
  }
  add_sources(part, first, reads);
  for (const ValueId id : to) part.outputs.push_back({id, value_at(graph, id).name, part.location.path_of(id)});
  return part;
}

Result<Part> find_part(const std::shared_ptr<const Model>& model, const std::vector<std::string>& from,
                       const std::vector<std::string>& to) {
  std::vector<ValueId> to_ids;
  const Location location = PX_TRY(locate_targets(model, to, to_ids));
  const Graph& graph = location.graph();
  std::vector<ValueId> from_ids;
  for (const std::string& path : from) {
    const LocatedValue located = PX_TRY(locate_value(model, path));
    const ValueId id = PX_TRY(value_in(location, located, path));
    if (std::ranges::find(from_ids, id) == from_ids.end()) from_ids.push_back(id);
  }
  PX_TRY(check_dependence(graph, from, from_ids, to, to_ids));
  return part_between(location, from_ids, to_ids);
}

Part part_of_nodes(const Location& location, std::vector<NodeId> nodes) {
  Part part;
  part.location = location;
  const Graph& graph = location.graph();
  std::vector<bool> is_in(graph.nodes.size());
  for (const NodeId node : nodes) is_in[static_cast<size_t>(node)] = true;
  std::vector<ValueId> reads;
  std::vector<bool> is_read(graph.values.size());
  const auto made_inside = [&](ValueId id) {
    const NodeId producer = value_at(graph, id).producer;
    return producer != kNoNode && is_in[static_cast<size_t>(producer)];
  };
  std::vector<PartValue> unread;
  for (const NodeId id : graph.order) {
    if (!is_in[static_cast<size_t>(id)]) continue;
    part.nodes.push_back(id);
    const Node& node = graph.nodes[static_cast<size_t>(id)];
    for (const ValueId read : reads_of(graph, node)) {
      if (made_inside(read) || is_read[static_cast<size_t>(read)]) continue;
      is_read[static_cast<size_t>(read)] = true;
      reads.push_back(read);
    }
    for (const ValueId made : node.outputs) {
      if (made == kNoValue) continue;
      const ValueDef& value = value_at(graph, made);
      const auto is_outside = [&](NodeId reader) { return !is_in[static_cast<size_t>(reader)]; };
      const bool leaves = value.is_graph_output || std::ranges::any_of(value.readers, is_outside);
      (leaves ? part.outputs : unread).push_back({made, value.name, location.path_of(made)});
    }
  }
  if (part.outputs.empty()) part.outputs = std::move(unread);
  add_sources(part, {}, reads);
  return part;
}

}  // namespace parallax::transform
