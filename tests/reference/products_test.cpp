// SPDX-License-Identifier: Apache-2.0
// Sums of products against the plain loop, bit for bit: the kernels may differ in speed only.
#include "reference/kernels/products.h"

#include <algorithm>
#include <bit>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "inspector/base/thread_pool.h"
#include "reference/kernels/products_kernel.h"

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
  spec.store = [&, columns = columns](const SumsBlock<double>& sums) {
    for (int64_t row = 0; row < sums.rows; ++row)
      std::ranges::copy(sums.line(row), out.begin() + (sums.row + row) * columns + sums.column);
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

// Below, at and above the sizes of tiles (4 rows), panels (32 columns), stretches (64 deep) and what is held at once
// (2^18 numbers of the rows, 2^14 sums).
INSTANTIATE_TEST_SUITE_P(Sizes, Products,
                         testing::Values(Case{1, 1, 1, true}, Case{3, 5, 7, true}, Case{4, 32, 64, true},
                                         Case{65, 257, 65, true}, Case{130, 33, 200, true}, Case{1, 300, 129, true},
                                         Case{5, 31, 0, true}, Case{3, 5, 7, false}, Case{65, 257, 65, false},
                                         Case{7, 40, 300, false}, Case{600, 65, 20, true}, Case{37, 33, 8192, true}));

// One row over windows whose elements are at odd offsets, for widths around those of vectors and row tiles.
void expect_windows(WindowKernel<double> kernel, bool is_exact) {
  const std::vector<int64_t> offsets{0, 1, 2, 50, 51, 52, 101};
  const auto x = numbers(300, is_exact, 3), row = numbers(std::ssize(offsets), is_exact, 4);
  for (int64_t width : {1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 48, 63, 100}) {
    std::vector<double> sums(static_cast<size_t>(width + kPanelWidth), -1.0);
    kernel(row.data(), x.data(), offsets.data(), std::ssize(offsets), width, sums.data());
    for (int64_t column = 0; column < width; ++column) {
      volatile double sum = 0;
      for (size_t k = 0; k < offsets.size(); ++k) {
        const volatile double product = row[k] * x[static_cast<size_t>(offsets[k] + column)];
        sum = sum + product;
      }
      ASSERT_EQ(std::bit_cast<uint64_t>(sums[static_cast<size_t>(column)]),
                std::bit_cast<uint64_t>(static_cast<double>(sum)))
          << column << " of " << width;
    }
  }
}

TEST(Windows, AreThoseOfThePlainLoop) {
  expect_windows(exact_windows_kernel(), true);
  expect_windows(rounded_windows_kernel(), false);
}

TEST(EmptyProducts, OfNoColumnsStoreNothing) {
  set_thread_count(1);
  ProductSpec<double> spec;
  spec.rows = 3;
  spec.columns = 0;
  spec.depth = 2;
  spec.load_row = [](int64_t, std::span<double> values) { std::ranges::fill(values, 1.0); };
  spec.load_columns = [](int64_t, int64_t, std::span<double>) { FAIL(); };
  spec.store = [](const SumsBlock<double>&) { FAIL(); };
  sum_products(spec);
  set_thread_count(0);
}

// The samples of a recurrent operator: 1, 2 or 4 rows, from panels that need not be filled.
TEST(Rows, AreThoseOfThePlainLoop) {
  const int64_t depth = 37, width = 9;
  for (int64_t rows = 1; rows <= kTileRows; ++rows) {
    const RowsKernel kernel = rounded_rows_kernel(rows);
    ASSERT_GE(kernel.rows, rows);
    const auto a = numbers(depth * kernel.rows, false, 5);
    auto panel = numbers(depth * width, false, 6);
    const auto b = panel;
    panel.resize(static_cast<size_t>(depth * kPanelWidth));
    spread_panel(panel.data(), depth, width);
    std::vector<double> sums(static_cast<size_t>(kernel.rows * kPanelWidth), -1.0);
    kernel.run(a.data(), panel.data(), depth, sums.data(), kPanelWidth, false);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < width; ++column) {
        volatile double sum = 0;
        for (int64_t k = 0; k < depth; ++k) {
          const volatile double product =
              a[static_cast<size_t>(k * kernel.rows + row)] * b[static_cast<size_t>(k * width + column)];
          sum = sum + product;
        }
        ASSERT_EQ(sums[static_cast<size_t>(row * kPanelWidth + column)], static_cast<double>(sum));
      }
    }
  }
}

}  // namespace
}  // namespace parallax::reference
