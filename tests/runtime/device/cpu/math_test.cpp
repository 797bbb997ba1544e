// SPDX-License-Identifier: Apache-2.0
// The functions of math.h against the C library's in double.
#include "runtime/device/cpu/math.h"

#include <algorithm>
#include <numbers>

#include <gtest/gtest.h>

namespace parallax::runtime {
namespace math_test {

// Errors in units of the last place of the exact result, over the range where it is a normal number.
double ulps_at(float x, float (*f)(float), double (*exact)(double)) {
  const double expected = exact(static_cast<double>(x));
  const float magnitude = std::max(std::fabs(static_cast<float>(expected)), 1.2e-38F);
  const double unit = static_cast<double>(std::nextafter(magnitude, INFINITY)) - static_cast<double>(magnitude);
  const double error = std::fabs(static_cast<double>(f(x)) - expected) / unit;
  return error == error ? error : INFINITY;
}
double worst_ulps(float (*f)(float), double (*exact)(double), double low, double high) {
  double worst = 0;
  for (int i = 0; i <= 200'000; ++i)
    worst = std::max(worst, ulps_at(static_cast<float>(low + (high - low) * i / 200'000), f, exact));
  return worst;
}

TEST(MathOfFloats, IsAccurate) {
  EXPECT_LT(worst_ulps([](float x) { return math::exp(x); }, std::exp, -87, 88), 2.0);
  EXPECT_LT(worst_ulps([](float x) { return math::tanh(x); }, std::tanh, -12, 12), 3.0);
  EXPECT_LT(worst_ulps([](float x) { return math::erf(x); }, std::erf, -5, 5), 3.0);
}

double exact_sigmoid(double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }

// The unit there is the step between subnormal numbers.
TEST(MathOfFloats, GatesAreAccurateDownToSubnormals) {
  EXPECT_LT(worst_ulps([](float x) { return math::sigmoid(x); }, exact_sigmoid, -110, 80), 3.0);
  EXPECT_GT(math::sigmoid(-103.0F), 0.0F);
  const auto swish = [](double x) { return x * exact_sigmoid(x); };
  EXPECT_LT(worst_ulps([](float x) { return math::times_sigmoid(x, x); }, swish, -120, 80), 4.0);
  EXPECT_LT(math::times_sigmoid(-107.0F, -107.0F), 0.0F);
  const auto mish = [](double x) { return x * std::tanh(std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x)))); };
  EXPECT_LT(worst_ulps([](float x) { return math::mish(x); }, mish, -120, 80), 5.0);
  EXPECT_LT(math::mish(-107.0F), 0.0F);
}

// The argument of the exponential, up to 90 here, is rounded.
TEST(MathOfFloats, ExponentialsThatAreNormalNumbersHaveTheSameBitsInFewerSteps) {
  for (float x = -87; x <= 87; x += 0.00390625F) ASSERT_EQ(math::exp_normal<0>(x), math::exp(x)) << x;
}

TEST(MathOfFloats, GeluByTanhKeepsItsDigits) {
  const auto exact = [](double x) {
    return x * exact_sigmoid(std::sqrt(8 / std::numbers::pi) * (x + 0.044715 * x * x * x));
  };
  EXPECT_LT(worst_ulps([](float x) { return math::gelu_by_tanh(x); }, exact, -1, 20), 4.0);
  EXPECT_LT(worst_ulps([](float x) { return math::gelu_by_tanh(x); }, exact, -10.2, -1), 300.0);
  EXPECT_EQ(math::gelu_by_tanh(1e30F), 1e30F);
  EXPECT_EQ(math::gelu_by_tanh(-1e30F), 0.0F);
  EXPECT_TRUE(std::isnan(math::gelu_by_tanh(-INFINITY)));  // as -inf * 0 in its formula
}

TEST(MathOfDoubles, GatesAreAccurateDownToSubnormals) {
  for (const double x : {-709.0, -720.0, -740.0}) {
    EXPECT_NEAR(math::sigmoid(x) / std::exp(x), 1, 1e-9) << x;
    EXPECT_NEAR(math::times_sigmoid(x, x) / (x * std::exp(0.5 * x) * std::exp(0.5 * x)), 1, 1e-12) << x;
    EXPECT_NEAR(math::mish(x) / math::times_sigmoid(x, x), 1, 1e-12) << x;
  }
  EXPECT_EQ(math::sigmoid(-800.0), 0.0);
}

// The worst ulps over floats of every magnitude and of both signs between `low` and `high`.
double worst_ulps_of_all(float (*f)(float), double (*exact)(double), float low, float high) {
  double worst = 0;
  for (uint64_t bits = 0; bits < 0x7F800000U; bits += 7919) {
    for (const uint32_t sign : {0U, 0x80000000U}) {
      const float x = std::bit_cast<float>(static_cast<uint32_t>(bits) | sign);
      if (x >= low && x <= high) worst = std::max(worst, ulps_at(x, f, exact));
    }
  }
  return worst;
}

TEST(MathOfFloats, IsAccurateAtEveryMagnitude) {
  constexpr float kMost = std::numeric_limits<float>::max();
  EXPECT_LT(worst_ulps_of_all([](float x) { return math::log(x); }, std::log, 1e-45F, kMost), 1.5);
  EXPECT_LT(worst_ulps_of_all([](float x) { return math::atan(x); }, std::atan, -kMost, kMost), 2.0);
  EXPECT_LT(worst_ulps_of_all([](float x) { return math::asin(x); }, std::asin, -1, 1), 2.5);
  EXPECT_LT(worst_ulps_of_all([](float x) { return math::acos(x); }, std::acos, -1, 1), 2.5);
  const auto softplus = [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); };
  EXPECT_LT(worst_ulps_of_all([](float x) { return math::softplus(x); }, softplus, -87, kMost), 2.5);
  const auto mish = [](double x) { return x * std::tanh(std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x)))); };
  EXPECT_LT(worst_ulps_of_all([](float x) { return math::mish(x); }, mish, -80, kMost), 4.0);
  for (const double near : {-1.0, -0.5, 0.5, 1.0}) {
    EXPECT_LT(worst_ulps([](float x) { return math::acos(x); }, std::acos, std::max(-1.0, near - 0.01),
                         std::min(1.0, near + 0.01)),
              2.5);
  }
  EXPECT_LT(worst_ulps([](float x) { return math::log(x); }, std::log, 0.6, 1.5), 1.5);
}

