// SPDX-License-Identifier: Apache-2.0
// float32 to float16 and bfloat16: every kind of result, against the conversions that take one number.
#include "inspector/tensor/narrow_floats.h"

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace parallax {
namespace {

TEST(NarrowFloats, EqualsTheConversionOfOneNumber) {
  std::vector<float> values;
  for (uint64_t bits = 0; bits <= 0xFFFFFFFFU; bits += 65521)
    values.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  for (const float edge : {0.0F, 65504.0F, 65519.99F, 65520.0F, 6.1035156e-5F, 6.1e-5F, 5.9604645e-8F, 2.9802322e-8F,
                           2.9802326e-8F, 2049.0F, 2051.0F, std::numeric_limits<float>::infinity()}) {
    values.push_back(edge);
    values.push_back(-edge);
  }
  std::vector<uint16_t> half(values.size()), brain(values.size());
  narrow_floats(values, DType::float16, half);
  narrow_floats(values, DType::bfloat16, brain);
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) {
      EXPECT_TRUE(std::isnan(float16_to_float(half[i])) && std::isnan(bfloat16_to_float(brain[i])));
      continue;
    }
    ASSERT_EQ(half[i], float16_from_float(values[i])) << values[i];
    ASSERT_EQ(brain[i], bfloat16_from_float(values[i])) << values[i];
  }
}

TEST(NarrowFloats, RangesAreOfFiniteElements) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> values = {0, -7, 3, infinity, std::nanf(""), 1e-30F};
  const FiniteRange range = finite_range(values);
  EXPECT_EQ(range.largest, -7);
  EXPECT_EQ(range.smallest, 1e-30F);
  EXPECT_EQ(finite_range(std::vector<float>{0, infinity}).smallest, 0);
  EXPECT_EQ(overflow_threshold(DType::float16), 65520);
}

}  // namespace
}  // namespace parallax
