// Products with weights of 4 bits against the numbers the codes stand for: every rest of blocks, rows and units, and
// the same bits by vectors of every width.
#include "runtime/device/nibble_products.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/device/multiversion.h"
#include "tests/runtime/device/random_values.h"

namespace parallax::runtime {
namespace nibble_products_test {

struct Weights {
  std::vector<std::byte> codes;
  std::vector<float> scales, zeros;
  NibbleMatrix matrix;

  Weights(int64_t n, int64_t k, int64_t block_size, bool has_zeros) {
    matrix = {n, k, block_size, nullptr, nullptr, nullptr};
    const int64_t blocks = n * matrix.blocks();
    for (const int64_t byte : random_values<int64_t>(blocks * block_size / 2, 1, 0, 255))
      codes.push_back(static_cast<std::byte>(byte));
    scales = random_values<float>(blocks, 2, -1, 1);
    zeros = random_values<float>(blocks, 3, 0, 15);
    matrix.codes = codes.data();
    matrix.scales = scales.data();
    if (has_zeros) matrix.zeros = zeros.data();
  }
  double number(int64_t row, int64_t i) const {
    const int64_t block = row * matrix.blocks() + i / matrix.block_size;
    const int64_t place = row * matrix.blocks() * matrix.block_size + i;
    const auto byte = static_cast<unsigned>(codes[static_cast<size_t>(place / 2)]);
    const double zero = matrix.zeros == nullptr ? 8.0 : static_cast<double>(zeros[static_cast<size_t>(block)]);
    return (static_cast<double>(place % 2 == 0 ? byte & 15U : byte >> 4U) - zero) *
           static_cast<double>(scales[static_cast<size_t>(block)]);
  }
};

using Multiply = void (*)(int64_t m, const float* left, const NibbleMatrix& b, float* y);

void expect_products(const Weights& weights, int64_t m, Multiply multiply) {
  const auto [n, k] = std::pair(weights.matrix.n, weights.matrix.k);
  const auto a = random_values<float>(m * k, 4, -2, 2);
  std::vector<float> left(static_cast<size_t>(m * weights.matrix.row_step()), NAN);
  lay_out_units(m, k, a.data(), weights.matrix.row_step(), left.data());
  std::vector<float> y(static_cast<size_t>(m * n), -1.0F), again(y);
  multiply(m, left.data(), weights.matrix, y.data());
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
    multiply(m, left.data(), weights.matrix, again.data());
    EXPECT_EQ(again, y) << "level " << static_cast<int>(level);
  }
  set_vector_level_for_tests(widest);
}

TEST(NibbleProducts, EqualTheNumbersTheCodesStandFor) {
  for (const int64_t block_size : {32, 64, 256}) {
    for (const int64_t k : {1, 31, 32, 33, 100, 512}) {
      for (const bool has_zeros : {false, true}) {
        const Weights weights(7, k, block_size, has_zeros);
        for (int64_t m = 1; m <= 9; ++m) {
          expect_products(weights, m, multiply_nibbles);
          expect_products(weights, m, multiply_unpacked_nibbles);
        }
      }
    }
  }
}

TEST(NibbleProducts, GoOnBeyondOneTileAndOnePart) {
  const Weights weights(70, 2100, 64, true);
  expect_products(weights, 6, multiply_unpacked_nibbles);
}

TEST(NibbleProducts, UnpackTheNumbers) {
  const Weights weights(9, 75, 32, true);
  const int64_t step = weights.matrix.row_step();
  const VectorLevel widest = vector_level();
  for (const VectorLevel level : {VectorLevel::baseline, widest}) {
    set_vector_level_for_tests(level);
    std::vector<float> numbers(static_cast<size_t>(4 * step), -1.0F);
    unpack_nibbles(weights.matrix, 3, 7, numbers.data());
    for (int64_t row = 3; row < 7; ++row) {
      for (int64_t i = 0; i < 75; ++i) {
        const int64_t place = i / 32 * 32 + i % 2 * 16 + i % 32 / 2;
        ASSERT_NEAR(static_cast<double>(numbers[static_cast<size_t>((row - 3) * step + place)]), weights.number(row, i),
                    1e-5)
            << row << ", " << i;
      }
    }
  }
  set_vector_level_for_tests(widest);
}

}  // namespace nibble_products_test
}  // namespace parallax::runtime
