// SPDX-License-Identifier: Apache-2.0
// The values that an observer sees of a run on a GPU: every value as it was when its node had run, in order, however
// far the run is ahead of the copies; and how often it had to wait for them.
#include <cmath>
#include <map>
#include <numeric>

#include <gtest/gtest.h>

#include "inspector/dump/statistics/statistics.h"
#include "inspector/exec/capture_traffic.h"
#include "tests/runtime/emulated/emulated_executor.h"
#include "tests/runtime/emulated/emulation.h"
#include "tests/runtime/model_text.h"

namespace parallax::capture_test {
namespace {

using model_text::node;
using model_text::value;

std::shared_ptr<const Model> model_of(const std::string& graph) { return model_text::model_of(graph, 21); }

// v0 -> v1 -> ...: every node may write over its input, if nobody else reads it.
std::shared_ptr<const Model> chain(int nodes) {
  const std::vector<std::string> operators{"Abs", "Neg", "Exp", "Neg"};
  std::string text;
  for (int i = 0; i < nodes; ++i) {
    text += node(operators[static_cast<size_t>(i) % operators.size()], {"v" + std::to_string(i)},
                 {"v" + std::to_string(i + 1)});
  }
  return model_of(text + value("input", "v0") + value("output", "v" + std::to_string(nodes)));
}

Tensor ramp(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), -2.0F);
  for (float& each : values) each *= 0.125F;
  return Tensor::from<float>(Shape{count}, values);
}

// The values of chain() by the same arithmetic, in double.
std::vector<double> expected(int location, int64_t count) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) {
    double x = (static_cast<double>(i) - 2.0) * 0.125;
    for (int node = 0; node < location; ++node) {
      const int kind = node % 4;
      x = kind == 0 ? std::fabs(x) : kind == 2 ? std::exp(x) : -x;
    }
    values.push_back(x);
  }
  return values;
}

void expect_close(const Tensor& tensor, const std::vector<double>& values, const std::string& what) {
  const auto got = tensor.as<float>();
  ASSERT_EQ(got.size(), values.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], values[i], 1e-5 * (1 + std::fabs(values[i]))) << what;
}

class Recorder final : public Observer {
 public:
  explicit Recorder(CaptureLevel level = CaptureLevel::all, bool keeps_payloads = false)
      : level_(level), keeps_payloads_(keeps_payloads) {}
  CaptureLevel wants(const ValueInfo& value_info) override {
    return value_info.role == ValueInfo::Role::node_output ? level_ : CaptureLevel::none;
  }
  Status observe(const Observation& seen) override {
    if (static_cast<int>(order.size()) == fails_at) return io_error("the disk is full");
    order.push_back(seen.path());
    if (seen.statistics != nullptr) {
      statistics.emplace(seen.path(), *seen.statistics);
      EXPECT_EQ(seen.value.tensor().view().data, nullptr);
    } else if (level_ == CaptureLevel::shape) {
      shapes[seen.path()] = seen.value.tensor().shape();
    } else {
      const Tensor& tensor = seen.value.tensor();
      values[seen.path()] = keeps_payloads_ ? tensor : tensor.clone().take();
    }
    return {};
  }
  Status enter_body(const NodeLocation&, const Frame& frame) override { return note("enter " + to_string(frame)); }
  Status leave_body(const NodeLocation&, const Frame& frame) override { return note("leave " + to_string(frame)); }
  Status node_failed(const NodeLocation& value_info, const FrameStack&, const Error&) override {
    return note("failed " + std::string(value_info.node));
  }

  std::vector<std::string> order;
  std::map<std::string, Tensor> values;
  std::map<std::string, TensorStatistics> statistics;
  std::map<std::string, Shape> shapes;
  int fails_at = -1;

 private:
  Status note(std::string event) { return order.push_back(std::move(event)), Status{}; }

  CaptureLevel level_;
  bool keeps_payloads_;
};

