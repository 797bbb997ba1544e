// SPDX-License-Identifier: Apache-2.0
// Conversions between storage and arithmetic types, against the exact ones of inspector/tensor.
#include "runtime/device/cpu/blocks.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "inspector/tensor/float_formats.h"
#include "runtime/device/cpu/multiversion.h"

namespace parallax::runtime {
namespace {

constexpr VectorLevel kLevels[] = {VectorLevel::baseline, VectorLevel::avx2, VectorLevel::avx512};

class BlocksTest : public testing::TestWithParam<VectorLevel> {
 protected:
  BlocksTest() : before_(vector_level()) { set_vector_level_for_tests(GetParam()); }
  ~BlocksTest() override { set_vector_level_for_tests(before_); }

 private:
  VectorLevel before_;
};

std::vector<uint16_t> all_half_precision() {
  std::vector<uint16_t> float16s(65536);
  for (size_t i = 0; i < float16s.size(); ++i) float16s[i] = static_cast<uint16_t>(i);
  return float16s;
}

TEST_P(BlocksTest, DecodesEveryHalf) {
  const std::vector<uint16_t> float16s = all_half_precision();
  std::vector<float> values(float16s.size());
  load_block<float>(DType::float16, reinterpret_cast<const std::byte*>(float16s.data()), 0, 1, 65536, values.data());
  for (size_t i = 0; i < float16s.size(); ++i) {
    const float expected = float16_to_float(float16s[i]);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(values[i])) << i;
    } else {
      ASSERT_EQ(std::bit_cast<uint32_t>(values[i]), std::bit_cast<uint32_t>(expected)) << i;
    }
  }
}

// Every float16, the middle to the next one, and the numbers next to the middle: all ties and both directions.
TEST_P(BlocksTest, RoundsToHalfPrecisionAsTheExactConversion) {
  std::vector<float> values;
  for (uint16_t half : all_half_precision()) {
    const float value = float16_to_float(half);
    if (!std::isfinite(value)) continue;
    const float next = float16_to_float(static_cast<uint16_t>(half + 1));
    const float middle = std::isfinite(next) ? value + (next - value) / 2 : value * 1.0002F;
    for (float each : {value, middle, std::nextafter(middle, 0.0F), std::nextafter(middle, 1e9F)})
      values.push_back(each);
  }
  for (float each : {65519.9F, 65520.0F, 65536.0F, 1e30F, -1e30F, INFINITY, -INFINITY, 1e-30F, -0.0F})
    values.push_back(each);
  std::vector<uint16_t> float16s(values.size());
  std::vector<uint16_t> bfloats(values.size());
  const auto count = static_cast<int64_t>(values.size());
  store_block<float>(DType::float16, reinterpret_cast<std::byte*>(float16s.data()), 0, count, values.data());
  store_block<float>(DType::bfloat16, reinterpret_cast<std::byte*>(bfloats.data()), 0, count, values.data());
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(float16s[i], float16_from_float(values[i])) << values[i];
    ASSERT_EQ(bfloats[i], bfloat16_from_float(values[i])) << values[i];
  }
}

TEST_P(BlocksTest, NaNHasOneHalfForEachSign) {
  const std::vector<float> values(19, std::bit_cast<float>(0xFFC12345U));
  std::vector<uint16_t> float16s(values.size());
  store_block<float>(DType::float16, reinterpret_cast<std::byte*>(float16s.data()), 0, 19, values.data());
  EXPECT_EQ(float16s, std::vector<uint16_t>(19, 0xFE00));
  const std::vector<float> positive(19, std::bit_cast<float>(0x7F800001U));
  store_block<float>(DType::float16, reinterpret_cast<std::byte*>(float16s.data()), 0, 19, positive.data());
  EXPECT_EQ(float16s, std::vector<uint16_t>(19, 0x7E00));
}

TEST_P(BlocksTest, KeepsNaN) {
  const float value = std::nanf("");
  uint16_t half = 0;
  store_block<float>(DType::float16, reinterpret_cast<std::byte*>(&half), 0, 1, &value);
  EXPECT_TRUE(std::isnan(float16_to_float(half)));
  store_block<float>(DType::bfloat16, reinterpret_cast<std::byte*>(&half), 0, 1, &value);
  EXPECT_TRUE(std::isnan(bfloat16_to_float(half)));
}

TEST_P(BlocksTest, WrapsIntegersAndTruncatesFloats) {
  const int64_t wide[] = {300, -1, 127, -129};
  int8_t narrow[4] = {};
  store_block<int64_t>(DType::int8, reinterpret_cast<std::byte*>(narrow), 0, 4, wide);
  EXPECT_EQ(narrow[0], 44);
  EXPECT_EQ(narrow[1], -1);
  EXPECT_EQ(narrow[2], 127);
  EXPECT_EQ(narrow[3], 127);
  const float floats[] = {-1.9F, 2.9F, NAN, 1e30F};
  int64_t integers[4] = {};
  store_block<float>(DType::int64, reinterpret_cast<std::byte*>(integers), 0, 4, floats);
  EXPECT_EQ(integers[0], -1);
  EXPECT_EQ(integers[1], 2);
  EXPECT_EQ(integers[2], INT64_MIN);
  EXPECT_EQ(integers[3], INT64_MIN);
}

TEST_P(BlocksTest, ReadsPackedIntegers) {
  const uint8_t packed[] = {0x8F, 0x07};  // int4: -1, -8, 7, 0
  int64_t values[4] = {};
  load_block<int64_t>(DType::int4, reinterpret_cast<const std::byte*>(packed), 0, 1, 4, values);
  EXPECT_EQ(values[0], -1);
  EXPECT_EQ(values[1], -8);
  EXPECT_EQ(values[2], 7);
  EXPECT_EQ(values[3], 0);
}

INSTANTIATE_TEST_SUITE_P(EachWidth, BlocksTest, testing::ValuesIn(kLevels));

}  // namespace
}  // namespace parallax::runtime
