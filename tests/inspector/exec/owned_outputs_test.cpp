// SPDX-License-Identifier: Apache-2.0
// Outputs that share memory are copied, those that own it are left where they are.
#include "inspector/exec/owned_outputs.h"

#include <array>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace parallax {
namespace {

Tensor numbers(float first) { return Tensor::vector<float>(std::array{first, first + 1, first + 2}); }
const std::byte* address(const Value& value) { return value.tensor().view().data; }
std::vector<float> elements(const Value& value) {
  const auto all = value.tensor().as<float>();
  return {all.begin(), all.end()};
}

TEST(OwnedOutputs, LeavesATensorOfItsOwn) {
  std::vector<Value> outputs{numbers(1)};
  const std::byte* const before = address(outputs[0]);
  ASSERT_TRUE(separate_outputs(outputs).ok());
  EXPECT_EQ(address(outputs[0]), before);
  EXPECT_TRUE(owns_memory(outputs[0]));
}

TEST(OwnedOutputs, CopiesWhatAnInputOrAWeightOwns) {
  const Tensor weight = numbers(5);
  std::vector<Value> outputs{weight, weight.reshaped(Shape{3, 1})};
  EXPECT_FALSE(owns_memory(outputs[0]));
  ASSERT_TRUE(separate_outputs(outputs).ok());
  EXPECT_EQ((std::set{weight.view().data, address(outputs[0]), address(outputs[1])}).size(), 3U);
  EXPECT_EQ(elements(outputs[0]), (std::vector<float>{5, 6, 7}));
  EXPECT_EQ(outputs[1].tensor().shape(), (Shape{3, 1}));
}

TEST(OwnedOutputs, LeavesTheLastOfRepeatedOutputs) {
  std::vector<Value> outputs(3, Value(numbers(1)));
  const std::byte* const before = address(outputs[0]);
  ASSERT_TRUE(separate_outputs(outputs).ok());
  EXPECT_NE(address(outputs[0]), before);
  EXPECT_NE(address(outputs[1]), address(outputs[0]));
  EXPECT_EQ(address(outputs[2]), before);
}

TEST(OwnedOutputs, CopiesPartsOfOneBuffer) {
  const Tensor whole = numbers(1);
  const auto part = [&](size_t index) {
    return Tensor::wrap(DType::float32, Shape{1}, {whole.storage(), whole.view().data + index * sizeof(float)});
  };
  std::vector<Value> outputs{part(0), part(2)};
  ASSERT_TRUE(separate_outputs(outputs).ok());
  EXPECT_TRUE(owns_memory(outputs[0]) && owns_memory(outputs[1]));
  EXPECT_EQ(elements(outputs[1]), std::vector<float>{3});
}

TEST(OwnedOutputs, ReachesIntoSequencesOptionalsAndMaps) {
  const Tensor shared = numbers(1);
  const TypeInfo type = TypeInfo::tensor(DType::float32);
  const Tensor keys = Tensor::vector<int64_t>(std::array<int64_t, 1>{7});
  std::vector<Value> outputs{SequenceValue{type, {shared, shared}}, OptionalValue{type, {shared}},
                             MapValue{keys, type, {shared}}, OptionalValue{type, {}}, Value()};
  ASSERT_TRUE(separate_outputs(outputs).ok());
  for (const Value& output : outputs) EXPECT_TRUE(owns_memory(output));
  EXPECT_NE(address(outputs[0].sequence().items[0]), address(outputs[0].sequence().items[1]));
  EXPECT_EQ(elements(outputs[2].map().values[0]), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(outputs[2].map().keys.as<int64_t>()[0], 7);
  EXPECT_EQ(shared.storage().use_count(), 1);
}

TEST(OwnedOutputs, CopiesStrings) {
  const Tensor texts = Tensor::scalar<std::string>("long enough to be on the heap");
  std::vector<Value> outputs{texts};
  ASSERT_TRUE(separate_outputs(outputs).ok());
  EXPECT_NE(address(outputs[0]), texts.view().data);
  EXPECT_EQ(outputs[0].tensor().as<std::string>()[0], texts.as<std::string>()[0]);
}

}  // namespace
}  // namespace parallax