TEST(MathOfFloats, SineAndCosineAreAccurateAtEveryMagnitudeTheyHoldFor) {
  const auto sine = [](float x) { return math::sin_reduced(x, 0); };
  const auto cosine = [](float x) { return math::sin_reduced(x, 1); };
  EXPECT_LT(worst_ulps_of_all(sine, std::sin, -math::kMostReduced, math::kMostReduced), 0.6);
  EXPECT_LT(worst_ulps_of_all(cosine, std::cos, -math::kMostReduced, math::kMostReduced), 0.6);
  // Next to the zeros: the float nearest to each multiple of pi / 2.
  for (int k = 1; k <= 600'000; ++k) {
    const auto near = static_cast<float>(k * 1.57079632679489661923);
    ASSERT_LT(ulps_at(near, sine, std::sin), 0.6) << near;
    ASSERT_LT(ulps_at(-near, cosine, std::cos), 0.6) << near;
  }
  EXPECT_TRUE(std::signbit(sine(-0.0F)));
  EXPECT_EQ(cosine(-0.0F), 1.0F);
}

TEST(MathOfFloats, ExponentialsOfSoftmaxAreAccurateDownToSubnormals) {
  EXPECT_LT(worst_ulps([](float x) { return math::exp_nonpositive(x); }, std::exp, -103.9, 0), 1.5);
  EXPECT_EQ(math::exp_nonpositive(0.0F), 1.0F);
  EXPECT_EQ(math::exp_nonpositive(-INFINITY), 0.0F);
  for (const uint32_t bits : {0x7FC00000U, 0x7FC00001U, 0xFFC12345U})
    EXPECT_TRUE(std::isnan(math::exp_nonpositive(std::bit_cast<float>(bits)))) << bits;
}

