// SPDX-License-Identifier: Apache-2.0
// Layered layout of a graph in time linear in its size: what SVG pictures and the graph canvas are drawn from. Every
// edge points downward, no two boxes overlap, and the same graph always gives the same coordinates.
#pragma once

#include <cstdint>
#include <vector>

namespace parallax {

struct LayoutBox {
  // Ports of a group stand in its first or its last layer.
  enum class Pin : uint8_t { none, top, bottom };
  float width = 0;
  float height = 0;
  Pin pin = Pin::none;
};

struct LayoutEdge {
  int32_t from = 0;  // index into LayoutGraph::boxes
  int32_t to = 0;
  int32_t wire = 0;      // edges of one box and one wire share their way as far as they can
  float from_x = -1;     // where it leaves the box, from its left side; -1: in the middle
  float to_x = -1;       // where it enters
  bool is_stub = false;  // orders the layers, but is not led from box to box
};

struct LayoutGraph {
  std::vector<LayoutBox> boxes;
  std::vector<LayoutEdge> edges;
};

struct LayoutOptions {
  float box_gap = 24;
  float wire_gap = 12;
  float layer_gap = 34;
  float port_gap = 16;   // next to a layer of boxes without height: the ports of a group's border
  int stub_readers = 4;  // a wire with more readers is not led to any of them
  int stub_layers = 30;  // nor is an edge that would cross more layers than this
  int order_sweeps = 12;
  int coordinate_sweeps = 16;
};

struct LayoutPoint {
  float x = 0;
  float y = 0;
  bool operator==(const LayoutPoint&) const = default;
};

// Why an edge has no way of its own: the caller said so, or its wire has too many readers, or it is too long, or it
// would lead upward because the graph has a cycle.
enum class EdgeKind : uint8_t { led, stub, back };

struct EdgeRoute {
  EdgeKind kind = EdgeKind::led;
  std::vector<LayoutPoint> points;  // from the lower side of `from` to the upper side of `to`; y never falls
};

struct Layout {
  float width = 0;
  float height = 0;
  std::vector<LayoutPoint> boxes;  // upper left corners
  std::vector<EdgeRoute> edges;
};

// Longest-path layers with sources pulled down to their first reader, one chain of bends for each wire, barycenter
// sweeps for the order within layers (Sugiyama, Tagawa, Toda 1981), and isotonic regression by pooling adjacent
// violators for the coordinates.
Layout layered_layout(const LayoutGraph& graph, const LayoutOptions& options = {});

}  // namespace parallax
