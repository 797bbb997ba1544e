// SPDX-License-Identifier: Apache-2.0
// Bisecting, ddmin, and growing around a node.
#include "inspector/transform/reduce.h"

#include <algorithm>
#include <span>

namespace parallax::transform {
namespace {

using Nodes = std::vector<NodeId>;

class Shrinker {
 public:
  Shrinker(const Location& location, const PartCheck& fails) : location_(location), fails_(fails) {}

  // The shortest run of nodes from the front that fails, by bisection.
  Result<Nodes> cut_end(Nodes nodes) const {
    size_t passes = 0, failing = nodes.size();
    while (failing - passes > 1) {
      const size_t middle = passes + (failing - passes) / 2;
      (PX_TRY(check(slice(nodes, 0, middle))) ? failing : passes) = middle;
    }
    nodes.resize(failing);
    return nodes;
  }

  // The shortest run of nodes up to the last that fails.
  Result<Nodes> cut_begin(const Nodes& nodes) const {
    size_t failing = 0, passes = nodes.size();
    while (passes - failing > 1) {
      const size_t middle = failing + (passes - failing) / 2;
      (PX_TRY(check(slice(nodes, middle, nodes.size()))) ? failing : passes) = middle;
    }
    return slice(nodes, failing, nodes.size());
  }

  Result<Nodes> minimize(Nodes nodes) const {
    size_t pieces = 2;
    while (nodes.size() > 1) {
      pieces = std::min(pieces, nodes.size());
      auto smaller = PX_TRY(remove_one_piece(nodes, pieces));
      if (smaller.has_value()) {
        nodes = std::move(*smaller);
        pieces = std::max<size_t>(pieces - 1, 2);
      } else if (pieces == nodes.size()) {
        break;
      } else {
        pieces *= 2;
      }
    }
    return nodes;
  }

 private:
  static Nodes slice(const Nodes& nodes, size_t begin, size_t end) {
    const std::span<const NodeId> part = std::span(nodes).subspan(begin, end - begin);
    return {part.begin(), part.end()};
  }

  Result<bool> check(Nodes nodes) const { return fails_(part_of_nodes(location_, std::move(nodes))); }

  // One of `pieces` equal pieces that fails alone, or what is left without one and fails; nothing where none does.
  Result<std::optional<Nodes>> remove_one_piece(const Nodes& nodes, size_t pieces) const {
    const auto bounds = [&](size_t piece) { return piece * nodes.size() / pieces; };
    for (size_t piece = 0; piece < pieces; ++piece) {
      Nodes alone = slice(nodes, bounds(piece), bounds(piece + 1));
      if (PX_TRY(check(alone))) return std::optional(std::move(alone));
    }
    for (size_t piece = 0; pieces > 2 && piece < pieces; ++piece) {
      Nodes rest = slice(nodes, 0, bounds(piece));
      const Nodes after = slice(nodes, bounds(piece + 1), nodes.size());
      rest.insert(rest.end(), after.begin(), after.end());
      if (PX_TRY(check(rest))) return std::optional(std::move(rest));
    }
    return std::optional<Nodes>();
  }

  const Location& location_;
  const PartCheck& fails_;
};

// Sets of nodes around one.
class Neighborhood {
 public:
  Neighborhood(const Location& location, NodeId center)
      : location_(location), graph_(location.graph()), center_(center) {}

  // Back through values that are not known to be sound.
  Nodes unsound(const std::set<std::string>& sound) const {
    std::vector<bool> is_in(graph_.nodes.size());
    Nodes open = {center_};
    while (!open.empty()) {
      const NodeId id = open.back();
      open.pop_back();
      if (is_in[static_cast<size_t>(id)]) continue;
      is_in[static_cast<size_t>(id)] = true;
      for (const ValueId read : reads_of(graph_, graph_.nodes[static_cast<size_t>(id)])) {
        const NodeId producer = graph_.values[static_cast<size_t>(read)].producer;
        if (producer != kNoNode && !sound.contains(location_.path_of(read))) open.push_back(producer);
      }
    }
    return listed(is_in);
  }