struct Ran {
  Status status;
  CaptureCounts counts;
};
Ran run(const std::shared_ptr<const Model>& model, const std::vector<Value>& inputs, Observer& observer,
        const runtime::HostCopySizes& sizes = tests::kSmallCopies) {
  RunOptions options;
  options.rewrite.base = RewriteChoice::Base::none;
  auto session = tests::make_emulated_executor(sizes)->prepare(model, options);
  if (!session.ok()) return {std::move(session).error(), {}};
  auto outputs = (*session)->run(inputs, observer);
  const auto* traffic = dynamic_cast<const CaptureTraffic*>(session->get());
  EXPECT_NE(traffic, nullptr);
  return {outputs.ok() ? Status() : Status(outputs.error()), traffic->capture_counts().value()};
}

// 40 values of 1200 bytes through a ring of 4096: each comes as it was, though a later node could have written over it.
TEST(GpuCapture, ShowsEveryValueAsItWas) {
  Recorder recorder;
  const Ran ran = run(chain(40), {ramp(300)}, recorder);
  ASSERT_TRUE(ran.status.ok()) << ran.status.error().message;
  ASSERT_EQ(recorder.order.size(), 40U);
  for (int location = 1; location <= 40; ++location) {
    const std::string path = "v" + std::to_string(location);
    EXPECT_EQ(recorder.order[static_cast<size_t>(location) - 1], path);
    expect_close(recorder.values[path], expected(location, 300), path);
  }
  EXPECT_EQ(ran.counts.copies, 40);
  EXPECT_EQ(ran.counts.bytes, 40 * 1200);
  EXPECT_GT(ran.counts.waits, 0) << "three values fill the ring";
  EXPECT_EQ(ran.counts.bytes_in_pieces, 0);
}

TEST(GpuCapture, WaitsForNothingWhereThereIsRoom) {
  Recorder recorder;
  const Ran ran = run(chain(2), {ramp(300)}, recorder, {size_t{1} << 20, 512});
  ASSERT_TRUE(ran.status.ok());
  EXPECT_EQ(ran.counts.copies, 2);
  EXPECT_LE(ran.counts.waits, 1) << "but for the last ones at the end";
}

TEST(GpuCapture, ValuesLargerThanTheRingComeInPieces) {
  Recorder recorder;
  const Ran ran = run(chain(5), {ramp(2000)}, recorder);
  ASSERT_TRUE(ran.status.ok()) << ran.status.error().message;
  for (int location = 1; location <= 5; ++location) {
    const std::string path = "v" + std::to_string(location);
    expect_close(recorder.values[path], expected(location, 2000), path);
  }
  EXPECT_EQ(ran.counts.bytes_in_pieces, 5 * 8000);
}

// An observer that keeps what it was shown keeps the ring full: the run goes on all the same.
TEST(GpuCapture, AnObserverMayKeepWhatItIsShown) {
  Recorder recorder(CaptureLevel::all, true);
  const Ran ran = run(chain(12), {ramp(300)}, recorder);
  ASSERT_TRUE(ran.status.ok()) << ran.status.error().message;
  for (int location = 1; location <= 12; ++location) {
    const std::string path = "v" + std::to_string(location);
    expect_close(recorder.values[path], expected(location, 300), path);
  }
  EXPECT_EQ(ran.counts.bytes_in_pieces, 9 * 1200) << "the ring has room for three";
}

// The statistics of the very values, and nothing but them.
TEST(GpuCapture, StatisticsAreTakenOnTheDevice) {
  Recorder whole;
  ASSERT_TRUE(run(chain(6), {ramp(900)}, whole).status.ok());
  Recorder summed(CaptureLevel::stats);
  const Ran ran = run(chain(6), {ramp(900)}, summed);
  ASSERT_TRUE(ran.status.ok()) << ran.status.error().message;
  ASSERT_EQ(summed.statistics.size(), 6U);
  EXPECT_EQ(summed.order, whole.order);
  for (const auto& [path, statistics] : summed.statistics) {
    const TensorStatistics wanted = compute_statistics(whole.values[path]);
    EXPECT_EQ(statistics.count, 900) << path;
    EXPECT_EQ(statistics.mean, wanted.mean) << path;
    EXPECT_EQ(statistics.std, wanted.std) << path;
    EXPECT_EQ(statistics.projections, wanted.projections) << path;
  }
  EXPECT_LT(ran.counts.bytes, 6 * 900) << "a chunk's statistics take fewer bytes than the values";
  EXPECT_TRUE(runtime::emulation::kernels_run().contains("chunk_statistics"));
}

