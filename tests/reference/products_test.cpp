// Sums of products against the plain loop, bit for bit: the kernels may differ in speed only.
#include "reference/ops/products.h"

#include <bit>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace parallax::reference {
namespace {

struct Case {
  int64_t rows, columns, depth;
  bool is_exact;
};

// Numbers of 24 bits of very unequal size, or of 53.
std::vector<double> numbers(int64_t count, bool is_exact, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::uniform_int_distribution<int> exponent(-12, 12);
  std::vector<double> values(static_cast<size_t>(count));
  for (double& value : values) {
    value = std::ldexp(normal(random), exponent(random));
    if (is_exact) value = static_cast<double>(static_cast<float>(value));
  }
  return values;
}

class Products : public testing::TestWithParam<Case> {};

TEST_P(Products, AreThoseOfThePlainLoop) {
  const auto [rows, columns, depth, is_exact] = GetParam();
  const auto a = numbers(rows * depth, is_exact, 1), b = numbers(depth * columns, is_exact, 2);
  std::vector<double> out(static_cast<size_t>(rows * columns));
  ProductSpec<double> spec;
  spec.rows = rows;
  spec.columns = columns;
  spec.depth = depth;
  spec.has_exact_products = is_exact;
  spec.load_row = [&, depth = depth](int64_t row, std::span<double> values) {
    std::copy_n(a.begin() + row * depth, depth, values.begin());
  };
  spec.load_columns = [&, depth = depth, columns = columns](int64_t first, int64_t width, std::span<double> panel) {
    for (int64_t k = 0; k < depth; ++k) std::copy_n(b.begin() + k * columns + first, width, panel.begin() + k * width);
  };
  spec.store = [&, columns = columns](int64_t row, int64_t first, std::span<const double> values) {
    std::copy(values.begin(), values.end(), out.begin() + row * columns + first);
  };
  sum_products(spec);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      volatile double sum = 0;  // volatile: a product is stored, and so rounded, before it is added
      for (int64_t k = 0; k < depth; ++k) {
        const volatile double product =
            a[static_cast<size_t>(row * depth + k)] * b[static_cast<size_t>(k * columns + column)];
        sum = sum + product;
      }
      ASSERT_EQ(std::bit_cast<uint64_t>(out[static_cast<size_t>(row * columns + column)]),
                std::bit_cast<uint64_t>(static_cast<double>(sum)))
          << row << ", " << column;
    }
  }
}

// Below, at and above the sizes of tiles (4 rows), panels (32 columns), stretches (64 deep) and tasks (64 by 256).
INSTANTIATE_TEST_SUITE_P(Sizes, Products,
                         testing::Values(Case{1, 1, 1, true}, Case{3, 5, 7, true}, Case{4, 32, 64, true},
                                         Case{65, 257, 65, true}, Case{130, 33, 200, true}, Case{1, 300, 129, true},
                                         Case{5, 31, 0, true}, Case{3, 5, 7, false}, Case{65, 257, 65, false},
                                         Case{7, 40, 300, false}));

}  // namespace
}  // namespace parallax::reference
