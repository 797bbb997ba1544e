// SPDX-License-Identifier: Apache-2.0
// The first steps of the layout: which layer a box stands in, and the bends of wires that cross layers.
#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "inspector/base/check.h"
#include "inspector/render/layout/layout_internal.h"

namespace parallax::layout {
namespace {

using Pin = LayoutBox::Pin;

// Edge indices by their upper or lower box.
Adjacency edges_of(const LayoutGraph& graph, const std::vector<EdgeRoute>& routes, bool below) {
  Adjacency adjacency;
  adjacency.begin.assign(graph.boxes.size() + 1, 0);
  const auto end_of = [&](size_t edge) {
    return static_cast<size_t>(below ? graph.edges[edge].from : graph.edges[edge].to);
  };
  for (size_t e = 0; e < graph.edges.size(); ++e) {
    if (routes[e].kind != EdgeKind::back) ++adjacency.begin[end_of(e) + 1];
  }
  for (size_t v = 1; v < adjacency.begin.size(); ++v) adjacency.begin[v] += adjacency.begin[v - 1];
  adjacency.segments.resize(static_cast<size_t>(adjacency.begin.back()));
  std::vector<int32_t> next(adjacency.begin.begin(), adjacency.begin.end() - 1);
  for (size_t e = 0; e < graph.edges.size(); ++e) {
    if (routes[e].kind == EdgeKind::back) continue;
    adjacency.segments[static_cast<size_t>(next[end_of(e)]++)] = static_cast<int32_t>(e);
  }
  return adjacency;
}

// Depth first, in the order of boxes: an edge to a box that is still being visited closes a cycle.
void mark_back_edges(const LayoutGraph& graph, std::vector<EdgeRoute>& routes) {
  const auto pin_of = [&](int32_t box) { return graph.boxes[static_cast<size_t>(box)].pin; };
  for (size_t e = 0; e < graph.edges.size(); ++e) {
    const LayoutEdge& edge = graph.edges[e];
    const bool against_pin = pin_of(edge.to) == Pin::top || pin_of(edge.from) == Pin::bottom;
    if (edge.from == edge.to || against_pin) routes[e].kind = EdgeKind::back;
  }
  const Adjacency below = edges_of(graph, routes, true);
  enum class State : uint8_t { fresh, open, done };
  std::vector<State> state(graph.boxes.size(), State::fresh);
  std::vector<std::pair<int32_t, size_t>> stack;
  for (int32_t root = 0; root < static_cast<int32_t>(graph.boxes.size()); ++root) {
    if (state[static_cast<size_t>(root)] != State::fresh) continue;
    stack.emplace_back(root, 0);
    state[static_cast<size_t>(root)] = State::open;
    while (!stack.empty()) {
      const int32_t box = stack.back().first;
      const auto edges = below.of(box);
      if (stack.back().second == edges.size()) {
        state[static_cast<size_t>(box)] = State::done;
        stack.pop_back();
        continue;
      }
      const auto edge = static_cast<size_t>(edges[stack.back().second++]);
      const int32_t to = graph.edges[edge].to;
      State& other = state[static_cast<size_t>(to)];
      if (other == State::open) routes[edge].kind = EdgeKind::back;
      if (other != State::fresh) continue;
      other = State::open;
      stack.emplace_back(to, 0);
    }
  }
}

std::vector<int32_t> longest_paths(const LayoutGraph& graph, const Adjacency& below, const Adjacency& above,
                                   std::vector<int32_t>& order) {
  const bool has_top = std::ranges::any_of(graph.boxes, [](const LayoutBox& box) { return box.pin == Pin::top; });
  std::vector<int32_t> layer(graph.boxes.size(), 0), missing(graph.boxes.size(), 0);
  for (size_t box = 0; box < graph.boxes.size(); ++box) {
    layer[box] = has_top && graph.boxes[box].pin != Pin::top ? 1 : 0;
    missing[box] = static_cast<int32_t>(above.of(static_cast<int32_t>(box)).size());
    if (missing[box] == 0) order.push_back(static_cast<int32_t>(box));
  }
  for (size_t next = 0; next < order.size(); ++next) {
    const int32_t box = order[next];
    for (int32_t e : below.of(box)) {
      const auto to = static_cast<size_t>(graph.edges[static_cast<size_t>(e)].to);
      layer[to] = std::max(layer[to], layer[static_cast<size_t>(box)] + 1);
      if (--missing[to] == 0) order.push_back(static_cast<int32_t>(to));
    }
  }
  PX_CHECK(order.size() == graph.boxes.size());
  return layer;
}

// A source, and a chain that hangs on one, stands right above its first reader: its edges are short, and nothing is
// wider than need be.
void pull_sources(const LayoutGraph& graph, const Adjacency& below, const Adjacency& above,
                  const std::vector<int32_t>& order, std::vector<int32_t>& layer) {
  std::vector<bool> is_loose(graph.boxes.size());
  for (int32_t box : order) {
    const auto edges = above.of(box);
    is_loose[static_cast<size_t>(box)] = std::ranges::all_of(edges, [&](int32_t e) {
      const int32_t from = graph.edges[static_cast<size_t>(e)].from;
      return is_loose[static_cast<size_t>(from)] && below.of(from).size() == 1;
    });
  }
  for (auto next = order.rbegin(); next != order.rend(); ++next) {
    const int32_t box = *next;
    if (!is_loose[static_cast<size_t>(box)] || below.of(box).empty()) continue;
    if (graph.boxes[static_cast<size_t>(box)].pin != Pin::none) continue;
    int32_t first_reader = INT32_MAX;
    for (int32_t e : below.of(box)) {
      first_reader = std::min(first_reader, layer[static_cast<size_t>(graph.edges[static_cast<size_t>(e)].to)]);
    }
    layer[static_cast<size_t>(box)] = first_reader - 1;
  }
}

// Marks values that have too many consumers, or consumers too far below: they are shown by name at each consumer.
void mark_stubs(const LayoutGraph& graph, const LayoutOptions& options, const std::vector<int32_t>& layer,
                std::vector<EdgeRoute>& routes) {
  std::map<std::pair<int32_t, int32_t>, int> readers;
  for (size_t e = 0; e < graph.edges.size(); ++e) {
    if (routes[e].kind == EdgeKind::led) ++readers[{graph.edges[e].from, graph.edges[e].wire}];
  }
  for (size_t e = 0; e < graph.edges.size(); ++e) {
    if (routes[e].kind != EdgeKind::led) continue;
    const LayoutEdge& edge = graph.edges[e];
    const int32_t span = layer[static_cast<size_t>(edge.to)] - layer[static_cast<size_t>(edge.from)];
    const bool is_hub = readers[{edge.from, edge.wire}] > options.stub_readers;
    if (edge.is_stub || is_hub || span > options.stub_layers) routes[e].kind = EdgeKind::stub;
  }
}

}  // namespace

std::vector<int32_t> assign_layers(const LayoutGraph& graph, const LayoutOptions& options,
                                   std::vector<EdgeRoute>& routes) {
  mark_back_edges(graph, routes);
  const Adjacency below = edges_of(graph, routes, true), above = edges_of(graph, routes, false);
  std::vector<int32_t> order;
  std::vector<int32_t> layer = longest_paths(graph, below, above, order);
  pull_sources(graph, below, above, order, layer);
  int32_t last = 0;
  for (size_t box = 0; box < graph.boxes.size(); ++box) {
    if (graph.boxes[box].pin != Pin::bottom) last = std::max(last, layer[box] + 1);
  }
  for (size_t box = 0; box < graph.boxes.size(); ++box) {
    if (graph.boxes[box].pin == Pin::bottom) layer[box] = last;
  }
  mark_stubs(graph, options, layer, routes);
  return layer;
}

namespace {

// Adds the bends of each wire, down to the layer above its last reader, and the segments.
class LayerMaker {
 public:
  LayerMaker(const LayoutGraph& graph, const std::vector<EdgeRoute>& routes, Layers& layers)
      : graph_(graph), routes_(routes), layers_(layers) {}

