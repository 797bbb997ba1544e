// SPDX-License-Identifier: Apache-2.0
// Int8 products equal those of the loops, whatever the values' signs, zero points and padding.
#include "runtime/device/cpu/products/int8_gemm.h"

#include <random>

#include <gtest/gtest.h>

#include "runtime/device/cpu/buffer_pool.h"
#include "runtime/device/cpu/products/conv_loops.h"
#include "runtime/device/cpu/products/gemm_kernels.h"
#include "tests/runtime/device/products/conv_cases.h"

namespace parallax::runtime {
namespace int8_gemm_test {

// Random quantized values; where they are `extreme`, only the one furthest from the zero point, which makes the largest
// sums.
struct Drawn {
  std::vector<std::byte> bytes;
  std::vector<int64_t> numbers;
  QuantizedValues quantized;
  Drawn(int64_t count, bool is_signed, int32_t zero, bool is_extreme, unsigned seed)
      : bytes(static_cast<size_t>(count)),
        numbers(static_cast<size_t>(count)),
        quantized{bytes.data(), is_signed, zero} {
    std::mt19937 engine(seed);
    const int lowest = is_signed ? -128 : 0;
    const int far = zero - lowest > lowest + 255 - zero ? lowest : lowest + 255;
    for (size_t i = 0; i < bytes.size(); ++i) {
      const int value = is_extreme ? far : lowest + static_cast<int>(engine() % 256);
      bytes[i] = static_cast<std::byte>(value);
      numbers[i] = value - zero;
    }
  }
};

std::vector<int64_t> widened(const std::vector<int32_t>& sums) { return {sums.begin(), sums.end()}; }

GemmProblem matrices(int64_t m, int64_t n, int64_t k) {
  GemmProblem problem;
  problem.m = m;
  problem.n = n;
  problem.k = k;
  return problem;
}

TEST(Int8Gemm, MatricesEqualTheLoops) {
  if (!suits_int8_gemm(matrices(64, 64, 64))) GTEST_SKIP() << "this processor has no exact products of bytes";
  Queue<Cpu> queue(BufferPool::create({}));
  for (const bool left_signed : {false, true}) {
    for (const bool right_signed : {false, true}) {
      for (const bool is_extreme : {false, true}) {
        for (const auto& [zero, k] : {std::pair{0, 1000}, std::pair{127, 257}, std::pair{3, 32999}}) {
          GemmProblem problem = matrices(7, 19, k);
          problem.a_offsets = {0, 7 * k};
          problem.b_offsets = {0, 0};
          const Drawn a(2 * 7 * k, left_signed, is_extreme && zero == 3 ? (left_signed ? -128 : 0) : zero, is_extreme,
                        1);
          const Drawn b(k * 19, right_signed, right_signed ? -zero : zero, is_extreme, 2);
          std::vector<int32_t> c(2 * 7 * 19, -1);
          std::vector<int64_t> expected(c.size());
          const Status done = gemm(queue, problem, a.quantized, b.quantized, c.data());
          ASSERT_TRUE(done.ok()) << done.error().message;
          for (int64_t i = 0; i < 2; ++i)
            gemm_integers(7, 19, k, a.numbers.data() + i * 7 * k, b.numbers.data(), expected.data() + i * 7 * 19);
          EXPECT_EQ(widened(c), expected) << left_signed << right_signed << is_extreme << " " << zero << " " << k;
        }
      }
    }
  }
}

TEST(Int8Gemm, FewRowsOfWeightsEqualTheLoops) {
  if (!suits_int8_gemm(matrices(64, 64, 64))) GTEST_SKIP() << "this processor has no exact products of bytes";
  constexpr int64_t kDepth = 1001, kColumns = 133;
  for (const int64_t m : {1, 2, 3, 4, 5, 8, 9}) {
    for (const bool right_signed : {false, true}) {
      Queue<Cpu> queue(BufferPool::create({}));
      const Drawn a(m * kDepth, right_signed, right_signed ? -128 : 255, true, 1);
      const Drawn b(kDepth * kColumns, right_signed, 5, true, 2);
      QuantizedValues weight = b.quantized;
      weight.is_constant = true;
      std::vector<int64_t> expected(static_cast<size_t>(m * kColumns));
      gemm_integers(m, kColumns, kDepth, a.numbers.data(), b.numbers.data(), expected.data());
      for (int run = 0; run < 2; ++run) {
        std::vector<int32_t> c(expected.size(), -1);
        ASSERT_TRUE(gemm(queue, matrices(m, kColumns, kDepth), a.quantized, weight, c.data()).ok());
        EXPECT_EQ(widened(c), expected) << m << " rows, " << right_signed;
      }
    }
  }
}

// clang-format off
const std::vector<ConvCase> kConvolutions = {
    {"strides", 2, 16, 16, 1, {11, 9}, {3, 3}, {2, 1}, {1, 2}, {1, 3}, {1, 2}},
    {"groups", 2, 16, 16, 4, {11, 9}, {3, 3}, {2, 1}, {1, 2}, {1, 3}, {1, 2}},
    {"pointwise", 2, 16, 16, 1, {11, 9}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}},
    {"volume", 2, 16, 16, 2, {4, 5, 6}, {2, 3, 1}, {1, 1, 3}, {2, 1, 1}, {1, 0, 2}, {0, 2, 0}},
    {"taps_in_padding_alone", 2, 16, 16, 1, {4, 7}, {5, 3}, {1, 1}, {3, 2}, {6, 2}, {6, 2}},
    {"more_padding_than_filter", 2, 16, 16, 1, {4}, {2}, {3}, {1}, {7}, {9}},
};
// clang-format on

TEST(Int8Gemm, ConvolutionsEqualTheLoops) {
  if (!suits_int8_gemm(matrices(64, 64, 64))) GTEST_SKIP() << "this processor has no exact products of bytes";
  Queue<Cpu> queue(BufferPool::create({}));
  for (const ConvCase& each : kConvolutions) {
    const ConvProblem problem = problem_of(each);
    const int64_t channels = problem.in_channels / problem.groups;
    for (const bool x_signed : {false, true}) {
      for (const bool filters_signed : {false, true}) {
        const Drawn x(2 * 16 * product(problem.in_spatial), x_signed, x_signed ? -5 : 77, false, 3);
        const Drawn filters(16 * channels * product(problem.kernel), filters_signed, filters_signed ? 0 : 128, false,
                            4);
        std::vector<int32_t> y(static_cast<size_t>(2 * 16 * product(problem.out_spatial)), -1);
        std::vector<int64_t> expected(y.size());
        const Status done = conv(queue, problem, x.quantized, filters.quantized, y.data());
        ASSERT_TRUE(done.ok()) << done.error().message;
        conv_loops(problem, x.numbers.data(), filters.numbers.data(), static_cast<const int64_t*>(nullptr),
                   expected.data());
        EXPECT_EQ(widened(y), expected) << each << " " << x_signed << filters_signed;
      }
    }
  }
}

TEST(Int8Gemm, SumsThatCouldLeaveTheirTypeAreLeftToOthers) {
  EXPECT_FALSE(suits_int8_gemm(matrices(64, 64, 40000)));
  EXPECT_FALSE(suits_int8_gemm(matrices(2, 2, 2)));
}

}  // namespace int8_gemm_test
}  // namespace parallax::runtime
