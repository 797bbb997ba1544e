// SPDX-License-Identifier: Apache-2.0
// Two threads of one process, each with a session or a job of its own: bits are those of one after the other. With the
// preset tsan this shows that they share nothing without a lock.
#include <filesystem>
#include <functional>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include "inspector/executors/make_executor.h"
#include "inspector/workbench/run.h"
#include "tests/inspector/executors/decoder_models.h"
#include "tests/runtime/session_values.h"

namespace parallax {
namespace {

namespace fs = std::filesystem;
using decoder_models::Kind;
using session_values::filled;
using session_values::same;

constexpr int kCalls = 3;

void in_two_threads(const std::function<void(size_t)>& work) {
  std::thread first([&] { work(0); }), second([&] { work(1); });
  first.join();
  second.join();
}

// The first step of a decoder, then steps of growing length.
std::vector<Value> inputs_of(Kind kind, int call) {
  const int64_t past = 2 * call;
  std::vector<Value> inputs{filled(Shape{2, 3, decoder_models::kWidth}, static_cast<uint32_t>(call + 1))};
  for (int state = 0; state < 2 * decoder_models::kLayers; ++state) {
    const Shape shape{2, decoder_models::cached_heads(kind), past, decoder_models::kSize};
    inputs.push_back(past == 0 ? Value(Tensor::zeros(DType::float32, shape).take())
                               : filled(shape, static_cast<uint32_t>(100 + state)));
  }
  return inputs;
}

using Outputs = std::vector<std::vector<Value>>;

// Everything from the executor on is the thread's own.
Outputs run_decoder(const std::string& executor_name, const std::shared_ptr<const Model>& model, Kind kind) {
  Outputs all;
  const auto executor = make_executor(executor_name);
  auto session = (*executor)->prepare(model, {});
  EXPECT_TRUE(session.ok()) << session.error().message;
  if (!session.ok()) return all;
  NullObserver observer;
  for (int call = 0; call < kCalls; ++call) {
    const auto outputs = (*session)->run(inputs_of(kind, call), observer);
    EXPECT_TRUE(outputs.ok()) << outputs.error().message;
    if (outputs.ok()) all.push_back(*outputs);
  }
  return all;
}

void expect_same(const Outputs& seen, const Outputs& expected) {
  ASSERT_EQ(seen.size(), expected.size());
  for (size_t call = 0; call < seen.size(); ++call) {
    for (size_t output = 0; output < expected[call].size(); ++output)
      EXPECT_TRUE(same(seen[call][output], expected[call][output])) << "call " << call << ", output " << output;
  }
}

class TwoSessions : public testing::TestWithParam<const char*> {};

TEST_P(TwoSessions, OfOneModelGiveTheBitsOfOne) {
  const auto model = decoder_models::decoder(Kind::several_heads);
  const Outputs expected = run_decoder(GetParam(), model, Kind::several_heads);
  ASSERT_EQ(expected.size(), static_cast<size_t>(kCalls));
  Outputs seen[2];
  in_two_threads([&](size_t which) { seen[which] = run_decoder(GetParam(), model, Kind::several_heads); });
  for (const Outputs& outputs : seen) expect_same(outputs, expected);
}

TEST_P(TwoSessions, OfTwoModelsGiveTheBitsOfEach) {
  constexpr Kind kKinds[] = {Kind::shared_heads, Kind::operator_attention};
  const std::shared_ptr<const Model> models[] = {decoder_models::decoder(kKinds[0]),
                                                 decoder_models::decoder(kKinds[1])};
  Outputs seen[2];
  in_two_threads([&](size_t which) { seen[which] = run_decoder(GetParam(), models[which], kKinds[which]); });
  for (size_t which = 0; which < 2; ++which)
    expect_same(seen[which], run_decoder(GetParam(), models[which], kKinds[which]));
}

INSTANTIATE_TEST_SUITE_P(All, TwoSessions, testing::Values("reference", "cpu"));

TEST(TwoJobs, CompareAndDumpInTwoThreads) {
  const fs::path folder = fs::path(testing::TempDir()) / ("two_jobs." + std::to_string(::getpid()));
  OverallVerdict verdicts[2] = {};
  in_two_threads([&](size_t which) {
    RunRequest request;
    request.model = PX_SOURCE_DIR "/samples/cnn/model.onnx";
    request.executors = {"reference", "cpu"};
    request.dump_directory = (folder / std::to_string(which)).string();
    const auto ran = run_models(request, [](const std::string& name) { return make_executor(name); });
    ASSERT_TRUE(ran.ok()) << ran.error().message;
    verdicts[which] = ran->comparison->verdict;
  });
  for (const OverallVerdict verdict : verdicts) EXPECT_EQ(verdict, OverallVerdict::pass);
  EXPECT_TRUE(fs::exists(folder / "0/A-reference.plx") && fs::exists(folder / "1/B-cpu.plx"));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace parallax