  void add_wires() {
    std::map<std::pair<int32_t, int32_t>, std::vector<size_t>> wires;
    for (size_t e = 0; e < graph_.edges.size(); ++e) {
      if (routes_[e].kind == EdgeKind::led) wires[{graph_.edges[e].from, graph_.edges[e].wire}].push_back(e);
    }
    layers_.chains.resize(graph_.edges.size());
    for (const auto& [wire, edges] : wires) add_wire(edges);
  }

 private:
  static double offset(const LayoutBox& box, float x) {
    return x < 0 ? 0 : static_cast<double>(x) - static_cast<double>(box.width) / 2;
  }

  void add_wire(const std::vector<size_t>& edges) {
    const LayoutEdge& any = graph_.edges[edges.front()];
    const int32_t from_layer = layers_.layer[static_cast<size_t>(any.from)];
    const double from_x = offset(graph_.boxes[static_cast<size_t>(any.from)], any.from_x);
    int32_t last = from_layer;
    for (size_t e : edges) last = std::max(last, layers_.layer[static_cast<size_t>(graph_.edges[e].to)]);
    const auto first_bend = static_cast<int32_t>(layers_.layer.size());
    for (int32_t layer = from_layer + 1; layer < last; ++layer) {
      const auto bend = static_cast<int32_t>(layers_.layer.size());
      layers_.segments.push_back(
          {layer == from_layer + 1 ? any.from : bend - 1, bend, layer == from_layer + 1 ? from_x : 0, 0});
      layers_.layer.push_back(layer);
      layers_.width.push_back(0);
    }
    for (size_t e : edges) {
      const LayoutEdge& edge = graph_.edges[e];
      const int32_t count = layers_.layer[static_cast<size_t>(edge.to)] - from_layer - 1;
      layers_.chains[e] = {first_bend, count};
      layers_.segments.push_back({count == 0 ? edge.from : first_bend + count - 1, edge.to, count == 0 ? from_x : 0,
                                  offset(graph_.boxes[static_cast<size_t>(edge.to)], edge.to_x)});
    }
  }

