// SPDX-License-Identifier: Apache-2.0
// The elementary functions of many numbers against libm's, and at the ends of their ranges.
#include "reference/kernels/elementary.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace parallax::reference {
namespace {

using Each = void (*)(std::span<double>);

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

// Units in the last place of double between each(x) and function(x) for numbers of [-reach, reach], small ones among
// them.
double worst_distance(Each each, double (*function)(double), double reach) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(-reach, reach);
  std::vector<double> numbers(50'000);
  for (size_t index = 0; index < numbers.size(); ++index)
    numbers[index] = std::ldexp(uniform(random), -static_cast<int>(index % 5) * 7);
  std::vector<double> results = numbers;
  each(results);
  double worst = 0;
  for (size_t index = 0; index < numbers.size(); ++index) {
    const double expected = function(numbers[index]);
    const double unit =
        std::nextafter(std::fabs(expected), std::numeric_limits<double>::infinity()) - std::fabs(expected);
    worst = std::max(worst, std::fabs(results[index] - expected) / unit);
  }
  return worst;
}

double one(Each each, double x) {
  each({&x, 1});
  return x;
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Elementary, LieWithinAFewUnitsOfLibm) {
  EXPECT_LE(worst_distance(exp_each, std::exp, 20), 1);
  EXPECT_LE(worst_distance(exp_each, std::exp, 708), 1);
  EXPECT_LE(worst_distance(tanh_each, std::tanh, 3), 4);
  EXPECT_LE(worst_distance(tanh_each, std::tanh, 60), 4);
  EXPECT_LE(worst_distance(erf_each, std::erf, 0.1), 3);
  EXPECT_LE(worst_distance(erf_each, std::erf, 3), 3);
  EXPECT_LE(worst_distance(erf_each, std::erf, 7), 3);
  EXPECT_LE(worst_distance(sigmoid_each, sigmoid, 30), 4);
  EXPECT_LE(worst_distance(sigmoid_each, sigmoid, 700), 4);
}

TEST(Elementary, HoldAtTheEndsOfTheirRanges) {
  EXPECT_EQ(one(exp_each, kInfinity), kInfinity);
  EXPECT_EQ(one(exp_each, 710), kInfinity);
  EXPECT_EQ(one(exp_each, 709.7), std::exp(709.7));
  EXPECT_EQ(one(exp_each, -kInfinity), 0);
  EXPECT_EQ(one(exp_each, -744.5), std::exp(-744.5));  // the least positive double
  EXPECT_EQ(one(exp_each, -746), 0);
  EXPECT_EQ(one(tanh_each, kInfinity), 1);
  EXPECT_EQ(one(tanh_each, -1e300), -1);
  EXPECT_TRUE(std::signbit(one(tanh_each, -0.0)));
  EXPECT_EQ(one(tanh_each, 5e-324), 5e-324);
  EXPECT_EQ(one(erf_each, kInfinity), 1);
  EXPECT_EQ(one(erf_each, -6.5), -1);
  EXPECT_TRUE(std::signbit(one(erf_each, -0.0)));
  EXPECT_EQ(one(erf_each, 5e-324), 5e-324);
  EXPECT_EQ(one(sigmoid_each, -kInfinity), 0);
  EXPECT_EQ(one(sigmoid_each, -720), std::exp(-720));  // subnormal
  EXPECT_EQ(one(sigmoid_each, -750), 0);
  EXPECT_EQ(one(sigmoid_each, kInfinity), 1);
  for (const Each each : {exp_each, tanh_each, erf_each, sigmoid_each})
    EXPECT_TRUE(std::isnan(one(each, std::numeric_limits<double>::quiet_NaN())));
}

// Lanes and what is left over at the end of a stretch give the same bits.
TEST(Elementary, DoNotDependOnTheIndexInAStretch) {
  for (const Each each : {exp_each, tanh_each, erf_each, sigmoid_each}) {
    for (size_t count = 1; count < 40; ++count) {
      std::vector<double> numbers(count, 0.7390851332151607);
      each(numbers);
      for (double number : numbers) EXPECT_EQ(number, one(each, 0.7390851332151607));
    }
  }
}

}  // namespace
}  // namespace parallax::reference
