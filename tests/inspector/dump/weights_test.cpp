// SPDX-License-Identifier: Apache-2.0
// Weights are captured with every call, and stored once.
#include <gtest/gtest.h>

#include "tests/inspector/dump/support.h"

namespace parallax::test {
namespace {

std::shared_ptr<const Model> model_with(const Tensor& weight) {
  auto model = std::make_shared<Model>();
  ValueDef& value = model->graph.values.emplace_back();
  value.name = "w";
  value.type = type_of(Value(weight));
  StoredTensor stored;
  stored.name = "w";
  stored.tensor = weight;
  model->graph.initializers.push_back(std::move(stored));
  model->graph.initializer_values = {0};
  return model;
}

constexpr int64_t kCalls = 3;

// Two runs of two models whose weights differ, on several inputs each.
std::shared_ptr<const DumpReader> captured(const std::string& path, CaptureLevel level,
                                           std::span<const Tensor> weights) {
  DumpWriterOptions options;
  options.level = level;
  auto writer = DumpWriter::create(path, options).take();
  std::deque<Producer> producers;
  for (const Tensor& weight : weights) {
    Producer& producer = producers.emplace_back(*writer);
    producer.value_info("w").role = ValueInfo::Role::initializer;
    EXPECT_TRUE(writer->begin_run({"reference", "a CPU", {}, model_with(weight), ""}).ok());
    for (int64_t step = 0; step < kCalls; ++step) {
      EXPECT_TRUE(writer->begin_call({"", step}, {}).ok());
      EXPECT_TRUE(producer.show("w", weight).ok());
      EXPECT_TRUE(producer.show("same", weight, "w").ok());
      EXPECT_TRUE(writer->end_call({"", step}).ok());
    }
    EXPECT_TRUE(writer->end_run(true).ok());
  }
  EXPECT_TRUE(writer->finish().ok());
  return open_dump(path);
}

TEST(Weights, EveryCallHasThemAndOneHoldsTheElements) {
  const TemporaryFolder folder;
  const std::vector<Tensor> weights{random_tensor(DType::float32, {20, 3}, 1),
                                    random_tensor(DType::float32, {20, 3}, 2)};
  for (const CaptureLevel level : {CaptureLevel::stats, CaptureLevel::sample, CaptureLevel::all}) {
    const auto reader = captured(folder / "weights.plx", level, weights);
    ASSERT_EQ(reader->entries().size(), 2 * 2 * static_cast<size_t>(kCalls));
    for (size_t index = 0; index < reader->entries().size(); ++index) {
      const DumpEntry& entry = reader->entries()[index];
      const size_t run = index / (2 * kCalls);
      EXPECT_EQ(entry.path, index % 2 == 0 ? "w" : "same");
      EXPECT_EQ(entry.level, level);
      EXPECT_EQ(entry.call, static_cast<int32_t>(index / 2));
      EXPECT_EQ(entry.execution, static_cast<int32_t>(run));
      EXPECT_EQ(entry.role == ValueInfo::Role::initializer, index % 2 == 0);
      ASSERT_TRUE(entry.statistics.has_value());
      EXPECT_TRUE(same_statistics(*entry.statistics, compute_statistics(weights[run]))) << index;
      if (level != CaptureLevel::all) continue;
      EXPECT_EQ(entry.alias_of, index % (2 * kCalls) == 0 ? -1 : static_cast<int32_t>(run * 2 * kCalls)) << index;
      const auto loaded = reader->load(static_cast<int32_t>(index));
      ASSERT_OK(loaded);
      EXPECT_TRUE(same_bits(loaded->tensor(), weights[run])) << index;
    }
  }
}

// Sessions of two graphs number their values each for itself.
TEST(Weights, AnotherGraphsWeightIsItsOwn) {
  const TemporaryFolder folder;
  const Tensor weight = random_tensor(DType::float32, {20, 3}, 1);
  auto writer = DumpWriter::create(folder / "graphs.plx", {}).take();
  Producer encoder(*writer), decoder(*writer);
  encoder.value_info("w").role = ValueInfo::Role::initializer;
  decoder.value_info("tied").role = ValueInfo::Role::initializer;
  ASSERT_OK(writer->begin_run({"reference", "a CPU", {}, model_with(weight), ""}));
  for (int64_t step = 0; step < 2; ++step) {
    ASSERT_OK(writer->begin_call({"", step}, {}));
    ASSERT_OK(encoder.show("w", weight));
    ASSERT_OK(decoder.show("tied", weight));
    ASSERT_OK(writer->end_call({"", step}));
  }
  ASSERT_OK(writer->end_run(true));
  ASSERT_OK(writer->finish());
  const auto reader = open_dump(folder / "graphs.plx");
  std::vector<std::string> paths;
  for (const DumpEntry& entry : reader->entries()) paths.push_back(entry.path);
  EXPECT_EQ(paths, (std::vector<std::string>{"w", "tied", "w", "tied"}));
}

}  // namespace
}  // namespace parallax::test