  const LayoutGraph& graph_;
  const std::vector<EdgeRoute>& routes_;
  Layers& layers_;
};

Adjacency segments_of(const Layers& layers, bool below) {
  Adjacency adjacency;
  adjacency.begin.assign(layers.layer.size() + 1, 0);
  const auto end_of = [&](const Segment& segment) {
    return static_cast<size_t>(below ? segment.upper : segment.lower);
  };
  for (const Segment& segment : layers.segments) ++adjacency.begin[end_of(segment) + 1];
  for (size_t v = 1; v < adjacency.begin.size(); ++v) adjacency.begin[v] += adjacency.begin[v - 1];
  adjacency.segments.resize(layers.segments.size());
  std::vector<int32_t> next(adjacency.begin.begin(), adjacency.begin.end() - 1);
  for (size_t s = 0; s < layers.segments.size(); ++s) {
    adjacency.segments[static_cast<size_t>(next[end_of(layers.segments[s])]++)] = static_cast<int32_t>(s);
  }
  return adjacency;
}

// Depth first from the upper vertices: what hangs together starts side by side.
void first_order(Layers& layers) {
  const auto count = static_cast<int32_t>(layers.layer.size());
  layers.vertices.resize(static_cast<size_t>(*std::max_element(layers.layer.begin(), layers.layer.end())) + 1);
  layers.position.assign(layers.layer.size(), -1);
  std::vector<int32_t> stack;
  const auto visit = [&](int32_t vertex) {
    int32_t& position = layers.position[static_cast<size_t>(vertex)];
    if (position >= 0) return;
    auto& row = layers.vertices[static_cast<size_t>(layers.layer[static_cast<size_t>(vertex)])];
    position = static_cast<int32_t>(row.size());
    row.push_back(vertex);
    stack.push_back(vertex);
  };
  for (int pass = 0; pass < 2; ++pass) {
    for (int32_t root = 0; root < count; ++root) {
      if (pass == 0 && !layers.up.of(root).empty()) continue;
      visit(root);
      while (!stack.empty()) {
        const int32_t vertex = stack.back();
        stack.pop_back();
        const auto segments = layers.down.of(vertex);
        for (auto s = segments.rbegin(); s != segments.rend(); ++s) {
          visit(layers.segments[static_cast<size_t>(*s)].lower);
        }
      }
    }
  }
}

}  // namespace

Layers make_layers(const LayoutGraph& graph, std::vector<int32_t> layer, const std::vector<EdgeRoute>& routes) {
  Layers layers;
  layers.box_count = static_cast<int32_t>(graph.boxes.size());
  layers.layer = std::move(layer);
  for (const LayoutBox& box : graph.boxes) layers.width.push_back(static_cast<double>(box.width));
  LayerMaker(graph, routes, layers).add_wires();
  layers.down = segments_of(layers, true);
  layers.up = segments_of(layers, false);
  first_order(layers);
  return layers;
}

}  // namespace parallax::layout
