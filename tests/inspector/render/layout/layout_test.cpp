// SPDX-License-Identifier: Apache-2.0
// The layered layout keeps its promises on graphs of many forms: nothing overlaps, every edge leads downward, the same
// graph gives the same coordinates, and what is read by many is not led across the picture.
#include "inspector/render/layout/layout.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

namespace parallax {
namespace {

LayoutGraph random_graph(uint32_t seed) {
  std::mt19937 random(seed);
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  LayoutGraph graph;
  const int count = pick(1, 120);
  for (int i = 0; i < count; ++i) {
    const bool is_port = i < 3 && seed % 5 == 0;
    graph.boxes.push_back({static_cast<float>(pick(8, 220)), static_cast<float>(pick(0, seed % 7 == 0 ? 900 : 60)),
                           is_port ? LayoutBox::Pin::top : LayoutBox::Pin::none});
    if (seed % 5 == 0 && i + 2 > count) graph.boxes.back().pin = LayoutBox::Pin::bottom;
  }
  const int edges = pick(0, 3) * count;
  for (int i = 0; i < edges && count > 1; ++i) {
    int from = pick(0, count - 1), to = pick(0, count - 1);
    const bool may_cycle = seed % 4 == 0;
    if (from == to) continue;
    if (from > to && !may_cycle) std::swap(from, to);
    if (pick(0, 3) > 0) to = std::clamp(from + pick(1, 4), 0, count - 1);
    if (from == to) continue;
    graph.edges.push_back({from, to, pick(0, 1)});
  }
  return graph;
}

bool overlap(const LayoutGraph& graph, const Layout& layout, size_t a, size_t b) {
  const auto &pa = layout.boxes[a], &pb = layout.boxes[b];
  const auto &sa = graph.boxes[a], &sb = graph.boxes[b];
  return pa.x < pb.x + sb.width && pb.x < pa.x + sa.width && pa.y < pb.y + sb.height && pb.y < pa.y + sa.height;
}

constexpr uint32_t kGraphs = 200;

TEST(LayoutOfRandomGraphs, NoTwoBoxesOverlapAndNoneLeavesThePicture) {
  for (uint32_t seed = 1; seed <= kGraphs; ++seed) {
    SCOPED_TRACE(seed);
    const LayoutGraph graph = random_graph(seed);
    const Layout layout = layered_layout(graph);
    ASSERT_EQ(layout.boxes.size(), graph.boxes.size());
    for (size_t a = 0; a < graph.boxes.size(); ++a) {
      EXPECT_GE(layout.boxes[a].x, -0.01F);
      EXPECT_LE(layout.boxes[a].x + graph.boxes[a].width, layout.width + 0.1F);
      EXPECT_LE(layout.boxes[a].y + graph.boxes[a].height, layout.height + 0.1F);
      for (size_t b = a + 1; b < graph.boxes.size(); ++b) {
        EXPECT_FALSE(overlap(graph, layout, a, b)) << "boxes " << a << " and " << b;
      }
    }
  }
}

TEST(LayoutOfRandomGraphs, EveryEdgeThatIsLedGoesDownFromBoxToBox) {
  for (uint32_t seed = 1; seed <= kGraphs; ++seed) {
    SCOPED_TRACE(seed);
    const LayoutGraph graph = random_graph(seed);
    const Layout layout = layered_layout(graph);
    for (size_t e = 0; e < graph.edges.size(); ++e) {
      const LayoutEdge& edge = graph.edges[e];
      const auto from = static_cast<size_t>(edge.from), to = static_cast<size_t>(edge.to);
      const EdgeRoute& route = layout.edges[e];
      if (route.kind != EdgeKind::back) {
        EXPECT_LT(layout.boxes[from].y, layout.boxes[to].y) << "edge " << e;
      }
      if (route.kind != EdgeKind::led) continue;
      ASSERT_GE(route.points.size(), 2U);
      EXPECT_FLOAT_EQ(route.points.front().y, layout.boxes[from].y + graph.boxes[from].height);
      EXPECT_FLOAT_EQ(route.points.back().y, layout.boxes[to].y);
      for (size_t i = 1; i < route.points.size(); ++i) EXPECT_LE(route.points[i - 1].y, route.points[i].y);
    }
  }
}

TEST(LayoutOfRandomGraphs, ASecondTimeGivesTheSameCoordinates) {
  for (uint32_t seed = 1; seed <= kGraphs; ++seed) {
    SCOPED_TRACE(seed);
    const LayoutGraph graph = random_graph(seed);
    const Layout first = layered_layout(graph), second = layered_layout(graph);
    EXPECT_EQ(first.boxes, second.boxes);
    for (size_t e = 0; e < graph.edges.size(); ++e) EXPECT_EQ(first.edges[e].points, second.edges[e].points);
  }
}

LayoutGraph boxes(int count) {
  LayoutGraph graph;
  for (int i = 0; i < count; ++i) graph.boxes.push_back({100, 30});
  return graph;
}

TEST(Layout, AnEmptyGraphHasNoExtent) {
  const Layout layout = layered_layout({});
  EXPECT_EQ(layout.width, 0);
  EXPECT_EQ(layout.height, 0);
}

TEST(Layout, AChainStandsUpright) {
  LayoutGraph graph = boxes(5);
  for (int i = 0; i + 1 < 5; ++i) graph.edges.push_back({i, i + 1});
  const Layout layout = layered_layout(graph);
  for (const LayoutPoint& box : layout.boxes) EXPECT_NEAR(box.x, layout.boxes[0].x, 0.01);
}

TEST(Layout, ASourceStandsRightAboveItsFirstReader) {
  LayoutGraph graph = boxes(6);  // 0-1-2-3-4 and 5 -> 4
  for (int i = 0; i < 4; ++i) graph.edges.push_back({i, i + 1});
  graph.edges.push_back({5, 4});
  const Layout layout = layered_layout(graph);
  EXPECT_FLOAT_EQ(layout.boxes[5].y, layout.boxes[3].y);
}

TEST(Layout, AValueWithManyReadersIsAStubAtEachOfThem) {
  LayoutGraph graph = boxes(8);
  for (int reader = 1; reader < 8; ++reader) graph.edges.push_back({0, reader});
  for (const EdgeRoute& route : layered_layout(graph).edges) EXPECT_EQ(route.kind, EdgeKind::stub);
  graph.edges.resize(4);
  for (const EdgeRoute& route : layered_layout(graph).edges) EXPECT_EQ(route.kind, EdgeKind::led);
}

TEST(Layout, AnEdgeOverTooManyLayersIsAStub) {
  LayoutGraph graph = boxes(40);
  for (int i = 0; i + 1 < 40; ++i) graph.edges.push_back({i, i + 1});
  graph.edges.push_back({0, 39, 1});
  const Layout layout = layered_layout(graph);
  EXPECT_EQ(layout.edges.back().kind, EdgeKind::stub);
  EXPECT_EQ(layout.edges.front().kind, EdgeKind::led);
}

TEST(Layout, OneEdgeOfACycleIsMarkedAndTheOthersLeadDown) {
  LayoutGraph graph = boxes(3);
  graph.edges = {{0, 1}, {1, 2}, {2, 0}};
  const Layout layout = layered_layout(graph);
  EXPECT_EQ(layout.edges[2].kind, EdgeKind::back);
  EXPECT_EQ(layout.edges[0].kind, EdgeKind::led);
  EXPECT_LT(layout.boxes[0].y, layout.boxes[2].y);
}

TEST(Layout, ReadersOfOneWireShareItsBends) {
  LayoutGraph graph = boxes(7);
  for (int i = 0; i + 1 < 6; ++i) graph.edges.push_back({i, i + 1});
  graph.edges.push_back({0, 4, 7});
  graph.edges.push_back({0, 5, 7});
  const Layout layout = layered_layout(graph);
  const auto &shorter = layout.edges[5].points, &longer = layout.edges[6].points;
  EXPECT_EQ(shorter[0], longer[0]);
  EXPECT_EQ(shorter[1].x, longer[1].x);
}

TEST(Layout, CrossedPairsAreUncrossed) {
  LayoutGraph graph = boxes(4);
  graph.edges = {{0, 3}, {1, 2}};
  const Layout layout = layered_layout(graph);
  EXPECT_EQ(layout.boxes[0].x < layout.boxes[1].x, layout.boxes[3].x < layout.boxes[2].x);
}

TEST(Layout, PortsStandInTheFirstAndTheLastLayer) {
  LayoutGraph graph = boxes(5);
  graph.boxes[0].pin = LayoutBox::Pin::top;
  graph.boxes[4].pin = LayoutBox::Pin::bottom;
  graph.edges = {{1, 2}, {2, 3}, {0, 3}, {1, 4}};
  const Layout layout = layered_layout(graph);
  for (size_t box = 1; box < 4; ++box) {
    EXPECT_LT(layout.boxes[0].y, layout.boxes[box].y);
    EXPECT_GT(layout.boxes[4].y, layout.boxes[box].y);
  }
}

}  // namespace
}  // namespace parallax
