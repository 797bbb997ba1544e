// SPDX-License-Identifier: Apache-2.0
// Products of 16-bit numbers equal those of the loops, for every rest of tiles, panels, blocks and pairs.
#include "runtime/device/cpu/products/quantized_panels.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/device/cpu/products/gemm_kernels.h"

namespace parallax::runtime {
namespace quantized_panels_test {

struct Matrix {
  std::vector<std::byte> quantized;
  std::vector<int64_t> numbers;  // that the quantized values represent
  QuantizedMatrix matrix;
  Matrix(int64_t count, bool is_signed, int32_t zero, unsigned seed)
      : quantized(static_cast<size_t>(count)),
        numbers(static_cast<size_t>(count)),
        matrix{quantized.data(), is_signed, zero} {
    std::mt19937 engine(seed);
    for (size_t i = 0; i < quantized.size(); ++i) {
      const int value = static_cast<int>(engine() % 256) - (is_signed ? 128 : 0);
      quantized[i] = static_cast<std::byte>(value);
      numbers[i] = value - zero;
    }
  }
};

TEST(QuantizedPanels, EqualTheLoops) {
  if (!has_quantized_panels()) GTEST_SKIP() << "this processor has no AVX2";
  for (const int64_t m : {1, 2, 3, 4, 5, 6, 7, 97, 193}) {
    for (const int64_t n : {1, 15, 16, 17, 40}) {
      for (const int64_t k : {1, 2, 15, 16, 33, 511, 512, 513, 1025}) {
        const bool is_signed = (m + n + k) % 2 == 0;
        const Matrix a(m * k, is_signed, is_signed ? -128 : 255, 1), b(k * n, !is_signed, is_signed ? 0 : 127, 2);
        std::vector<int16_t> rows(static_cast<size_t>(quantized_row_numbers(m, k)), 77);
        std::vector<int16_t> panels(static_cast<size_t>(quantized_panel_numbers(n, k)), 77);
        pack_quantized_rows(m, k, a.matrix, rows.data());
        pack_quantized_panels(n, k, b.matrix, panels.data());
        std::vector<int32_t> c(static_cast<size_t>(m * n), -1);
        multiply_quantized_panels(m, n, k, rows.data(), panels.data(), c.data());
        std::vector<int64_t> expected(c.size());
        gemm_integers(m, n, k, a.numbers.data(), b.numbers.data(), expected.data());
        ASSERT_EQ(std::vector<int64_t>(c.begin(), c.end()), expected) << m << " " << n << " " << k;
      }
    }
  }
}

}  // namespace quantized_panels_test
}  // namespace parallax::runtime
