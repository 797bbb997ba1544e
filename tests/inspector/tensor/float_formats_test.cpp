// SPDX-License-Identifier: Apache-2.0
// The narrow floats over all their patterns: decoding against the specification's numbers, rounding against a search.
#include "inspector/tensor/float_formats.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace parallax {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Pattern {
  double value;
  uint32_t bits;
};

// One format as functions over patterns, so that every test below runs on all formats.
struct Narrow {
  DType dtype;
  uint32_t patterns;
  double (*decode)(DType, uint32_t);
  uint32_t (*encode)(DType, double, bool saturate);
  bool has_infinity;
};

double decode_small(DType dtype, uint32_t bits) { return small_float_to_double(dtype, static_cast<uint8_t>(bits)); }
uint32_t encode_small(DType dtype, double value, bool saturate) {
  return small_float_from_double(dtype, value, saturate);
}
double decode_half(DType dtype, uint32_t bits) {
  const auto pattern = static_cast<uint16_t>(bits);
  return dtype == DType::float16 ? float16_to_double(pattern) : static_cast<double>(bfloat16_to_float(pattern));
}
uint32_t encode_half(DType dtype, double value, bool /*saturate*/) {
  return dtype == DType::float16 ? float16_from_double(value) : bfloat16_from_double(value);
}

const Narrow kFormats[] = {
    {DType::float16, 65536, decode_half, encode_half, true},
    {DType::bfloat16, 65536, decode_half, encode_half, true},
    {DType::float8e4m3fn, 256, decode_small, encode_small, false},
    {DType::float8e4m3fnuz, 256, decode_small, encode_small, false},
    {DType::float8e5m2, 256, decode_small, encode_small, true},
    {DType::float8e5m2fnuz, 256, decode_small, encode_small, false},
    {DType::float4e2m1, 16, decode_small, encode_small, false},
};

class NarrowFloat : public testing::TestWithParam<Narrow> {
 protected:
  // Every finite, non-negative number of the format, ascending.
  std::vector<Pattern> ladder() const {
    std::vector<Pattern> steps;
    for (uint32_t bits = 0; bits < GetParam().patterns; ++bits) {
      const double value = GetParam().decode(GetParam().dtype, bits);
      if (std::isfinite(value) && !std::signbit(value)) steps.push_back({value, bits});
    }
    std::sort(steps.begin(), steps.end(), [](const Pattern& a, const Pattern& b) { return a.value < b.value; });
    return steps;
  }
  uint32_t encode(double value, bool saturate = true) const {
    return GetParam().encode(GetParam().dtype, value, saturate);
  }
};

TEST_P(NarrowFloat, EveryPatternSurvivesARoundTrip) {
  for (uint32_t bits = 0; bits < GetParam().patterns; ++bits) {
    const double value = GetParam().decode(GetParam().dtype, bits);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(GetParam().decode(GetParam().dtype, encode(value)))) << bits;
    } else if (std::isfinite(value)) {
      ASSERT_EQ(encode(value), bits) << value;
    }
  }
}

TEST_P(NarrowFloat, RoundsToTheNearestAndTiesToEven) {
  const std::vector<Pattern> steps = ladder();
  for (size_t i = 0; i + 1 < steps.size(); ++i) {
    const double low = steps[i].value;
    const double high = steps[i + 1].value;
    const double middle = low + (high - low) / 2;
    const uint32_t even = steps[i].bits % 2 == 0 ? steps[i].bits : steps[i + 1].bits;
    ASSERT_EQ(encode(middle), even) << "between " << low << " and " << high;
    ASSERT_EQ(encode(std::nextafter(middle, 0)), steps[i].bits) << middle;
    ASSERT_EQ(encode(std::nextafter(middle, kInfinity)), steps[i + 1].bits) << middle;
  }
}

