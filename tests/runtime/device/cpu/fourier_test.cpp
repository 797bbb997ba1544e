// SPDX-License-Identifier: Apache-2.0
// Fast transforms against the sum that defines them.
#include "runtime/device/cpu/rows/fourier.h"

#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace parallax::runtime::fourier_test {
namespace {

void expect_sums(int64_t n, int64_t signals, bool inverse) {
  std::mt19937_64 random(static_cast<uint64_t>(n));
  std::normal_distribution<double> normal;
  const auto count = static_cast<size_t>(n * signals);
  std::vector<double> real(count), imaginary(count);
  for (double& value : real) value = normal(random);
  for (double& value : imaginary) value = normal(random);
  const std::vector<double> x = real, y = imaginary;
  const Fourier fourier(n, inverse);
  std::vector<double> scratch(static_cast<size_t>(fourier.scratch_size(signals)), NAN);
  fourier.run(signals, {real.data(), imaginary.data()}, scratch.data());
  const std::vector<double> roots = roots_of_unity(n, inverse);
  const double bound = 1e-14 * std::sqrt(static_cast<double>(n)) * (1 + std::log2(static_cast<double>(n)));
  for (int64_t k = 0; k < n; k += std::max<int64_t>(1, n / 40)) {
    for (int64_t signal = 0; signal < signals; ++signal) {
      double sum[] = {0, 0};
      for (int64_t j = 0; j < n; ++j) {
        const auto root = static_cast<size_t>(2 * (j * k % n));
        const auto location = static_cast<size_t>(j * signals + signal);
        sum[0] += x[location] * roots[root] - y[location] * roots[root + 1];
        sum[1] += x[location] * roots[root + 1] + y[location] * roots[root];
      }
      const auto location = static_cast<size_t>(k * signals + signal);
      ASSERT_NEAR(real[location], sum[0], bound) << n << ", " << signals << " signals, bin " << k;
      ASSERT_NEAR(imaginary[location], sum[1], bound) << n << ", " << signals << " signals, bin " << k;
    }
  }
}

TEST(Fourier, OfAllShortLengths) {
  for (int64_t n = 1; n <= 80; ++n) {
    for (const int64_t signals : {1, 3, 8}) {
      for (const bool inverse : {false, true}) expect_sums(n, signals, inverse);
    }
  }
}

TEST(Fourier, OfPowersOfTwoSmoothLengthsAndLargePrimes) {
  for (const int64_t n : {128, 400, 512, 1009, 1024, 1155, 2000, 2048, 29 * 31, 37 * 41, 4099})
    expect_sums(n, 2, false);
}

TEST(Fourier, AConstantHasOneBin) {
  std::vector<double> real(1024, 3.0), imaginary(1024, 0.0);
  const Fourier fourier(1024, false);
  std::vector<double> scratch(static_cast<size_t>(fourier.scratch_size(1)));
  fourier.run(1, {real.data(), imaginary.data()}, scratch.data());
  EXPECT_EQ(real[0], 3072.0);
  for (size_t k = 1; k < real.size(); ++k) {
    EXPECT_EQ(real[k], 0.0);
    EXPECT_EQ(imaginary[k], 0.0);
  }
}

}  // namespace
}  // namespace parallax::runtime::fourier_test
