// SPDX-License-Identifier: Apache-2.0
// Layout of transformer graphs as deep as real ones: flat, with one producer that feeds every block.
#include <memory>
#include <span>
#include <string>

#include <benchmark/benchmark.h>

#include "inspector/render/graph_svg.h"
#include "inspector/render/scope_layout.h"
#include "tests/bench/scoped_transformer.h"

namespace parallax {
namespace {

// Some 50 operators a block: a residual stream, three branches for attention, two for the gate, and a mask for all.
LayoutGraph transformer(int node_count) {
  LayoutGraph graph;
  const auto add = [&](std::initializer_list<int32_t> inputs) {
    const auto box = static_cast<int32_t>(graph.boxes.size());
    graph.boxes.push_back({120, 34});
    for (int32_t input : inputs) graph.edges.push_back({input, box});
    return box;
  };
  const auto chain = [&](int32_t from, int length) {
    for (int i = 0; i < length; ++i) from = add({from});
    return from;
  };
  const int32_t mask = add({});
  int32_t stream = add({});
  while (static_cast<int>(graph.boxes.size()) + 50 <= node_count) {
    const int32_t norm = chain(stream, 6);
    const int32_t query = chain(norm, 7), key = chain(norm, 8), value = chain(norm, 4);
    const int32_t scores = add({add({add({query, key}), mask})});
    const int32_t attention = add({stream, chain(add({scores, value}), 4)});
    const int32_t second = chain(attention, 6);
    stream = add({attention, chain(add({chain(second, 4), chain(second, 2)}), 1)});
  }
  while (static_cast<int>(graph.boxes.size()) < node_count) stream = add({stream});
  return graph;
}

void layered(benchmark::State& state) {
  const LayoutGraph graph = transformer(static_cast<int>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(layered_layout(graph).width);
  state.counters["nodes_per_second"] =
      benchmark::Counter(static_cast<double>(graph.boxes.size()), benchmark::Counter::kIsIterationInvariantRate);
}
// The layout of a model with scopes.
void nested(benchmark::State& state) {
  const auto items = GraphItems::build(scoped_transformer(static_cast<int>(state.range(0)))).take();
  const std::vector<bool> open(items->items().size(), state.range(1) != 0);
  for (auto _ : state) {
    SceneMaker maker(items);  // remembers nothing of the time before
    benchmark::DoNotOptimize(maker.make(open).width);
  }
  state.counters["nodes"] = static_cast<double>(items->item(0).node_count);
  state.counters["items"] = static_cast<double>(items->items().size());
}
BENCHMARK(nested)->Args({80, 0})->Args({80, 1})->Args({150, 1})->Unit(benchmark::kMillisecond);

BENCHMARK(layered)->Arg(1003)->Arg(10003)->Arg(100003)->Unit(benchmark::kMillisecond);

// The boxes as a graph of nodes with names and types.
Graph nodes_of(const LayoutGraph& boxes) {
  Graph graph;
  graph.nodes.resize(boxes.boxes.size());
  graph.values.resize(boxes.boxes.size());
  for (size_t index = 0; index < boxes.boxes.size(); ++index) {
    const auto id = static_cast<int32_t>(index);
    Node& node = graph.nodes[index];
    node.op_type = "Relu";
    node.display_name = "/layers." + std::to_string(index / 50) + "/act/Relu_" + std::to_string(index);
    node.outputs = {id};
    ValueDef& value = graph.values[index];
    value.name = node.display_name + "_output_0";
    value.producer = id;
    value.output_index = 0;
    graph.order.push_back(id);
  }
  for (const LayoutEdge& edge : boxes.edges) {
    graph.nodes[static_cast<size_t>(edge.to)].inputs.push_back(edge.from);
    graph.values[static_cast<size_t>(edge.from)].readers.push_back(edge.to);
  }
  graph.outputs = {static_cast<ValueId>(graph.values.size()) - 1};
  return graph;
}

void svg(benchmark::State& state) {
  const Graph graph = nodes_of(transformer(static_cast<int>(state.range(0))));
  for (auto _ : state) benchmark::DoNotOptimize(graph_to_svg(graph, nullptr).size());
}
BENCHMARK(svg)->Arg(10003)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace parallax

BENCHMARK_MAIN();
