// SPDX-License-Identifier: Apache-2.0
// Puts the steps together: layers, order, coordinates, and the ways of the edges.
#include "inspector/render/layout/layout.h"

#include <algorithm>

#include "inspector/render/layout/layout_internal.h"

namespace parallax {
namespace {

using layout::Layers;

// Upper and lower side of each layer.
struct Bands {
  std::vector<double> top;
  std::vector<double> bottom;
};

Bands stack_layers(const LayoutGraph& graph, const Layers& layers, const LayoutOptions& options) {
  Bands bands;
  std::vector<double> heights;
  for (const auto& vertices : layers.vertices) {
    double& height = heights.emplace_back(0);
    for (int32_t vertex : vertices) {
      if (layers.is_bend(vertex)) continue;
      height = std::max(height, static_cast<double>(graph.boxes[static_cast<size_t>(vertex)].height));
    }
  }
  double y = 0;
  for (size_t layer = 0; layer < heights.size(); ++layer) {
    bands.top.push_back(y);
    bands.bottom.push_back(y + heights[layer]);
    const bool has_ports = heights[layer] == 0 || (layer + 1 < heights.size() && heights[layer + 1] == 0);
    // Wider layers get more room below, so that slanting lines can be told apart.
    y += heights[layer] + (has_ports ? options.port_gap : options.layer_gap) +
         std::min(static_cast<double>(layers.vertices[layer].size()), 40.0);
  }
  return bands;
}

void add_point(std::vector<LayoutPoint>& points, double x, double y) {
  const LayoutPoint point{static_cast<float>(x), static_cast<float>(y)};
  if (!points.empty() && points.back() == point) return;
  const size_t count = points.size();
  const bool continues = count >= 2 && points[count - 1].x == point.x && points[count - 2].x == point.x;
  if (continues) {
    points.back() = point;
  } else {
    points.push_back(point);
  }
}

double attach(const LayoutBox& box, float offset) {
  return offset < 0 ? 0 : static_cast<double>(offset) - static_cast<double>(box.width) / 2;
}

void lead_edge(const LayoutGraph& graph, const Layers& layers, const Bands& bands, const std::vector<double>& middle,
               size_t index, EdgeRoute& route) {
  const LayoutEdge& edge = graph.edges[index];
  const auto from = static_cast<size_t>(edge.from), to = static_cast<size_t>(edge.to);
  const double x = middle[from] + attach(graph.boxes[from], edge.from_x);
  const auto layer = static_cast<size_t>(layers.layer[from]);
  add_point(route.points, x, bands.top[layer] + static_cast<double>(graph.boxes[from].height));
  add_point(route.points, x, bands.bottom[layer]);
  const Layers::Chain& chain = layers.chains[index];
  for (int32_t i = 0; i < chain.count; ++i) {
    const auto bend = static_cast<size_t>(chain.first + i);
    const auto at = static_cast<size_t>(layers.layer[bend]);
    add_point(route.points, middle[bend], bands.top[at]);
    add_point(route.points, middle[bend], bands.bottom[at]);
  }
  add_point(route.points, middle[to] + attach(graph.boxes[to], edge.to_x),
            bands.top[static_cast<size_t>(layers.layer[to])]);
}

}  // namespace

Layout layered_layout(const LayoutGraph& graph, const LayoutOptions& options) {
  Layout result;
  result.edges.resize(graph.edges.size());
  result.boxes.resize(graph.boxes.size());
  if (graph.boxes.empty()) return result;
  Layers layers = layout::make_layers(graph, layout::assign_layers(graph, options, result.edges), result.edges);
  layout::order_layers(layers, options.order_sweeps);
  std::vector<double> middle = layout::vertex_middles(layers, options);

  double left = 1e300, right = -1e300;
  for (size_t v = 0; v < middle.size(); ++v) {
    left = std::min(left, middle[v] - layers.width[v] / 2);
    right = std::max(right, middle[v] + layers.width[v] / 2);
  }
  for (double& x : middle) x -= left;
  const Bands bands = stack_layers(graph, layers, options);
  result.width = static_cast<float>(right - left);
  result.height = static_cast<float>(bands.bottom.back());
  for (size_t box = 0; box < graph.boxes.size(); ++box) {
    result.boxes[box] = {static_cast<float>(middle[box] - layers.width[box] / 2),
                         static_cast<float>(bands.top[static_cast<size_t>(layers.layer[box])])};
  }
  for (size_t edge = 0; edge < graph.edges.size(); ++edge) {
    if (result.edges[edge].kind == EdgeKind::led) lead_edge(graph, layers, bands, middle, edge, result.edges[edge]);
  }
  return result;
}

}  // namespace parallax
