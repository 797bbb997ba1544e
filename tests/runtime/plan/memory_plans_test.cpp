// SPDX-License-Identifier: Apache-2.0
// Planned memory as a session uses it: plans for ranges of shapes, values that stay valid, limits that name the node.
#include <map>

#include <gtest/gtest.h>

#include "inspector/exec/planned_memory.h"
#include "runtime/plan/runtime.h"
#include "tests/runtime/model_text.h"
#include "tests/runtime/session_values.h"

namespace parallax::memory_plans_test {
namespace {

using model_text::model_of;
using model_text::node;
using model_text::value;
using session_values::filled;
using session_values::same;

std::string number(const std::string& name, int value) {
  return "attribute { name: \"" + name + "\" type: INT i: " + std::to_string(value) + " } ";
}

constexpr int64_t kSize = 16;

// One step of a decoder: the cache grows by x, x attends to all of it under a mask of the cache's new length.
std::shared_ptr<const Model> decoder() {
  return model_of(
      node("Concat", {"past", "x"}, {"present"}, number("axis", 1)) +
      node("Transpose", {"present"}, {"keys"}, "attribute { name: \"perm\" type: INTS ints: 0 ints: 2 ints: 1 }") +
      node("MatMul", {"x", "keys"}, {"scores"}) + node("Add", {"scores", "mask"}, {"masked"}) +
      node("Softmax", {"masked"}, {"weights"}, number("axis", -1)) + node("MatMul", {"weights", "present"}, {"mixed"}) +
      node("Tanh", {"mixed"}, {"y"}) + value("input", "x") + value("input", "past") + value("input", "mask") +
      value("output", "y") + value("output", "present"));
}

// Attention in its parts: as one node it would make nothing that needs memory between nodes.
RunOptions in_parts() {
  RunOptions options;
  options.rewrite.changes = {{"attention", false}};
  return options;
}

TEST(MemoryPlans, AThousandStepsOfAGrowingCacheNeedAtMostTwelve) {
  const auto model = decoder();
  const auto executor = make_cpu_executor({.poison_buffers = true});
  auto session = executor->prepare(model, in_parts()).take();
  NullObserver nobody;
  Value past = filled({1, 1, kSize}, 1);
  int planned_steps = 0;
  for (uint32_t step = 0; step < 1000; ++step) {
    const int64_t length = past.tensor().shape()[1] + 1;
    const std::vector<Value> inputs{filled({1, 1, kSize}, step), past, filled({1, 1, length}, step + 5)};
    auto outputs = session->run(inputs, nobody);
    ASSERT_TRUE(outputs.ok()) << outputs.error().message;
    if (step % 97 == 0) {  // a session that has planned nothing yet gives the same bits
      const auto fresh = executor->prepare(model, in_parts()).take()->run(inputs, nobody).take();
      ASSERT_TRUE(same((*outputs)[0], fresh[0])) << "step " << step;
      ASSERT_TRUE(same((*outputs)[1], fresh[1])) << "step " << step;
    }
    planned_steps += session->statistics().arena_bytes > 0 ? 1 : 0;
    past = std::move((*outputs)[1]);
  }
  EXPECT_LE(session->statistics().plan_count, 12);
  EXPECT_GE(planned_steps, 980);
}

TEST(MemoryPlans, ReportSizeSumAndBound) {
  std::string graph;
  for (int i = 0; i < 20; ++i) {  // Transpose cannot work in place
    graph += node("Transpose", {"v" + std::to_string(i)}, {"v" + std::to_string(i + 1)});
  }
  const auto model = model_of(graph + value("input", "v0") + value("output", "v20"));
  RunOptions options;
  options.rewrite.base = RewriteChoice::Base::none;
  auto session = make_cpu_executor()->prepare(model, options).take();
  NullObserver nobody;
  const std::vector<Value> inputs{filled({32, 32}, 3)};
  for (int run = 0; run < 3; ++run) EXPECT_TRUE(same(session->run(inputs, nobody).take()[0], inputs[0]));
  const auto* planned = dynamic_cast<const PlannedMemory*>(session.get());
  ASSERT_NE(planned, nullptr);
  const MemoryReport report = planned->memory_report();
  EXPECT_EQ(report.plan_count, 1);
  EXPECT_EQ(report.sum_bytes, 19 * 4096);  // all but the output
  EXPECT_EQ(report.bound_bytes, 2 * 4096);
  EXPECT_EQ(report.arena_bytes, 2 * 4096);
}

// Keeps the values themselves, without a copy.
class Keeper final : public Observer {
 public:
  CaptureLevel wants(const ValueInfo&) override { return CaptureLevel::all; }
  Status observe(const Observation& seen) override {
    kept.push_back({seen.value, seen.value.tensor().clone().take()});
    return {};
  }
  std::vector<std::pair<Value, Value>> kept;
};

TEST(MemoryPlans, NeverOverwriteWhatAnObserverKeeps) {
  const auto model = decoder();
  auto session = make_cpu_executor({.poison_buffers = true})->prepare(model, in_parts()).take();
  NullObserver nobody;
  Keeper keeper;
  const std::vector<Value> inputs{filled({1, 1, kSize}, 1), filled({1, 30, kSize}, 2), filled({1, 1, 31}, 3)};
  for (int run = 0; run < 3; ++run) ASSERT_TRUE(session->run(inputs, nobody).ok());
  ASSERT_GT(session->statistics().arena_bytes, 0);
  for (int run = 0; run < 3; ++run) ASSERT_TRUE(session->run(inputs, keeper).ok());
  for (int run = 0; run < 3; ++run) ASSERT_TRUE(session->run(inputs, nobody).ok());
  session.reset();
  ASSERT_EQ(keeper.kept.size(), 3 * 9U);
  for (const auto& [value, copy] : keeper.kept) EXPECT_TRUE(same(value, copy));
}

TEST(MemoryPlans, LimitsNameTheNodeAndTheBytes) {
  const auto model = decoder();
  RunOptions options = in_parts();
  options.memory_limit_bytes = 200'000;
  auto session = make_cpu_executor()->prepare(model, options).take();
  NullObserver nobody;
  const auto inputs = [](int64_t length) {
    return std::vector<Value>{filled({1, 1, kSize}, 1), filled({1, length - 1, kSize}, 2), filled({1, 1, length}, 3)};
  };
  for (int run = 0; run < 3; ++run) ASSERT_TRUE(session->run(inputs(500), nobody).ok());
  for (int run = 0; run < 2; ++run) {
    const auto outputs = session->run(inputs(3000), nobody);
    ASSERT_FALSE(outputs.ok());
    EXPECT_EQ(outputs.error().code, ErrorCode::out_of_memory);
    EXPECT_NE(outputs.error().message.find("node 'scores_node' (FusedMatMul-1)"), std::string::npos)
        << outputs.error().message;
    EXPECT_NE(outputs.error().message.find("12288 bytes"), std::string::npos) << outputs.error().message;
  }
  EXPECT_TRUE(session->run(inputs(500), nobody).ok());
}

}  // namespace
}  // namespace parallax::memory_plans_test
