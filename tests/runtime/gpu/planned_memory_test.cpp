// SPDX-License-Identifier: Apache-2.0
// Planned memory on a GPU: values are in one block on the device, whoever still reads them, and no run takes more from
// the driver than its inputs: outputs are copied to the host. What comes back is overwritten by the emulation, so a
// buffer that is reused too early shows in the values.
#include "inspector/exec/planned_memory.h"

#include <gtest/gtest.h>

#include "tests/runtime/emulated/emulated_executor.h"
#include "tests/runtime/emulated/emulation.h"
#include "tests/runtime/model_text.h"
#include "tests/runtime/session_values.h"

namespace parallax::planned_memory_test {
namespace {

using model_text::node;
using model_text::value;
using session_values::filled;
using session_values::Recorder;
using session_values::same;

constexpr int64_t kSize = 8;

std::string axis(int number) { return "attribute { name: \"axis\" type: INT i: " + std::to_string(number) + " } "; }

// One step of a decoder: the cache grows by x, x attends to all of it.
std::shared_ptr<const Model> decoder() {
  return model_text::model_of(
      node("Concat", {"past", "x"}, {"present"}, axis(0)) + node("Transpose", {"present"}, {"keys"}) +
          node("MatMul", {"x", "keys"}, {"scores"}) + node("Softmax", {"scores"}, {"weights"}, axis(-1)) +
          node("MatMul", {"weights", "present"}, {"mixed"}) + node("Tanh", {"mixed"}, {"bent"}) +
          node("Add", {"bent", "x"}, {"y"}) + value("input", "x") + value("input", "past") + value("output", "y") +
          value("output", "present"),
      21);
}

RunOptions unfused() {
  RunOptions options;
  options.rewrite.base = RewriteChoice::Base::none;
  return options;
}

std::vector<Value> inputs_of(int64_t length, uint32_t seed) {
  return {filled({1, kSize}, seed), filled({length, kSize}, seed + 1)};
}

MemoryReport report_of(const Session& session) {
  const auto* planned = dynamic_cast<const PlannedMemory*>(&session);
  return planned == nullptr ? MemoryReport{} : planned->memory_report();
}

TEST(PlannedDeviceMemory, RunsTakeNothingButInputs) {
  auto session = tests::make_emulated_executor()->prepare(decoder(), unfused()).take();
  NullObserver nobody;
  const auto inputs = inputs_of(40, 1);
  const auto first = session->run(inputs, nobody).take();
  ASSERT_TRUE(session->run(inputs, nobody).ok());  // traced
  EXPECT_EQ(report_of(*session).arena_bytes, 0);
  for (int run = 0; run < 3; ++run) {
    NullObserver newcomer;  // the observer of absences, in a run that is launched node by node
    const int64_t before = runtime::emulation::allocation_count();
    const auto outputs = session->run(inputs, newcomer).take();
    const int64_t taken = runtime::emulation::allocation_count() - before;
    EXPECT_EQ(taken, run == 0 ? 3 : 2) << "run " << run;  // the inputs; at first the block
    EXPECT_TRUE(same(outputs[0], first[0]));
    EXPECT_TRUE(same(outputs[1], first[1]));
  }
  const MemoryReport report = report_of(*session);
  EXPECT_EQ(report.plan_count, 1);
  EXPECT_EQ(report.bound_bytes, 2 * 1536 + 3 * 256);  // present and keys, of 41 x 8 floats; three rows
  EXPECT_EQ(report.arena_bytes, report.bound_bytes);
}

TEST(PlannedDeviceMemory, AGrowingCacheNeedsFewPlans) {
  const auto model = decoder();
  const auto executor = tests::make_emulated_executor();
  auto session = executor->prepare(model, unfused()).take();
  NullObserver nobody;
  Value past = filled({1, kSize}, 1);
  int planned_steps = 0;
  for (uint32_t step = 0; step < 60; ++step) {
    const std::vector<Value> inputs{filled({1, kSize}, step), past};
    auto outputs = session->run(inputs, nobody);
    ASSERT_TRUE(outputs.ok()) << outputs.error().message;
    const auto fresh = executor->prepare(model, unfused()).take()->run(inputs, nobody).take();
    ASSERT_TRUE(same((*outputs)[0], fresh[0])) << "step " << step;
    ASSERT_TRUE(same((*outputs)[1], fresh[1])) << "step " << step;
    planned_steps += session->statistics().arena_bytes > 0 ? 1 : 0;
    past = std::move((*outputs)[1]);
  }
  EXPECT_LE(session->statistics().plan_count, 6);
  EXPECT_GE(planned_steps, 48);
}

// Copies to the host are made late, and a value keeps its buffer until then.
TEST(PlannedDeviceMemory, ObserversSeeEveryValueAsItWas) {
  for (const size_t ring_bytes : {size_t{4096}, size_t{1} << 20}) {
    auto session = tests::make_emulated_executor({ring_bytes, 2048})->prepare(decoder(), unfused()).take();
    NullObserver nobody;
    const auto inputs = inputs_of(40, 1);
    Recorder expected;
    ASSERT_TRUE(session->run(inputs, expected).ok());
    for (int run = 0; run < 2; ++run) ASSERT_TRUE(session->run(inputs, nobody).ok());
    ASSERT_GT(session->statistics().arena_bytes, 0);
    for (int run = 0; run < 3; ++run) {
      Recorder seen;
      ASSERT_TRUE(session->run(inputs, seen).ok());
      ASSERT_EQ(seen.values.size(), expected.values.size());
      for (const auto& [path, tensor] : expected.values) EXPECT_TRUE(same(seen.values.at(path), tensor)) << path;
    }
  }
}

TEST(PlannedDeviceMemory, LimitsHoldWithABlock) {
  RunOptions options = unfused();
  options.memory_limit_bytes = runtime::emulation::live_bytes() + 20'000;  // of the device, which other tests use, too
  auto session = tests::make_emulated_executor()->prepare(decoder(), options).take();
  NullObserver nobody;
  for (int run = 0; run < 4; ++run) ASSERT_TRUE(session->run(inputs_of(100, 1), nobody).ok()) << "run " << run;
  EXPECT_GT(session->statistics().arena_bytes, 0);
  const auto outputs = session->run(inputs_of(1000, 1), nobody);
  ASSERT_FALSE(outputs.ok());
  EXPECT_EQ(outputs.error().code, ErrorCode::out_of_memory);
  EXPECT_NE(outputs.error().message.find("memory limit"), std::string::npos) << outputs.error().message;
  EXPECT_TRUE(session->run(inputs_of(100, 1), nobody).ok());
}

}  // namespace
}  // namespace parallax::planned_memory_test