// However large the values are: what travels is small.
TEST(GpuCapture, StatisticsOfValuesLargerThanTheRing) {
  Recorder recorder(CaptureLevel::stats);
  const Ran ran = run(chain(3), {ramp(5000)}, recorder);
  ASSERT_TRUE(ran.status.ok()) << ran.status.error().message;
  EXPECT_EQ(recorder.statistics.size(), 3U);
  EXPECT_EQ(ran.counts.bytes_in_pieces, 0);
}

TEST(GpuCapture, ShapesCostNoCopy) {
  Recorder recorder(CaptureLevel::shape);
  const Ran ran = run(chain(6), {ramp(900)}, recorder);
  ASSERT_TRUE(ran.status.ok());
  EXPECT_EQ(recorder.shapes.size(), 6U);
  EXPECT_EQ(recorder.shapes["v3"], (Shape{900}));
  EXPECT_EQ(ran.counts.copies, 0);
}

// Bodies are entered and left between the values that come before, in and after them.
TEST(GpuCapture, EventsKeepTheirOrder) {
  const auto model = model_of(node("Neg", {"x"}, {"a"}) +
                              "node { op_type: \"If\" name: \"choose\" input: \"c\" output: \"b\" "
                              "attribute { name: \"then_branch\" type: GRAPH g { name: \"t\" " +
                              node("Neg", {"a"}, {"t"}) + value("output", "t") +
                              "} } attribute { name: \"else_branch\" type: GRAPH g { name: \"e\" " +
                              node("Abs", {"a"}, {"e"}) + value("output", "e") + "} } } " + node("Exp", {"b"}, {"y"}) +
                              value("input", "x") + value("input", "c", 9) + value("output", "y"));
  Recorder recorder;
  const Value inputs[] = {ramp(100), Tensor::scalar<bool>(true)};
  const Ran ran = run(model, {inputs[0], inputs[1]}, recorder);
  ASSERT_TRUE(ran.status.ok()) << ran.status.error().message;
  EXPECT_EQ(recorder.order,
            (std::vector<std::string>{"a", "enter choose.then", "choose.then//t", "leave choose.then", "b", "y"}));
}

// All that came before the failure is reported before it.
TEST(GpuCapture, TellsEverythingBeforeAFailure) {
  const auto model = model_of(node("Neg", {"x"}, {"a"}) + node("Abs", {"a"}, {"b"}) +
                              "node { op_type: \"Gather\" name: \"pick\" input: \"b\" input: \"i\" output: \"y\" } " +
                              value("input", "x") + value("input", "i", 7) + value("output", "y"));
  const int64_t indices[] = {5000};
  Recorder recorder;
  const Ran ran = run(model, {ramp(100), Tensor::vector<int64_t>(indices)}, recorder);
  ASSERT_FALSE(ran.status.ok());
  EXPECT_EQ(recorder.order, (std::vector<std::string>{"a", "b", "failed pick"}));
}

// The observer's own error stops the run with its sentence, and no copy is left pending.
TEST(GpuCapture, AnObserverThatFailsStopsTheRun) {
  const int64_t before = runtime::emulation::live_bytes();
  Recorder recorder;
  recorder.fails_at = 4;
  const Ran ran = run(chain(40), {ramp(300)}, recorder);
  ASSERT_FALSE(ran.status.ok());
  EXPECT_EQ(ran.status.error().code, ErrorCode::io);
  EXPECT_EQ(recorder.order.size(), 4U);
  EXPECT_EQ(runtime::emulation::live_bytes(), before);
}

}  // namespace
}  // namespace parallax::capture_test
