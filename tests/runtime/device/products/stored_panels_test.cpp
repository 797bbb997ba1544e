// SPDX-License-Identifier: Apache-2.0
// Products with weights that stay float16, bfloat16 or int8, against sums in double of the numbers they stand for:
// every number of rows at once, the last panel, transposed matrices; no bit depends on the number of threads.
#include "runtime/device/cpu/products/stored_panels.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "inspector/base/thread_pool.h"
#include "runtime/device/cpu/blocks.h"
#include "tests/runtime/device/random_values.h"

namespace parallax::runtime {
namespace stored_panels_test {

void expect_stored_products(DType dtype, int64_t n, int64_t k, bool transposed) {
  const auto given = random_values<float>(k * n, 2, -9, 9);
  std::vector<std::byte> b(byte_size(dtype, k * n));
  store_block<float>(dtype, b.data(), 0, k * n, given.data());
  const int64_t row_step = transposed ? 1 : n, column_step = transposed ? k : 1;
  const StoredPanels panels = pack_stored_panels(dtype, n, k, b.data(), row_step, column_step);
  for (const int64_t m : {1, 2, 3, 4, 5, 7, 8, 9, 30}) {
    const auto a = random_values<float>(m * k, 3, -2, 2);
    std::vector<float> c(static_cast<size_t>(m * n), NAN), again(c);
    multiply_stored_panels(m, a.data(), panels, c.data());
    for (int64_t row = 0; row < m; ++row) {
      for (int64_t column = 0; column < n; ++column) {
        double sum = 0, size = 0;
        for (int64_t i = 0; i < k; ++i) {
          const auto number = load_element<double>(dtype, b.data(), i * row_step + column * column_step);
          const double term = static_cast<double>(a[static_cast<size_t>(row * k + i)]) * number;
          sum += term;
          size += std::fabs(term);
        }
        ASSERT_NEAR(static_cast<double>(c[static_cast<size_t>(row * n + column)]), sum, 1e-6 * size + 1e-9)
            << m << " x " << n << " x " << k << " at " << row << ", " << column;
      }
    }
    set_thread_count(3);
    multiply_stored_panels(m, a.data(), panels, again.data());
    set_thread_count(0);
    EXPECT_EQ(again, c) << m << " rows";
  }
}

TEST(StoredPanels, EqualTheNumbersTheyStandFor) {
  for (const DType dtype : {DType::float16, DType::bfloat16, DType::int8}) {
    if (!has_stored_panels(dtype)) GTEST_SKIP() << "this processor has no AVX2, FMA and F16C, or it has AVX-512";
    for (const int64_t n : {1, 24, 25, 130}) {
      for (const int64_t k : {1, 67, 1030}) {
        expect_stored_products(dtype, n, k, false);
        expect_stored_products(dtype, n, k, true);
      }
    }
  }
}

}  // namespace stored_panels_test
}  // namespace parallax::runtime
