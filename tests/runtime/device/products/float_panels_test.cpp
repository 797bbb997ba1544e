// SPDX-License-Identifier: Apache-2.0
// Products by panels against sums in double, for every rest of tiles, panels, bands and runs, and for rows stored in
// segments; no bit depends on the number of threads or on adjacent rows.
#include "runtime/device/cpu/products/float_panels.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/device/cpu/multiversion.h"
#include "tests/runtime/device/random_values.h"

namespace parallax::runtime {
namespace float_panels_test {

class FloatPanels : public testing::Test {
 protected:
  void SetUp() override {
    if (level_before_ == VectorLevel::avx512) set_vector_level_for_tests(VectorLevel::avx2);
    if (!has_float_panels()) GTEST_SKIP() << "this processor has no AVX2 and FMA";
  }
  void TearDown() override { set_vector_level_for_tests(level_before_); }

 private:
  VectorLevel level_before_ = vector_level();
};

AlignedFloats packed(int64_t n, int64_t k, const std::vector<float>& b, bool transposed) {
  AlignedFloats panels(float_panel_numbers(n, k));
  pack_float_panels(n, k, b.data(), transposed ? 1 : n, transposed ? k : 1, panels.data());
  return panels;
}

std::vector<float> product_of(const PanelRows& rows, int64_t n, const AlignedFloats& panels, int threads) {
  std::vector<float> c(static_cast<size_t>(rows.count * n), NAN);
  multiply_float_panels(rows, n, panels.data(), threads, nullptr, c.data());
  return c;
}

PanelRows rows_of(int64_t m, int64_t k, const std::vector<float>& a) {
  PanelRows rows;
  rows.count = m;
  rows.depth = rows.step = k;
  rows.base = a.data();
  return rows;
}

TEST_F(FloatPanels, ARowIsSummedInTheOrderOfK) {
  for (const int64_t n : {1, 8, 17, 24, 25, 72, 96, 97, 130, 1021}) {
    for (const int64_t k : {1, 3, 4, 67, 2051}) {
      const auto a = random_values<float>(k, 1), b = random_values<float>(k * n, 2);
      std::vector<float> expected(static_cast<size_t>(n), 0.0F), c(static_cast<size_t>(n), NAN);
      for (int64_t i = 0; i < k; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          float& sum = expected[static_cast<size_t>(j)];
          sum = std::fma(a[static_cast<size_t>(i)], b[static_cast<size_t>(i * n + j)], sum);
        }
      }
      multiply_row_by_float_panels(a.data(), n, k, packed(n, k, b, false).data(), c.data());
      EXPECT_EQ(c, expected) << "n " << n << ", k " << k;
    }
  }
}

TEST_F(FloatPanels, EqualSumsInDouble) {
  for (const int64_t m : {1, 2, 3, 4, 5, 7, 13, 240, 241, 500}) {
    for (const int64_t n : {1, 8, 9, 16, 23, 24, 25, 40, 55}) {
      for (const int64_t k : {1, 3, 4, 67, 1024, 1025, 2051}) {
        if (m * n * k > 20'000'000) continue;
        const auto a = random_values<float>(m * k, 1), b = random_values<float>(k * n, 2);
        const bool transposed = (m + n + k) % 2 == 0;
        const auto c = product_of(rows_of(m, k, a), n, packed(n, k, b, transposed), 2);
        for (const int64_t i : {int64_t{0}, m / 2, m - 1}) {
          for (int64_t j = 0; j < n; ++j) {
            double sum = 0, size = 0;
            for (int64_t l = 0; l < k; ++l) {
              const double term = static_cast<double>(a[static_cast<size_t>(i * k + l)]) *
                                  static_cast<double>(b[static_cast<size_t>(transposed ? j * k + l : l * n + j)]);
              sum += term;
              size += std::abs(term);
            }
            ASSERT_NEAR(static_cast<double>(c[static_cast<size_t>(i * n + j)]), sum, 1e-6 * size)
                << m << " " << n << " " << k << " at " << i << " " << j;
          }
        }
      }
    }
  }
}

TEST_F(FloatPanels, NoBitDependsOnThreadsOrOtherRows) {
  constexpr int64_t kRows = 523, kColumns = 77, kDepth = 1500;
  const auto a = random_values<float>(kRows * kDepth, 1), b = random_values<float>(kDepth * kColumns, 2);
  const AlignedFloats panels = packed(kColumns, kDepth, b, false);
  const auto whole = product_of(rows_of(kRows, kDepth, a), kColumns, panels, 1);
  EXPECT_EQ(product_of(rows_of(kRows, kDepth, a), kColumns, panels, 3), whole);
  for (const int64_t row : {0, 1, 6, 522}) {
    PanelRows one = rows_of(1, kDepth, a);
    one.base += row * kDepth;
    const auto from = whole.begin() + row * kColumns;
    EXPECT_EQ(product_of(one, kColumns, panels, 2), std::vector<float>(from, from + kColumns)) << row;
  }
}

// Three segments a row, some of which are zeros: the same as rows in one piece.
TEST_F(FloatPanels, RowsMayLieInSegments) {
  constexpr int64_t kRows = 29, kSegments = 3, kColumns = 41;
  for (const int64_t depth : {5, 400, 1500}) {
    const auto pool = random_values<float>(50 * depth, 1), b = random_values<float>(kSegments * depth * kColumns, 2);
    std::vector<int32_t> offsets;
    std::vector<float> joined(static_cast<size_t>(kRows * kSegments * depth));
    for (int64_t segment = 0; segment < kSegments; ++segment) {
      for (int64_t row = 0; row < kRows; ++row) {
        const int64_t location = (row * 7 + segment * 11) % 50;
        const bool is_zero = (row + segment) % 5 == 0;
        offsets.push_back(is_zero ? -1 : static_cast<int32_t>(location * depth));
        if (!is_zero)
          std::copy_n(pool.begin() + location * depth, depth, joined.begin() + (row * kSegments + segment) * depth);
      }
    }
    const std::vector<float> zeros(static_cast<size_t>(depth));
    PanelRows rows;
    rows.count = kRows;
    rows.segments = kSegments;
    rows.depth = depth;
    rows.base = pool.data();
    rows.offsets = offsets.data();
    rows.zeros = zeros.data();
    const AlignedFloats panels = packed(kColumns, kSegments * depth, b, false);
    const auto c = product_of(rows, kColumns, panels, 2);
    const auto expected = product_of(rows_of(kRows, kSegments * depth, joined), kColumns, panels, 1);
    for (size_t i = 0; i < c.size(); ++i) ASSERT_NEAR(c[i], expected[i], 1e-3) << depth << " " << i;
  }
}

// Every element is handed out once, when its sum is complete.
TEST_F(FloatPanels, PartsAreFinishedOnce) {
  constexpr int64_t kRows = 250, kColumns = 30, kDepth = 1100;
  const auto a = random_values<float>(kRows * kDepth, 1), b = random_values<float>(kDepth * kColumns, 2);
  const AlignedFloats panels = packed(kColumns, kDepth, b, false);
  const auto expected = product_of(rows_of(kRows, kDepth, a), kColumns, panels, 1);
  std::vector<float> c(expected.size(), NAN), seen(expected.size(), NAN);
  const auto finish = [&](int64_t row, int64_t rows, int64_t column, int64_t columns) {
    for (int64_t i = row; i < row + rows; ++i) {
      for (int64_t j = column; j < column + columns; ++j) {
        const size_t at = static_cast<size_t>(i * kColumns + j);
        seen[at] = std::isnan(seen[at]) ? c[at] : -1.0F;
      }
    }
  };
  multiply_float_panels(rows_of(kRows, kDepth, a), kColumns, panels.data(), 3, finish, c.data());
  EXPECT_EQ(seen, expected);
  EXPECT_EQ(c, expected);
}

}  // namespace float_panels_test
}  // namespace parallax::runtime
