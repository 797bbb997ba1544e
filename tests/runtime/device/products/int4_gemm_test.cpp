// SPDX-License-Identifier: Apache-2.0
// Products with weights of 4 and 8 bits against the numbers that the quantized values represent: every rest of blocks,
// rows and units, and the same bits by vectors of every width and any number of threads.
#include "runtime/device/cpu/products/int4_gemm.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "inspector/base/thread_pool.h"
#include "runtime/device/cpu/multiversion.h"
#include "runtime/device/cpu/products/float_panels.h"
#include "tests/runtime/device/random_values.h"

namespace parallax::runtime {
namespace int4_gemm_test {

struct Weights {
  std::vector<std::byte> quantized;
  std::vector<float> scales, zeros;
  Int4Matrix matrix;

  Weights(int64_t n, int64_t k, int64_t block_size, bool has_zeros, int64_t bits = 4) {
    matrix = {n, k, block_size, nullptr, nullptr, nullptr, bits};
    const int64_t blocks = n * matrix.blocks();
    for (const int64_t byte : random_values<int64_t>(blocks * block_size * bits / 8, 1, 0, 255))
      quantized.push_back(static_cast<std::byte>(byte));
    scales = random_values<float>(blocks, 2, -1, 1);
    zeros = random_values<float>(blocks, 3, 0, bits == 4 ? 15 : 255);
    matrix.quantized = quantized.data();
    matrix.scales = scales.data();
    if (has_zeros) matrix.zeros = zeros.data();
  }
  double number(int64_t row, int64_t i) const {
    const int64_t block = row * matrix.blocks() + i / matrix.block_size;
    const int64_t location = row * matrix.blocks() * matrix.block_size + i;
    const double zero =
        static_cast<double>(matrix.zeros == nullptr ? matrix.middle() : zeros[static_cast<size_t>(block)]);
    return (value_at(location) - zero) * static_cast<double>(scales[static_cast<size_t>(block)]);
  }
  double value_at(int64_t location) const {
    const auto byte = std::to_integer<unsigned>(quantized[static_cast<size_t>(location * matrix.bits / 8)]);
    if (matrix.bits == 8) return byte;
    return location % 2 == 0 ? byte & 15U : byte >> 4U;
  }
};

using Multiply = void (*)(int64_t m, const float* a, const Int4Matrix& b, float* y);

void expect_products(const Weights& weights, int64_t m, Multiply multiply) {
  const auto [n, k] = std::pair(weights.matrix.n, weights.matrix.k);
  const auto a = random_values<float>(m * k, 4, -2, 2);
  std::vector<float> y(static_cast<size_t>(m * n), -1.0F), again(y);
  multiply(m, a.data(), weights.matrix, y.data());
  for (int64_t row = 0; row < m; ++row) {
    for (int64_t column = 0; column < n; ++column) {
      double sum = 0, size = 0;
      for (int64_t i = 0; i < k; ++i) {
        const double term = static_cast<double>(a[static_cast<size_t>(row * k + i)]) * weights.number(column, i);
        sum += term;
        size += std::fabs(term);
      }
      ASSERT_NEAR(static_cast<double>(y[static_cast<size_t>(row * n + column)]), sum, 1e-6 * size + 1e-9)
          << m << " x " << n << " x " << k << " at " << row << ", " << column;
    }
  }
  const VectorLevel widest = vector_level();
  for (const VectorLevel level : {VectorLevel::baseline, VectorLevel::avx2, VectorLevel::avx512}) {
    if (level > widest) continue;
    set_vector_level_for_tests(level);
    for (const int threads : {1, 3}) {
      set_thread_count(threads);
      multiply(m, a.data(), weights.matrix, again.data());
      EXPECT_EQ(again, y) << "level " << static_cast<int>(level) << ", " << threads << " threads";
    }
  }
  set_thread_count(0);
  set_vector_level_for_tests(widest);
}

TEST(Int4Gemm, EqualTheDequantizedNumbers) {
  for (const int64_t block_size : {32, 64, 256}) {
    for (const int64_t k : {1, 31, 32, 33, 100, 512}) {
      for (const bool has_zeros : {false, true}) {
        const Weights weights(7, k, block_size, has_zeros);
        for (int64_t m = 1; m <= 9; ++m) {
          expect_products(weights, m, multiply_few_rows);
          expect_products(weights, m, multiply_unpacked_int4);
        }
        const Weights bytes(7, k, block_size, has_zeros, 8);
        for (int64_t m = 1; m <= 9; ++m) expect_products(bytes, m, multiply_few_rows);
      }
    }
  }
}

TEST(Int4Gemm, GoOnBeyondOneTileAndOnePart) {
  for (const int64_t n : {64, 86, 133}) expect_products(Weights(n, 2100, 64, true), 29, multiply_unpacked_int4);
}

TEST(Int4Gemm, OfBytesAreUnpackedIntoPanels) {
  if (!has_float_panels()) GTEST_SKIP() << "this processor has no AVX2 and FMA";
  const Weights weights(55, 100, 32, true, 8);
  const auto a = random_values<float>(30 * 100, 4, -2, 2);
  std::vector<float> expected(30 * 55), y(30 * 55, -1.0F);
  multiply_few_rows(30, a.data(), weights.matrix, expected.data());
  multiply_unpacked_bytes(30, a.data(), weights.matrix, y.data());
  for (size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], expected[i], 1e-2) << i;
}

}  // namespace int4_gemm_test
}  // namespace parallax::runtime
