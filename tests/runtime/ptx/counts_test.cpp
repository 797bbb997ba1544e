// SPDX-License-Identifier: Apache-2.0
// A run's launches, waits and copies, counted by the stand-in libraries: those of a Llama layer and of a
// decoder's step. And rows that are sorted by CUB's kernels, against the host's bits.
#include <array>

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "inspector/exec/session_states.h"
#include "inspector/model/io/import.h"
#include "tests/runtime/against_host.h"
#include "tests/runtime/model_text.h"
#include "tests/runtime/ptx/layer_model.h"
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
  made.kernel_bytes -= before.kernel_bytes;
  made.library_bytes -= before.library_bytes;
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
  void prepare(const std::shared_ptr<const Model>& model, const RunOptions& options = {}) {
    counts_ = stand_in_counts();
    if (counts_ == nullptr) GTEST_SKIP() << "only with the stand-ins: ctest -L ptx";
    session_ = make_cuda_executor().take()->prepare(model, options).take();
  }
  void prepare(const std::string& name, const RunOptions& options = {}) {
    const auto imported = import_model(sample(name));
    ASSERT_TRUE(imported.ok()) << imported.error().message;
    prepare(*imported, options);
  }

  // One run; the difference that it makes to the counts.
  ptx::StandInCounts run(const std::vector<Value>& inputs) {
    const ptx::StandInCounts before = *counts_;
    auto made = session_->run(inputs, nobody_);
    EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
    if (made.ok()) outputs_ = made.take();
    const ptx::StandInCounts counts = difference(*counts_, before);
    std::printf("%s; bytes: %lld to the device, %lld to the host\n", text_of(counts).c_str(),
                static_cast<long long>(counts.bytes_to_device), static_cast<long long>(counts.bytes_to_host));
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
constexpr double kMostLayerBytes = 1.6, kMostStepBytes = 1.1;  // times the least
constexpr int64_t kMostStepLaunches = 15;

// From the fourth run on it is one launch of a graph, a copy of each input, one of the output, and one of what kernels
// have looked for in the indices.
TEST_F(Counts, OfALlamaLayer) {
  prepare("llama_layer/model.onnx");
  if (counts_ == nullptr) return;
  const std::vector<Value> inputs = data_of("llama_layer");
  ptx::StandInCounts last;
  run(inputs);
  const std::vector<Value> first = outputs_;
  for (int i = 1; i < kRuns; ++i) last = run(inputs);
  for (size_t output = 0; output < first.size(); ++output) EXPECT_TRUE(same(outputs_[output], first[output]));
  EXPECT_EQ(last.graph_launches, 1);
  EXPECT_LE(last.replayed_launches, 22);
  expect_within(last, {0, 0, 2, 2, 2, 0});
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

// 32 query heads over 8 of keys, 40 tokens after a past of 200, in two samples: the products are one kernel's.
TEST_F(Counts, OfAGroupQueryAttention) {
  using model_text::node;
  using model_text::value;
  constexpr int kFloat = 1, kInt32 = 6;
  std::string graph = node("GroupQueryAttention", {"q", "k", "v", "pk", "pv", "lengths", "total"}, {"y", "nk", "nv"},
                           "domain: \"com.microsoft\" " + model_text::integer_attribute("num_heads", 32) +
                               model_text::integer_attribute("kv_num_heads", 8));
  for (const char* name : {"q", "k", "v", "pk", "pv"}) graph += value("input", name, kFloat);
  for (const char* name : {"lengths", "total"}) graph += value("input", name, kInt32);
  for (const char* name : {"y", "nk", "nv"}) graph += value("output", name, kFloat);
  graph += "} opset_import { domain: \"com.microsoft\" version: 1";  // after the graph
  prepare(model_text::model_of(graph, 23));
  if (counts_ == nullptr) return;
  std::vector<Value> inputs;
  for (const Shape& shape :
       {Shape{2, 40, 256}, Shape{2, 40, 64}, Shape{2, 40, 64}, Shape{2, 8, 200, 8}, Shape{2, 8, 200, 8}})
    inputs.emplace_back(against_host::sixteenths(DType::float32, shape, static_cast<int64_t>(inputs.size())));
  inputs.emplace_back(Tensor::from<int32_t>(Shape{2}, std::array{239, 239}));
  inputs.emplace_back(Tensor::scalar<int32_t>(240));
  ptx::StandInCounts last;
  for (int i = 0; i < kRuns; ++i) last = run(inputs);
  expect_within(last, {8, 0, 5, 9, 5, 3});
}

// Caches that the session keeps stay on the device: a step brings the same to it and from it, however long they are,
// but for the mask and what follows from its length.
TEST_F(Counts, OfStepsThatKeepTheirCaches) {
  RunOptions options;
  for (const char* layer : {"0", "1"})
    for (const char* what : {".key", ".value"})
      options.states.push_back(
          {std::string("past_key_values.") + layer + what, std::string("present.") + layer + what, 2});
  prepare("decoder/model.textproto", options);
  if (counts_ == nullptr) return;
  auto& states = dynamic_cast<SessionStates&>(*session_);
  ASSERT_TRUE(states.reset_states(1, 0).ok());
  const auto row = [](const std::vector<int64_t>& values) {
    return Value(Tensor::from<int64_t>(Shape{1, static_cast<int64_t>(values.size())}, values));
  };
  constexpr int64_t kPrompt = 3, kSteps = 24, kBytesOfToken = 2 * 2 * 2 * 4 * sizeof(float);
  std::vector<Value> inputs(7);
  inputs[0] = row({5, 17, 4});
  inputs[1] = row({1, 1, 1});
  inputs[2] = row({0, 1, 2});
  run(inputs);
  ptx::StandInCounts early, late;
  for (int64_t step = 0; step < kSteps; ++step) {
    inputs[0] = row({step % 20});
    inputs[1] = row(std::vector<int64_t>(static_cast<size_t>(kPrompt + step + 1), 1));
    inputs[2] = row({kPrompt + step});
    late = run(inputs);
    if (step == kSteps / 2) early = late;
  }
  EXPECT_EQ(states.state(0)->tensor().shape(), (Shape{1, 2, kPrompt + kSteps, 4}));
  EXPECT_EQ(late.copies_to_device, early.copies_to_device);
  EXPECT_EQ(late.bytes_to_host, early.bytes_to_host);
  const int64_t per_token = (late.bytes_to_device - early.bytes_to_device) / (kSteps / 2 - 1);
  EXPECT_LE(per_token, 16) << "of the cache it would be " << kBytesOfToken;
}

// A cache of fixed length that the session keeps: its begins and lengths are read on the device, so that each step from
// the fourth on is one launch of a graph, and three copies of a number a sample.
TEST_F(Counts, OfStepsWithAStaticCache) {
  const auto dims = [](const std::string& rows) {
    return "shape { dim { dim_param: \"batch\" } dim { dim_value: 2 } dim { dim_param: \"" + rows +
           "\" } dim { dim_value: 8 } }";
  };
  const auto model = model_text::model_of(
      model_text::node("TensorScatter", {"past", "now", "at"}, {"present"}, model_text::integer_attribute("axis", 2)) +
          model_text::node("Attention", {"q", "present", "present", "", "", "", "lengths"}, {"y"}) +
          model_text::value("input", "q", 1, dims("new")) + model_text::value("input", "now", 1, dims("new")) +
          model_text::value("input", "at", 7) + model_text::value("input", "lengths", 7) +
          model_text::value("input", "past", 1, dims("capacity")) + model_text::value("output", "y") +
          model_text::value("output", "present", 1, dims("capacity")),
      24);
  constexpr int64_t kCapacity = 64, kSteps = 9;
  const Value empty = Tensor::zeros(DType::float32, Shape{1, 2, kCapacity, 8}).take();
  const auto step = [](int64_t index) {
    const auto seed = static_cast<uint32_t>(2 * index);
    return std::vector<Value>{
        session_values::filled({1, 2, 1, 8}, seed), session_values::filled({1, 2, 1, 8}, seed + 1),
        Tensor::vector<int64_t>(std::array{index}), Tensor::vector<int64_t>(std::array{index + 1}), Value()};
  };
  std::vector<Value> expected;  // of caches that are inputs and outputs
  Value cache = empty;
  prepare(model);
  if (counts_ == nullptr) return;
  for (int64_t index = 0; index < kSteps; ++index) {
    std::vector<Value> inputs = step(index);
    inputs.back() = cache;
    run(inputs);
    expected.push_back(outputs_[0]);
    cache = outputs_[1];
  }
  RunOptions options;
  options.states = {{"past", "present", 2}};
  prepare(model, options);
  auto& states = dynamic_cast<SessionStates&>(*session_);
  ASSERT_TRUE(states.set_state(0, empty).ok());
  for (int64_t index = 0; index < kSteps; ++index) {
    const ptx::StandInCounts counts = run(step(index));
    EXPECT_TRUE(same(outputs_[0], expected[static_cast<size_t>(index)])) << index;
    if (index < 4) continue;
    EXPECT_EQ(counts.graph_launches, 1);
    EXPECT_EQ(counts.launches, 0);
    EXPECT_LE(counts.bytes_to_device, 2 * 64 + 2 * 8);
    EXPECT_LE(counts.bytes_to_host, 64 + 2 * 8);
  }
  EXPECT_TRUE(same(*states.state(0), cache));
}

// The host picks boxes from what the device computed: anew in each run, which is not recorded.
TEST_F(Counts, OfBoxesThatTheHostPicks) {
  const auto model = model_text::model_of(
      model_text::node("Neg", {"scores"}, {"negated"}) +
      model_text::node("NonMaxSuppression", {"boxes", "negated", "most"}, {"y"}) + layer_model::numbers("most", {3}) +
      model_text::value("input", "boxes", 1, model_text::dims_text({1, 9, 4})) +
      model_text::value("input", "scores", 1, model_text::dims_text({1, 1, 9})) + model_text::value("output", "y", 7));
  prepare(model);
  if (counts_ == nullptr) return;
  const auto host = make_cpu_executor()->prepare(model, {}).take();
  std::vector<Value> last;
  for (uint32_t seed = 1; seed <= kRuns; ++seed) {
    const std::vector<Value> inputs{session_values::filled({1, 9, 4}, seed),
                                    session_values::filled({1, 1, 9}, seed + 100)};
    EXPECT_EQ(run(inputs).graph_launches, 0);
    NullObserver nobody;
    const auto expected = host->run(inputs, nobody).take();
    EXPECT_TRUE(same(outputs_[0], expected[0])) << seed;
    EXPECT_TRUE(last.empty() || !same(outputs_[0], last[0])) << "or a stale result would pass";
    last = outputs_;
  }
}

// A row of the table in runtime/README.md: what a run launches and moves, the bytes that it cannot do without, and how
// long both would take at the benchmark's sizes.
double bytes_over_least(const char* name, const ptx::StandInCounts& counts, const layer_model::LayerSizes& sizes) {
  const int64_t bytes = counts.kernel_bytes + counts.library_bytes;
  const double ratio = static_cast<double>(bytes) / static_cast<double>(sizes.least_bytes());
  std::printf("| %s | %lld | %lld | %lld | %lld | %lld | %.2f |", name,
              static_cast<long long>(counts.replayed_launches), static_cast<long long>(counts.launches),
              static_cast<long long>(counts.waits), static_cast<long long>(bytes / 1024),
              static_cast<long long>(sizes.least_bytes() / 1024), ratio);
  const layer_model::Card card;
  for (const double rate : {card.float32, card.tf32}) {
    const double products = sizes.products_ms(static_cast<double>(counts.library_bytes), rate);
    std::printf(" %.2f of %.2f |", products, products + sizes.bytes_ms(static_cast<double>(counts.kernel_bytes)));
  }
  std::printf("\n");
  return ratio;
}

TEST_F(Counts, BytesOfALayer) {
  const layer_model::LayerSizes sizes;
  prepare(model_text::model_of(layer_model::LayerText(sizes).text()));
  if (counts_ == nullptr) return;
  ptx::StandInCounts last;
  for (int i = 0; i < kRuns; ++i) last = run({session_values::filled({sizes.batch, sizes.sequence, sizes.width}, 1)});
  const double ratio = bytes_over_least("Llama layer", last, sizes);
  EXPECT_GT(ratio, 1.0) << "or bytes are left out";
  EXPECT_LE(ratio, kMostLayerBytes);
  EXPECT_EQ(last.graph_launches, 1);
}

// A step appends to its caches, whatever their length: it reads them once and copies nothing of them.
TEST_F(Counts, BytesOfAStep) {
  for (const int64_t past : {16, 500}) {
    layer_model::LayerSizes sizes{1, 1, past, 128, 4, 344};
    RunOptions options;
    options.states = {{"past_k", "present_k", 2}, {"past_v", "present_v", 2}};
    prepare(model_text::model_of(layer_model::LayerText(sizes).text()), options);
    if (counts_ == nullptr) return;
    auto& states = dynamic_cast<SessionStates&>(*session_);
    for (size_t state = 0; state < 2; ++state)
      ASSERT_TRUE(states.set_state(state, session_values::filled({1, sizes.heads, sizes.past, sizes.head()}, 2)).ok());
    ptx::StandInCounts last;
    for (int i = 0; i < kRuns; ++i) last = run({session_values::filled({1, 1, sizes.width}, 1), Value(), Value()});
    sizes.past += kRuns - 1;
    const std::string name = "a step of it with caches of " + std::to_string(sizes.past) + " tokens";
    const double ratio = bytes_over_least(name.c_str(), last, sizes);
    EXPECT_GT(ratio, 1.0) << "or bytes are left out";
    EXPECT_LE(ratio, kMostStepBytes);
    EXPECT_LE(last.launches, kMostStepLaunches);
  }
}

TEST(Sorting, HasTheHostsBits) {
  const auto cuda = make_cuda_executor();
  if (!cuda.ok()) GTEST_SKIP() << cuda.error().message;
  for (const auto& each : sorting_cases::sorting_cases(6000, 20)) sorting_cases::expect_same_as_host(**cuda, each);
}

}  // namespace
}  // namespace parallax
