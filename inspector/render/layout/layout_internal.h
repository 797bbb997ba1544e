// SPDX-License-Identifier: Apache-2.0
// Data that the steps of the layered layout pass on to each other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "inspector/render/layout/layout.h"

namespace parallax::layout {

// Neighbors of vertices in one flat array.
struct Adjacency {
  std::vector<int32_t> begin;  // one more than there are vertices
  std::vector<int32_t> segments;
  std::span<const int32_t> of(int32_t vertex) const {
    const auto v = static_cast<size_t>(vertex);
    return {segments.data() + begin[v], static_cast<size_t>(begin[v + 1] - begin[v])};
  }
};

// A piece of an edge between neighboring layers.
struct Segment {
  int32_t upper = 0;
  int32_t lower = 0;
  double upper_x = 0;  // from the vertex's middle
  double lower_x = 0;
};

// Boxes first, under their own indices, then the bends of wires.
struct Layers {
  int32_t box_count = 0;
  std::vector<int32_t> layer;  // of each vertex
  std::vector<double> width;
  std::vector<std::vector<int32_t>> vertices;  // of each layer, from left to right
  std::vector<int32_t> position;               // of each vertex in its layer
  std::vector<Segment> segments;
  Adjacency down;  // segments below each vertex
  Adjacency up;    // segments above
  // The bends of each edge from top to bottom, as [begin, begin + count) of the wire's chain.
  struct Chain {
    int32_t first = 0;
    int32_t count = 0;
  };
  std::vector<Chain> chains;  // of each edge
  bool is_bend(int32_t vertex) const { return vertex >= box_count; }
};

// The layer of each box; fills in which edges are stubs or lead upward.
std::vector<int32_t> assign_layers(const LayoutGraph& graph, const LayoutOptions& options,
                                   std::vector<EdgeRoute>& routes);

// Boxes and bends with the segments between them, in a first order.
Layers make_layers(const LayoutGraph& graph, std::vector<int32_t> layer, const std::vector<EdgeRoute>& routes);

// Reorders each layer so that few segments cross.
void order_layers(Layers& layers, int sweeps);
int64_t count_crossings(const Layers& layers);

// The least distance of the middles of neighbors in a layer.
double distance_between(const Layers& layers, int32_t left, int32_t right, const LayoutOptions& options);

// Moves the bends of long wires onto as few lines as there is room for.
void straighten_wires(const Layers& layers, const LayoutOptions& options, std::vector<double>& middle);

// The middle of each vertex.
std::vector<double> vertex_middles(const Layers& layers, const LayoutOptions& options);

}  // namespace parallax::layout
