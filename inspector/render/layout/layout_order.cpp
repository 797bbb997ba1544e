// SPDX-License-Identifier: Apache-2.0
// Order within layers: barycenter sweeps, the best order of all is kept.
#include <algorithm>
#include <utility>

#include "inspector/render/layout/layout_internal.h"

namespace parallax::layout {
namespace {

// The point where a segment meets a vertex, as a position with the fraction along its side.
double meeting(const Layers& layers, int32_t vertex, double offset) {
  const auto v = static_cast<size_t>(vertex);
  const double width = layers.width[v];
  return static_cast<double>(layers.position[v]) + (width > 0 ? offset / width : 0);
}

void sort_layer(Layers& layers, size_t row, bool by_upper, std::vector<std::pair<double, int32_t>>& keys) {
  auto& vertices = layers.vertices[row];
  keys.clear();
  for (int32_t vertex : vertices) {
    const auto segments = by_upper ? layers.up.of(vertex) : layers.down.of(vertex);
    double sum = 0;
    for (int32_t s : segments) {
      const Segment& segment = layers.segments[static_cast<size_t>(s)];
      sum +=
          by_upper ? meeting(layers, segment.upper, segment.upper_x) : meeting(layers, segment.lower, segment.lower_x);
    }
    const double own = static_cast<double>(layers.position[static_cast<size_t>(vertex)]);
    keys.emplace_back(segments.empty() ? own : sum / static_cast<double>(segments.size()), vertex);
  }
  std::stable_sort(keys.begin(), keys.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < keys.size(); ++i) {
    vertices[i] = keys[i].second;
    layers.position[static_cast<size_t>(vertices[i])] = static_cast<int32_t>(i);
  }
}

// Crossings between a layer and the one below: inversions, counted with a binary indexed tree.
int64_t crossings_below(const Layers& layers, size_t row, std::vector<std::pair<double, double>>& ends,
                        std::vector<int64_t>& tree) {
  ends.clear();
  for (int32_t vertex : layers.vertices[row]) {
    for (int32_t s : layers.down.of(vertex)) {
      const Segment& segment = layers.segments[static_cast<size_t>(s)];
      ends.emplace_back(meeting(layers, segment.upper, segment.upper_x),
                        layers.position[static_cast<size_t>(segment.lower)]);
    }
  }
  std::sort(ends.begin(), ends.end());
  const size_t width = layers.vertices[row + 1].size();
  tree.assign(width + 1, 0);
  int64_t crossings = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    const auto lower = static_cast<size_t>(ends[i].second);
    int64_t not_right = 0;
    for (size_t at = lower + 1; at > 0; at &= at - 1) not_right += tree[at];
    crossings += static_cast<int64_t>(i) - not_right;
    for (size_t at = lower + 1; at <= width; at += at & (~at + 1)) ++tree[at];
  }
  return crossings;
}

}  // namespace

int64_t count_crossings(const Layers& layers) {
  std::vector<std::pair<double, double>> ends;
  std::vector<int64_t> tree;
  int64_t crossings = 0;
  for (size_t row = 0; row + 1 < layers.vertices.size(); ++row) crossings += crossings_below(layers, row, ends, tree);
  return crossings;
}

void order_layers(Layers& layers, int sweeps) {
  auto best = layers.vertices;
  int64_t fewest = count_crossings(layers);
  std::vector<std::pair<double, int32_t>> keys;
  for (int sweep = 0; sweep < sweeps && fewest > 0; ++sweep) {
    const bool downward = sweep % 2 == 0;
    const size_t count = layers.vertices.size();
    for (size_t step = 1; step < count; ++step) sort_layer(layers, downward ? step : count - 1 - step, downward, keys);
    const int64_t crossings = count_crossings(layers);
    if (crossings >= fewest) continue;
    fewest = crossings;
    best = layers.vertices;
  }
  layers.vertices = std::move(best);
  for (const auto& vertices : layers.vertices) {
    for (size_t i = 0; i < vertices.size(); ++i) {
      layers.position[static_cast<size_t>(vertices[i])] = static_cast<int32_t>(i);
    }
  }
}

}  // namespace parallax::layout