  Nodes within(int64_t back, int64_t forth) const {
    std::vector<bool> is_in(graph_.nodes.size());
    is_in[static_cast<size_t>(center_)] = true;
    spread(is_in, back, [&](NodeId id, Nodes& next) {
      for (const ValueId read : reads_of(graph_, graph_.nodes[static_cast<size_t>(id)])) {
        const NodeId producer = graph_.values[static_cast<size_t>(read)].producer;
        if (producer != kNoNode) next.push_back(producer);
      }
    });
    spread(is_in, forth, [&](NodeId id, Nodes& next) {
      for (const ValueId made : graph_.nodes[static_cast<size_t>(id)].outputs) {
        if (made == kNoValue) continue;
        const auto& readers = graph_.values[static_cast<size_t>(made)].readers;
        next.insert(next.end(), readers.begin(), readers.end());
      }
    });
    return listed(is_in);
  }

 private:
  template <class Neighbors>
  void spread(std::vector<bool>& is_in, int64_t steps, Neighbors neighbors) const {
    Nodes edge = {center_};
    for (int64_t step = 0; step < steps && !edge.empty(); ++step) {
      Nodes next, fresh;
      for (const NodeId id : edge) neighbors(id, next);
      for (const NodeId id : next) {
        if (is_in[static_cast<size_t>(id)]) continue;
        is_in[static_cast<size_t>(id)] = true;
        fresh.push_back(id);
      }
      edge = std::move(fresh);
    }
  }

  Nodes listed(const std::vector<bool>& is_in) const {
    Nodes nodes;
    for (const NodeId id : graph_.order) {
      if (is_in[static_cast<size_t>(id)]) nodes.push_back(id);
    }
    return nodes;
  }

  const Location& location_;
  const Graph& graph_;
  NodeId center_;
};

}  // namespace

Result<Part> shrink_part(Part part, const PartCheck& fails) {
  if (part.nodes.size() <= 1) return part;
  const Shrinker shrinker(part.location, fails);
  const size_t before = part.nodes.size();
  Nodes nodes = PX_TRY(shrinker.cut_end(part.nodes));
  nodes = PX_TRY(shrinker.cut_begin(nodes));
  nodes = PX_TRY(shrinker.minimize(std::move(nodes)));
  if (nodes.size() == before) return part;
  return part_of_nodes(part.location, std::move(nodes));
}

Result<std::optional<Part>> find_failing_part(const Location& location, NodeId suspect,
                                              const std::set<std::string>& sound, const PartCheck& fails) {
  const Neighborhood around(location, suspect);
  std::set<Nodes> tried;
  const auto try_nodes = [&](Nodes nodes) -> Result<std::optional<Part>> {
    if (!tried.insert(nodes).second) return std::optional<Part>();
    Part part = part_of_nodes(location, std::move(nodes));
    return PX_TRY(fails(part)) ? std::optional(std::move(part)) : std::nullopt;
  };
  for (Nodes nodes : {Nodes{suspect}, around.unsound(sound)}) {
    auto found = PX_TRY(try_nodes(std::move(nodes)));
    if (found.has_value()) return found;
  }
  const auto nodes_in_all = static_cast<int64_t>(location.graph().nodes.size());
  for (int64_t distance = 1; distance <= 2 * nodes_in_all; distance *= 2) {
    const size_t tried_before = tried.size();
    const std::pair<int64_t, int64_t> shapes[] = {{0, distance}, {distance, 0}, {distance, distance}};
    for (const auto& [back, forth] : shapes) {
      auto found = PX_TRY(try_nodes(around.within(back, forth)));
      if (found.has_value()) return found;
    }
    if (tried.size() == tried_before) break;  // nothing is farther away
  }
  return std::optional<Part>();
}

}  // namespace parallax::transform