TEST(MathOfFloats, GeluIsAccurateInItsTailToo) {
  const auto exact = [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); };
  for (int i = -50'000; i <= 50'000; ++i) {
    const float x = static_cast<float>(i) * 2e-4F;
    const double expected = exact(static_cast<double>(x));
    const double limit = 3e-8 + 1e-6 * std::fabs(expected);
    ASSERT_NEAR(static_cast<double>(math::gelu(x)), expected, limit) << x;
    if (x > -3 && x < 0) {
      ASSERT_NEAR(static_cast<double>(math::gelu(x)) / expected, 1.0, 1e-5) << x;
    }
  }
  EXPECT_EQ(math::gelu(INFINITY), INFINITY);
  EXPECT_EQ(math::gelu(1e30F), 1e30F);
  EXPECT_EQ(math::gelu(-1e30F), 0.0F);
  EXPECT_TRUE(std::isnan(math::gelu(-INFINITY)));  // as -inf * 0 in its formula
  EXPECT_TRUE(std::isnan(math::gelu(std::bit_cast<float>(0x7FC00001U))));
  EXPECT_TRUE(std::signbit(math::gelu(-0.0F)));
}

TEST(MathOfFloats, HandlesTheEnds) {
  EXPECT_EQ(math::exp(100.0F), INFINITY);
  EXPECT_EQ(math::exp(INFINITY), INFINITY);
  EXPECT_EQ(math::exp(-INFINITY), 0.0F);
  EXPECT_EQ(math::exp(0.0F), 1.0F);
  EXPECT_GT(math::exp(-100.0F), 0.0F);  // subnormal
  EXPECT_TRUE(std::isnan(math::exp(NAN)));
  EXPECT_EQ(math::tanh(50.0F), 1.0F);
  EXPECT_EQ(math::tanh(-INFINITY), -1.0F);
  EXPECT_TRUE(std::isnan(math::tanh(NAN)));
  EXPECT_EQ(math::sigmoid(INFINITY), 1.0F);
  EXPECT_EQ(math::sigmoid(-INFINITY), 0.0F);
  EXPECT_TRUE(std::isnan(math::sigmoid(NAN)));
  EXPECT_EQ(math::times_sigmoid(INFINITY, INFINITY), INFINITY);
  EXPECT_EQ(math::times_sigmoid(3e38F, 3e38F), 3e38F);
  EXPECT_EQ(math::times_sigmoid(-3e38F, -3e38F), 0.0F);
  EXPECT_TRUE(std::isnan(math::times_sigmoid(-INFINITY, -INFINITY)));  // as -inf * 0 in its formula
  EXPECT_TRUE(std::isnan(math::times_sigmoid(NAN, NAN)));
  EXPECT_EQ(math::erf(INFINITY), 1.0F);
  EXPECT_TRUE(std::isnan(math::erf(NAN)));
  EXPECT_EQ(math::log(0.0F), -INFINITY);
  EXPECT_EQ(math::log(-0.0F), -INFINITY);
  EXPECT_EQ(math::log(INFINITY), INFINITY);
  EXPECT_EQ(math::log(1.0F), 0.0F);
  for (const float x : {-1e-45F, -1.0F, -INFINITY, NAN}) EXPECT_TRUE(std::isnan(math::log(x))) << x;
  EXPECT_EQ(math::softplus(-INFINITY), 0.0F);
  EXPECT_EQ(math::softplus(INFINITY), INFINITY);
  EXPECT_EQ(math::mish(INFINITY), INFINITY);
  EXPECT_EQ(math::mish(3e38F), 3e38F);
  EXPECT_EQ(math::atan(-INFINITY), -1.57079637F);
  EXPECT_TRUE(std::signbit(math::atan(-0.0F)));
  EXPECT_TRUE(std::signbit(math::asin(-0.0F)));
  EXPECT_EQ(math::acos(1.0F), 0.0F);
  for (float (*f)(float) : {+[](float x) { return math::softplus(x); }, +[](float x) { return math::mish(x); },
                            +[](float x) { return math::atan(x); }, +[](float x) { return math::asin(x); },
                            +[](float x) { return math::acos(x); }})
    EXPECT_TRUE(std::isnan(f(NAN)));
  EXPECT_TRUE(std::isnan(math::asin(1.5F)));
  EXPECT_TRUE(std::isnan(math::acos(-1.5F)));
  EXPECT_TRUE(std::isnan(math::maximum(1.0F, NAN)));
  EXPECT_TRUE(std::isnan(math::minimum(NAN, 1.0F)));
}

}  // namespace math_test
}  // namespace parallax::runtime
