// SPDX-License-Identifier: Apache-2.0
// A run's launches, waits and copies, counted by the stand-in libraries: those of a Llama layer and of a
// decoder's step. And rows that are sorted by CUB's kernels, against the host's bits.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "inspector/model/io/import.h"
#include "tests/runtime/ptx/stand_in.h"
#include "tests/runtime/session_values.h"
#include "tests/runtime/sorting_cases.h"

namespace parallax {
namespace {

using session_values::same;

// Null where CUDA's own libraries are loaded, or none.
const ptx::StandInCounts* stand_in_counts() {
  using Function = const ptx::StandInCounts* (*)();
  const auto counts = reinterpret_cast<Function>(::dlsym(RTLD_DEFAULT, "parallax_stand_in_counts"));
  return counts == nullptr ? nullptr : counts();
}

ptx::StandInCounts difference(const ptx::StandInCounts& after, const ptx::StandInCounts& before) {
  ptx::StandInCounts made = after;
  made.launches -= before.launches;
  made.recorded_launches -= before.recorded_launches;
  made.replayed_launches -= before.replayed_launches;
  made.graph_launches -= before.graph_launches;
  made.library_calls -= before.library_calls;
  made.waits -= before.waits;
  made.copies_to_device -= before.copies_to_device;
  made.copies_to_host -= before.copies_to_host;
  made.copies_on_device -= before.copies_on_device;
  made.bytes_to_device -= before.bytes_to_device;
  made.bytes_to_host -= before.bytes_to_host;
  made.allocations -= before.allocations;
  return made;
}

std::string text_of(const ptx::StandInCounts& counts) {
  return std::to_string(counts.launches) + " launches, " + std::to_string(counts.library_calls) + " library calls, " +
         std::to_string(counts.graph_launches) + " graphs of " + std::to_string(counts.replayed_launches) +
         " launches, " + std::to_string(counts.waits) + " waits, copies: " + std::to_string(counts.copies_to_device) +
         " to the device, " + std::to_string(counts.copies_to_host) + " to the host, " +
         std::to_string(counts.copies_on_device) + " on the device; " + std::to_string(counts.allocations) +
         " allocations";
}

constexpr int kInputs = 16;  // more than any sample has

std::string sample(const std::string& name) { return std::string(PX_SOURCE_DIR) + "/samples/" + name; }

std::vector<Value> data_of(const std::string& name) {
  std::vector<Value> inputs;
  for (int i = 0; i < kInputs; ++i) {
    auto read = read_value_file(sample(name + "/test_data_set_0/input_" + std::to_string(i) + ".pb"));
    if (!read.ok()) break;
    inputs.push_back(read->value);
  }
  EXPECT_FALSE(inputs.empty());
  return inputs;
}

class Counts : public testing::Test {
 protected:
  void prepare(const std::shared_ptr<const Model>& model) {
    counts_ = stand_in_counts();
    if (counts_ == nullptr) GTEST_SKIP() << "only with the stand-ins: ctest -L ptx";
    session_ = make_cuda_executor().take()->prepare(model, {}).take();
  }
  void prepare(const std::string& name) {
    const auto imported = import_model(sample(name));
    ASSERT_TRUE(imported.ok()) << imported.error().message;
    prepare(*imported);
  }

  // One run; the difference that it makes to the counts.
  ptx::StandInCounts run(const std::vector<Value>& inputs) {
    const ptx::StandInCounts before = *counts_;
    auto made = session_->run(inputs, nobody_);
    EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
    if (made.ok()) outputs_ = made.take();
    const ptx::StandInCounts counts = difference(*counts_, before);
    std::printf("%s\n", text_of(counts).c_str());
    return counts;
  }

  const ptx::StandInCounts* counts_ = nullptr;
  std::unique_ptr<Session> session_;
  NullObserver nobody_;         // the same in every run: another one is shown values again
  std::vector<Value> outputs_;  // of the last run
};

// A run may ask for less than this, which is what it asks for today; the first two runs make weights and plans.
struct Limit {
  int64_t launches, library_calls, waits, copies_to_device, copies_to_host, allocations;
};

void expect_within(const ptx::StandInCounts& counts, const Limit& limit) {
  EXPECT_LE(counts.launches, limit.launches);
  EXPECT_LE(counts.library_calls, limit.library_calls);
  EXPECT_LE(counts.waits, limit.waits);
  EXPECT_LE(counts.copies_to_device, limit.copies_to_device);
  EXPECT_LE(counts.copies_to_host, limit.copies_to_host);
  EXPECT_LE(counts.allocations, limit.allocations);
  EXPECT_GT(counts.launches + counts.graph_launches, 0);
}

constexpr int kRuns = 5;

// It is not recorded: three values are read on the host.
TEST_F(Counts, OfALlamaLayer) {
  prepare("llama_layer/model.onnx");
  if (counts_ == nullptr) return;
  const std::vector<Value> inputs = data_of("llama_layer");
  ptx::StandInCounts last;
  for (int i = 0; i < kRuns; ++i) last = run(inputs);
  expect_within(last, {22, 23, 3, 10, 3, 2});
}

// From the fourth run on it is one launch of a graph, a copy of each input and output, and a copy of what kernels have
// looked for in the indices.
TEST_F(Counts, OfAStepOfADecoder) {
  prepare("decoder/model.textproto");
  if (counts_ == nullptr) return;
  const std::vector<Value> inputs = data_of("decoder");
  ptx::StandInCounts last;
  run(inputs);
  const std::vector<Value> first = outputs_;
  for (int i = 1; i < kRuns; ++i) {
    last = run(inputs);
    for (size_t output = 0; output < first.size(); ++output) EXPECT_TRUE(same(outputs_[output], first[output])) << i;
  }
  EXPECT_EQ(last.graph_launches, 1);
  EXPECT_LE(last.replayed_launches, 37);
  expect_within(last, {0, 0, 6, 7, 6, 0});
}

TEST(Sorting, HasTheHostsBits) {
  const auto cuda = make_cuda_executor();
  if (!cuda.ok()) GTEST_SKIP() << cuda.error().message;
  for (const auto& each : sorting_cases::sorting_cases(6000, 20)) sorting_cases::expect_same_as_host(**cuda, each);
}

}  // namespace
}  // namespace parallax
