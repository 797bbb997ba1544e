// SPDX-License-Identifier: Apache-2.0
// Products of integers through floats equal those of the loops bit for bit, whatever the numbers' size.
#include "runtime/device/cpu/products/exact_products.h"

#include <random>

#include <gtest/gtest.h>

#include "runtime/device/cpu/buffer_pool.h"
#include "runtime/device/cpu/products/conv_loops.h"
#include "runtime/device/cpu/products/gemm_kernels.h"
#include "tests/runtime/device/products/conv_cases.h"

namespace parallax::runtime {
namespace exact_products_test {

std::vector<int64_t> integers(int64_t count, int64_t largest, unsigned seed) {
  std::mt19937_64 engine(seed);
  std::uniform_int_distribution<int64_t> draw(-largest, largest);
  std::vector<int64_t> values(static_cast<size_t>(count));
  for (int64_t& value : values) value = draw(engine);
  return values;
}

// Sums of 255 * 255 stay exact for 258 terms; 1000 are cut into four parts.
TEST(ExactProducts, MatricesEqualTheLoops) {
  Queue<Cpu> queue(BufferPool::create({}));
  for (const int64_t largest : {1, 127, 255, 700}) {
    GemmProblem problem;
    problem.m = 9;
    problem.n = 37;
    problem.k = 1000;
    problem.a_offsets = {0, 9000};
    problem.b_offsets = {0, 0};
    const auto a = integers(2 * 9 * 1000, largest, 1), b = integers(1000 * 37, largest, 2);
    std::vector<int64_t> c(2 * 9 * 37, -1), expected(c.size());
    const auto done = gemm_in_floats(queue, problem, a.data(), b.data(), c.data());
    ASSERT_TRUE(done.ok()) << done.error().message;
    ASSERT_TRUE(*done) << largest;
    for (int64_t i = 0; i < 2; ++i)
      gemm_integers(9, 37, 1000, a.data() + i * 9000, b.data(), expected.data() + i * 9 * 37);
    EXPECT_EQ(c, expected) << largest;
  }
}

TEST(ExactProducts, LargeNumbersAreLeftToTheLoops) {
  Queue<Cpu> queue(BufferPool::create({}));
  GemmProblem problem;
  problem.m = problem.n = problem.k = 64;
  auto a = integers(64 * 64, 100, 1);
  const auto b = integers(64 * 64, 100, 2);
  a[77] = INT64_MIN;
  std::vector<int64_t> c(64 * 64, -1);
  const auto done = gemm_in_floats(queue, problem, a.data(), b.data(), c.data());
  ASSERT_TRUE(done.ok());
  EXPECT_FALSE(*done);
  EXPECT_EQ(c, std::vector<int64_t>(64 * 64, -1));
}

TEST(ExactProducts, ConvolutionsEqualTheLoops) {
  Queue<Cpu> queue(BufferPool::create({}));
  for (const int64_t groups : {1, 4, 64}) {
    for (const int64_t largest : {20, 255}) {
      const ConvProblem problem =
          problem_of({"strides", 2, 64, 64, groups, {11, 9}, {3, 3}, {2, 1}, {1, 1}, {1, 0}, {1, 2}});
      const auto x = integers(2 * 64 * 99, largest, 3), filters = integers(64 * 64 / groups * 9, largest, 4);
      const auto bias = integers(64, 100000, 5);
      std::vector<int64_t> y(2 * 64 * 54, -1), expected(y.size());
      const auto done = conv_in_floats(queue, problem, x.data(), filters.data(), bias.data(), y.data());
      ASSERT_TRUE(done.ok()) << done.error().message;
      ASSERT_TRUE(*done) << groups << " " << largest;
      conv_loops(problem, x.data(), filters.data(), bias.data(), expected.data());
      EXPECT_EQ(y, expected) << groups << " " << largest;
    }
  }
}

}  // namespace exact_products_test
}  // namespace parallax::runtime
