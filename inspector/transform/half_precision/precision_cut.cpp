// SPDX-License-Identifier: Apache-2.0
// A minimum cut: groups are vertices, narrow is the source's side and float32 the sink's, and a tensor between both
// sides costs a cast. Maximum flow by Dinic's algorithm (Soviet Mathematics Doklady 11, 1970).
#include "inspector/transform/half_precision/precision_cut.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <queue>

namespace parallax::transform {
namespace {

constexpr int64_t kForbidden = int64_t{1} << 60;
constexpr int64_t kOneCast = int64_t{1} << 40;
constexpr int64_t kMostElements = int64_t{1} << 28;  // of one tensor, as far as its size breaks ties between casts
constexpr int64_t kUnknownDim = 64;                  // stands for a dimension that only a run knows

class FlowNetwork {
 public:
  explicit FlowNetwork(size_t vertices) : edges_of_(vertices) {}

  size_t add_vertex() {
    edges_of_.emplace_back();
    return edges_of_.size() - 1;
  }
  void add_edge(size_t from, size_t to, int64_t capacity) {
    edges_of_[from].push_back(edges_.size());
    edges_.push_back({to, capacity});
    edges_of_[to].push_back(edges_.size());
    edges_.push_back({from, 0});
  }

  void maximize(size_t source, size_t sink) {
    while (find_levels(source, sink)) {
      next_.assign(edges_of_.size(), 0);
      while (augment(source, sink)) {
      }
    }
  }

  // The vertices from which the sink can be reached: the smallest sink side of all minimum cuts.
  std::vector<bool> sink_side(size_t sink) const {
    std::vector<bool> reached(edges_of_.size(), false);
    std::queue<size_t> open;
    reached[sink] = true;
    for (open.push(sink); !open.empty(); open.pop()) {
      for (const size_t edge : edges_of_[open.front()]) {
        const size_t from = edges_[edge].to;  // the reversed edge leads back
        if (reached[from] || edges_[edge ^ 1U].capacity == 0) continue;
        reached[from] = true;
        open.push(from);
      }
    }
    return reached;
  }

 private:
  struct Edge {
    size_t to;
    int64_t capacity;  // what is left of it
  };

  bool find_levels(size_t source, size_t sink) {
    levels_.assign(edges_of_.size(), -1);
    levels_[source] = 0;
    std::queue<size_t> open;
    for (open.push(source); !open.empty(); open.pop()) {
      for (const size_t edge : edges_of_[open.front()]) {
        if (edges_[edge].capacity == 0 || levels_[edges_[edge].to] >= 0) continue;
        levels_[edges_[edge].to] = levels_[open.front()] + 1;
        open.push(edges_[edge].to);
      }
    }
    return levels_[sink] >= 0;
  }

  // Sends flow along one path of rising levels, without recursion: chains of moves may be long.
  bool augment(size_t source, size_t sink) {
    std::vector<size_t> path;
    for (size_t vertex = source; vertex != sink;) {
      size_t& next = next_[vertex];
      while (next < edges_of_[vertex].size()) {
        const Edge& edge = edges_[edges_of_[vertex][next]];
        if (edge.capacity > 0 && levels_[edge.to] == levels_[vertex] + 1) break;
        ++next;
      }
      if (next < edges_of_[vertex].size()) {
        path.push_back(edges_of_[vertex][next]);
        vertex = edges_[path.back()].to;
        continue;
      }
      if (path.empty()) return false;
      vertex = edges_[path.back() ^ 1U].to;
      path.pop_back();
      ++next_[vertex];
    }
    int64_t flow = std::numeric_limits<int64_t>::max();
    for (const size_t edge : path) flow = std::min(flow, edges_[edge].capacity);
    for (const size_t edge : path) {
      edges_[edge].capacity -= flow;
      edges_[edge ^ 1U].capacity += flow;
    }
    return true;
  }

  std::vector<std::vector<size_t>> edges_of_;
  std::vector<Edge> edges_;
  std::vector<int> levels_;
  std::vector<size_t> next_;
};

// Elements of a tensor, as far as its declared type tells.
int64_t estimated_elements(const FloatValue& value) {
  const ValueDef& definition = value_at(*value.graph, value.id);
  if (definition.initializer_index >= 0) {
    const auto index = static_cast<size_t>(definition.initializer_index);
    return std::min(value.graph->initializers[index].tensor.element_count(), kMostElements);
  }
  int64_t count = definition.type.dims.has_value() ? 1 : kUnknownDim * kUnknownDim;
  for (const Dim& dim : definition.type.dims.value_or(std::vector<Dim>{}))
    count = std::min(count * std::min(dim.is_known() ? dim.value : kUnknownDim, kMostElements), kMostElements);
  return count;
}

void add_casts(const FloatValue& value, Demand demand, FlowNetwork& network) {
  std::vector<size_t> readers;
  for (const FloatReader& reader : value.readers) {
    if (reader.group != kAnyType && reader.group != value.group) readers.push_back(static_cast<size_t>(reader.group));
  }
  std::ranges::sort(readers);
  readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
  if (readers.empty()) return;
  const auto own = static_cast<size_t>(value.group);
  const int64_t cost = kOneCast + estimated_elements(value);
  const bool must_be_exact = value.is_stored() && demand == Demand::any;
  const size_t to_float32 = network.add_vertex(), to_narrow = network.add_vertex();
  network.add_edge(own, to_float32, must_be_exact ? kForbidden : cost);
  network.add_edge(to_narrow, own, cost);
  for (const size_t reader : readers) {
    network.add_edge(to_float32, reader, kForbidden);
    network.add_edge(reader, to_narrow, kForbidden);
  }
}

}  // namespace

std::vector<bool> choose_precisions(const PrecisionGroups& groups) {
  const size_t count = groups.demands.size();
  FlowNetwork network(count);
  const size_t source = network.add_vertex(), sink = network.add_vertex();
  for (size_t group = 0; group < count; ++group) {
    if (groups.demands[group] == Demand::narrow) network.add_edge(source, group, kForbidden);
    if (groups.demands[group] == Demand::float32) network.add_edge(group, sink, kForbidden);
  }
  for (const FloatValue& value : groups.values)
    add_casts(value, groups.demands[static_cast<size_t>(value.group)], network);
  network.maximize(source, sink);
  const std::vector<bool> is_float32 = network.sink_side(sink);
  std::vector<bool> is_narrow(count);
  for (size_t group = 0; group < count; ++group) is_narrow[group] = !is_float32[group];
  return is_narrow;
}

}  // namespace parallax::transform
