// SPDX-License-Identifier: Apache-2.0
// Attention as one node comes as near to the exact result as its parts do, however it is written and tiled.
#include <cmath>

#include <gtest/gtest.h>

#include "reference/reference.h"
#include "runtime/plan/runtime.h"
#include "tests/runtime/plan/attention_graphs.h"
#include "tests/runtime/plan/fused_counter.h"

namespace parallax::fused_attention_test {
namespace {

Tensor output_of(Executor& executor, const attention_graphs::Graph& graph, bool fuses, int* fused = nullptr) {
  RunOptions options;
  options.rewrite.base = RewriteChoice::Base::none;
  if (fuses) options.rewrite.changes = {{"attention", true}};
  FusedCounter counter;
  auto session = executor.prepare(attention_graphs::model_of(graph), options);
  EXPECT_TRUE(session.ok()) << (session.ok() ? "" : session.error().message);
  auto ran = (*session)->run(attention_graphs::inputs_of(graph), counter);
  EXPECT_TRUE(ran.ok()) << (ran.ok() ? "" : ran.error().message);
  if (fused != nullptr) *fused = counter.fused;
  return (*ran)[0].tensor();
}

double farthest(const Tensor& ours, const Tensor& exact) {
  double worst = 0;
  for (int64_t i = 0; i < exact.element_count(); ++i) {
    const double truth = element_as_double(exact.view(), i), own = element_as_double(ours.view(), i);
    if (std::isnan(truth) != std::isnan(own)) return std::numeric_limits<double>::infinity();
    if (!std::isnan(truth)) worst = std::max(worst, std::fabs(own - truth));
  }
  return worst;
}

TEST(FusedAttention, IsAsExactAsItsParts) {
  const auto cpu = make_cpu_executor({.poison_buffers = true});
  const auto exact = make_reference_executor(ReferencePrecision::double_);
  std::vector<attention_graphs::Graph> graphs = attention_graphs::small_graphs();
  for (const auto& graph : attention_graphs::large_graphs()) graphs.push_back(graph);
  for (const auto& graph : graphs) {
    int fused = 0;
    const Tensor ours = output_of(*cpu, graph, true, &fused);
    EXPECT_EQ(fused, graph.fused) << graph.text;
    const Tensor truth = output_of(*exact, graph, false);
    ASSERT_EQ(ours.shape(), truth.shape()) << graph.text;
    const double parts = farthest(output_of(*cpu, graph, false), truth);
    EXPECT_LE(farthest(ours, truth), 1.5 * parts + 1e-7) << graph.text;
  }
}

// A query that sees no key is NaN where the model does not guard against it.
TEST(FusedAttention, RowWithoutANumberStaysOne) {
  attention_graphs::Graph graph = attention_graphs::grouped(1, 2, 4, 1, 1, 3);
  const std::string guard = attention_graphs::node("Where", {"lost", "nothing", "p"}, "w");
  graph.text.replace(graph.text.find(guard), guard.size(), "");
  const std::string test = attention_graphs::node("IsNaN", {"p"}, "lost");
  graph.text.replace(graph.text.find(test), test.size(), attention_graphs::node("Identity", {"p"}, "w"));
  const auto cpu = make_cpu_executor();
  for (const bool fuses : {false, true}) {
    const Tensor y = output_of(*cpu, graph, fuses);
    EXPECT_TRUE(std::isnan(element_as_double(y.view(), 0)));
    EXPECT_FALSE(std::isnan(element_as_double(y.view(), 3)));
  }
}

}  // namespace
}  // namespace parallax::fused_attention_test
