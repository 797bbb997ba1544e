// Narrow floats: every pattern decodes and encodes back; ties, limits and saturation as the Cast operator's tables say.
#include "inspector/tensor/float_formats.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace parallax {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::numeric_limits<double>::quiet_NaN();

class SmallFloats : public testing::TestWithParam<DType> {};

TEST_P(SmallFloats, EveryPatternSurvivesARoundTrip) {
  const uint32_t patterns = GetParam() == DType::float4e2m1 ? 16 : 256;
  for (uint32_t bits = 0; bits < patterns; ++bits) {
    const double value = small_float_to_double(GetParam(), static_cast<uint8_t>(bits));
    const uint8_t again = small_float_from_double(GetParam(), value, false);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(small_float_to_double(GetParam(), again))) << bits;
    } else {
      ASSERT_EQ(again, bits) << value;
    }
  }
}

// Between any two neighbours: the midpoint goes to the even pattern, anything off it to the nearer one.
TEST_P(SmallFloats, RoundsToNearestEven) {
  if (GetParam() == DType::float8e8m0) return;  // its rounding has a test of its own
  const uint32_t positive = GetParam() == DType::float4e2m1 ? 8 : 128;
  for (uint32_t bits = 0; bits + 1 < positive; ++bits) {
    const double low = small_float_to_double(GetParam(), static_cast<uint8_t>(bits));
    const double high = small_float_to_double(GetParam(), static_cast<uint8_t>(bits + 1));
    if (!std::isfinite(low) || !std::isfinite(high)) continue;
    const double middle = (low + high) / 2;
    const uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    ASSERT_EQ(small_float_from_double(GetParam(), middle), even) << low << " " << high;
    ASSERT_EQ(small_float_from_double(GetParam(), std::nextafter(middle, low)), bits);
    ASSERT_EQ(small_float_from_double(GetParam(), std::nextafter(middle, high)), bits + 1);
  }
}

INSTANTIATE_TEST_SUITE_P(All, SmallFloats,
                         testing::Values(DType::float8e4m3fn, DType::float8e4m3fnuz, DType::float8e5m2,
                                         DType::float8e5m2fnuz, DType::float8e8m0, DType::float4e2m1),
                         [](const auto& test) { return std::string(name_of(test.param)); });

double cast(DType dtype, double value, bool saturate) {
  return small_float_to_double(dtype, small_float_from_double(dtype, value, saturate));
}

// The tables "saturate" of Cast-19: 0, -0, NaN, inf, [max, ...).
TEST(SmallFloatSaturation, FollowsTheCastTables) {
  EXPECT_EQ(cast(DType::float8e4m3fn, kInf, true), 448);
  EXPECT_TRUE(std::isnan(cast(DType::float8e4m3fn, kInf, false)));
  EXPECT_EQ(cast(DType::float8e4m3fn, 1e6, true), 448);
  EXPECT_TRUE(std::isnan(cast(DType::float8e4m3fn, 1e6, false)));
  EXPECT_EQ(cast(DType::float8e4m3fn, -1e6, true), -448);
  EXPECT_EQ(cast(DType::float8e4m3fnuz, kInf, true), 240);
  EXPECT_TRUE(std::isnan(cast(DType::float8e4m3fnuz, -kInf, false)));
  EXPECT_EQ(cast(DType::float8e5m2, kInf, true), 57344);
  EXPECT_EQ(cast(DType::float8e5m2, kInf, false), kInf);
  EXPECT_EQ(cast(DType::float8e5m2, -1e6, false), -kInf);
  EXPECT_EQ(cast(DType::float8e5m2fnuz, 1e6, true), 57344);
  EXPECT_TRUE(std::isnan(cast(DType::float8e5m2fnuz, 1e6, false)));
  EXPECT_EQ(cast(DType::float4e2m1, 100, false), 6);
  EXPECT_TRUE(std::signbit(cast(DType::float8e4m3fn, -0.0, true)));
  EXPECT_FALSE(std::signbit(cast(DType::float8e4m3fnuz, -0.0, true)));
}

TEST(E8M0, RoundsByMode) {
  const auto code = [](double value, E8M0Rounding rounding, bool saturate = true) {
    return small_float_from_double(DType::float8e8m0, value, saturate, rounding);
  };
  EXPECT_EQ(code(1.0, E8M0Rounding::up), 127);
  EXPECT_EQ(code(1.1, E8M0Rounding::up), 128);
  EXPECT_EQ(code(1.9, E8M0Rounding::down), 127);
  EXPECT_EQ(code(1.4, E8M0Rounding::nearest), 127);
  EXPECT_EQ(code(1.6, E8M0Rounding::nearest), 128);
  EXPECT_EQ(code(kInf, E8M0Rounding::up), 254);
  EXPECT_EQ(code(kInf, E8M0Rounding::up, false), 255);
  EXPECT_EQ(code(kNaN, E8M0Rounding::up), 255);
}

TEST(Float16, EveryPatternSurvivesARoundTrip) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto pattern = static_cast<uint16_t>(bits);
    const float value = float16_to_float(pattern);
    const float bvalue = bfloat16_to_float(pattern);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(float16_to_float(float16_from_float(value))));
    } else {
      ASSERT_EQ(float16_from_float(value), pattern);
    }
    if (std::isnan(bvalue)) {
      ASSERT_TRUE(std::isnan(bfloat16_to_float(bfloat16_from_float(bvalue))));
      ASSERT_TRUE(std::isnan(bfloat16_to_float(bfloat16_from_double(static_cast<double>(bvalue)))));
    } else {
      ASSERT_EQ(bfloat16_from_float(bvalue), pattern);
      ASSERT_EQ(bfloat16_from_double(static_cast<double>(bvalue)), pattern);
    }
  }
}

TEST(Float16, LimitsAndTies) {
  EXPECT_EQ(float16_to_double(float16_from_double(65519.9)), 65504);
  EXPECT_EQ(float16_to_double(float16_from_double(65520)), kInf);
  EXPECT_EQ(float16_from_double(1 + 0x1p-11), float16_from_double(1.0));
  EXPECT_EQ(float16_from_double(1 + 3 * 0x1p-11), float16_from_double(1 + 0x1p-9));
  EXPECT_EQ(float16_from_double(0x1p-25), 0);
  EXPECT_EQ(float16_from_double(0x1.8p-25), 1);
  // Double rounding through float would give 1 + 2^-10 here.
  EXPECT_EQ(float16_to_double(float16_from_double(1 + 0x1p-11 + 0x1p-40)), 1 + 0x1p-10);
  EXPECT_EQ(float_limits(DType::float16).max_finite, 65504);
  EXPECT_EQ(float_limits(DType::bfloat16).epsilon, 0x1p-7);
}

}  // namespace
}  // namespace parallax