TEST_P(NarrowFloat, NegativeNumbersMirrorPositiveOnes) {
  std::mt19937_64 random(5);
  const double top = float_limits(GetParam().dtype).max_finite;
  std::uniform_real_distribution<double> numbers(0, top);
  for (int round = 0; round < 1000; ++round) {
    const double value = numbers(random);
    const double positive = GetParam().decode(GetParam().dtype, encode(value));
    const double negative = GetParam().decode(GetParam().dtype, encode(-value));
    ASSERT_EQ(positive, -negative) << value;
  }
}

TEST_P(NarrowFloat, LimitsAreThoseOfThePatterns) {
  const std::vector<Pattern> steps = ladder();
  const FloatLimits limits = float_limits(GetParam().dtype);
  EXPECT_EQ(steps.back().value, limits.max_finite);
  const auto one = std::find_if(steps.begin(), steps.end(), [](const Pattern& step) { return step.value == 1.0; });
  ASSERT_NE(one, steps.end());
  EXPECT_EQ((one + 1)->value - 1.0, limits.epsilon);
}

TEST_P(NarrowFloat, OutOfRangeWithoutSaturation) {
  const uint32_t bits = encode(kInfinity, false);
  const double value = GetParam().decode(GetParam().dtype, bits);
  if (GetParam().has_infinity) {
    EXPECT_EQ(value, kInfinity);
    EXPECT_EQ(GetParam().decode(GetParam().dtype, encode(-kInfinity, false)), -kInfinity);
  } else if (GetParam().dtype == DType::float4e2m1) {
    EXPECT_EQ(value, 6.0);
  } else {
    EXPECT_TRUE(std::isnan(value));
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, NarrowFloat, testing::ValuesIn(kFormats),
                         [](const auto& format) { return std::string(name_of(format.param.dtype)); });

// The "Float stored in 8 bits" page of the ONNX documentation: largest, smallest subnormal, special patterns.
TEST(FloatFormats, NumbersOfTheSpecification) {
  EXPECT_EQ(small_float_to_double(DType::float8e4m3fn, 0x7E), 448);
  EXPECT_EQ(small_float_to_double(DType::float8e4m3fn, 0x01), 0x1p-9);
  EXPECT_TRUE(std::isnan(small_float_to_double(DType::float8e4m3fn, 0x7F)));
  EXPECT_TRUE(std::isnan(small_float_to_double(DType::float8e4m3fn, 0xFF)));
  EXPECT_EQ(small_float_to_double(DType::float8e4m3fnuz, 0x7F), 240);
  EXPECT_TRUE(std::isnan(small_float_to_double(DType::float8e4m3fnuz, 0x80)));
  EXPECT_EQ(small_float_to_double(DType::float8e5m2, 0x7B), 57344);
  EXPECT_EQ(small_float_to_double(DType::float8e5m2, 0xFC), -kInfinity);
  EXPECT_EQ(small_float_to_double(DType::float8e5m2fnuz, 0x7F), 57344);
  EXPECT_TRUE(std::isnan(small_float_to_double(DType::float8e5m2fnuz, 0x80)));
  EXPECT_EQ(small_float_to_double(DType::float4e2m1, 0xF), -6);
  EXPECT_EQ(float16_to_double(0x7BFF), 65504);
  EXPECT_EQ(float16_to_double(0x0001), 0x1p-24);
}

double cast(DType dtype, double value, bool saturate) {
  return small_float_to_double(dtype, small_float_from_double(dtype, value, saturate));
}

// The tables "saturate" of Cast-19: 0, -0, NaN, inf, [max, ...).
TEST(FloatFormats, SaturationOfTheCastTables) {
  EXPECT_EQ(cast(DType::float8e4m3fn, kInfinity, true), 448);
  EXPECT_TRUE(std::isnan(cast(DType::float8e4m3fn, kInfinity, false)));
  EXPECT_EQ(cast(DType::float8e4m3fn, 1e6, true), 448);
  EXPECT_TRUE(std::isnan(cast(DType::float8e4m3fn, 1e6, false)));
  EXPECT_EQ(cast(DType::float8e4m3fn, -1e6, true), -448);
  EXPECT_EQ(cast(DType::float8e4m3fnuz, kInfinity, true), 240);
  EXPECT_TRUE(std::isnan(cast(DType::float8e4m3fnuz, -kInfinity, false)));
  EXPECT_EQ(cast(DType::float8e5m2, kInfinity, true), 57344);
  EXPECT_EQ(cast(DType::float8e5m2, kInfinity, false), kInfinity);
  EXPECT_EQ(cast(DType::float8e5m2, -1e6, false), -kInfinity);
  EXPECT_EQ(cast(DType::float8e5m2fnuz, 1e6, true), 57344);
  EXPECT_TRUE(std::isnan(cast(DType::float8e5m2fnuz, 1e6, false)));
  EXPECT_EQ(cast(DType::float4e2m1, 100, false), 6);
  EXPECT_TRUE(std::signbit(cast(DType::float8e4m3fn, -0.0, true)));
  EXPECT_FALSE(std::signbit(cast(DType::float8e4m3fnuz, -0.0, true)));
  EXPECT_EQ(float16_from_double(65519.99), 0x7BFF);
  EXPECT_EQ(float16_from_double(65520), 0x7C00);
}

TEST(FloatFormats, E8M0HoldsPowersOfTwo) {
  for (uint32_t bits = 0; bits < 255; ++bits) {
    const double value = std::ldexp(1.0, static_cast<int>(bits) - 127);
    EXPECT_EQ(small_float_to_double(DType::float8e8m0, static_cast<uint8_t>(bits)), value);
    for (const E8M0Rounding rounding : {E8M0Rounding::up, E8M0Rounding::down, E8M0Rounding::nearest}) {
      EXPECT_EQ(small_float_from_double(DType::float8e8m0, value, true, rounding), bits);
    }
  }
  EXPECT_EQ(small_float_from_double(DType::float8e8m0, 5.0, true, E8M0Rounding::up), 127 + 3);
  EXPECT_EQ(small_float_from_double(DType::float8e8m0, 5.0, true, E8M0Rounding::down), 127 + 2);
  EXPECT_EQ(small_float_from_double(DType::float8e8m0, 5.0, true, E8M0Rounding::nearest), 127 + 2);
  EXPECT_EQ(small_float_from_double(DType::float8e8m0, 7.0, true, E8M0Rounding::nearest), 127 + 3);
  EXPECT_EQ(small_float_from_double(DType::float8e8m0, kNaN), 255);
  EXPECT_EQ(small_float_from_double(DType::float8e8m0, kInfinity), 254);
  EXPECT_EQ(small_float_from_double(DType::float8e8m0, kInfinity, false), 255);
}

TEST(FloatFormats, FloatAndDoublePathsAgree) {
  std::mt19937 random(9);
  for (int round = 0; round < 100'000; ++round) {
    const auto value = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (std::isnan(value)) continue;
    ASSERT_EQ(bfloat16_from_float(value), bfloat16_from_double(value)) << value;
    ASSERT_EQ(float16_from_float(value), float16_from_double(value)) << value;
  }
}

// A double just above a tie of half floats must not be rounded to float first, which would make it a tie.
TEST(FloatFormats, RoundsOnceFromDouble) {
  const double tie = 1.0 + 0x1p-11;
  EXPECT_EQ(float16_from_double(tie), 0x3C00);
  EXPECT_EQ(float16_from_double(tie + 0x1p-40), 0x3C01);
  EXPECT_EQ(round_to_dtype(DType::float16, tie + 0x1p-40), 1.0 + 0x1p-10);
  EXPECT_EQ(round_to_dtype(DType::float64, tie + 0x1p-40), tie + 0x1p-40);
  EXPECT_EQ(round_to_dtype(DType::float32, 0.1), static_cast<double>(0.1F));
}

}  // namespace
}  // namespace parallax
