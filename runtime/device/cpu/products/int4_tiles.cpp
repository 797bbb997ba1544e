// SPDX-License-Identifier: Apache-2.0
// Many rows by weights of 4 bits: panels of some columns are unpacked to floats, which stay in the caches while all
// rows meet them. A sum is made of runs of at most kInt4RunDepth products in the order of k.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "inspector/base/thread_pool.h"
#include "inspector/base/transpose_block.h"
#include "runtime/device/cpu/aligned_numbers.h"
#include "runtime/device/cpu/multiversion.h"
#include "runtime/device/cpu/products/int4_gemm.h"

namespace parallax::runtime {
namespace {

constexpr int64_t kInt4PanelColumns = 32;  // [depth, kInt4PanelColumns]
constexpr int64_t kInt4RunDepth = 1024;    // of a panel: 128 KiB, which the second cache holds
constexpr int64_t kPanelsAtOnce = 2;       // by one thread, for each tile of rows that it fetches

// ---- Unpacking ----

constexpr int64_t kUnitBytes = kInt4Unit / 2;
constexpr int64_t kColumnsAtOnce = kTransposeLanes<uint8_t>;

// The quantized values, scales and zeros of one unit of some columns.
struct UnitColumns {
  uint8_t bytes[kUnitBytes][kColumnsAtOnce];
  float scales[kColumnsAtOnce] = {};
  float zeros[kColumnsAtOnce] = {};
};

void load_unit(const Int4Matrix& b, int64_t column, int64_t count, int64_t k, UnitColumns& unit) {
  const int64_t blocks = b.blocks(), step = b.row_step() / 2;
  const auto* quantized = reinterpret_cast<const uint8_t*>(b.quantized) + column * step + k / 2;
  if (count == kColumnsAtOnce) {
    transpose_block(unit.bytes[0], kColumnsAtOnce, quantized, step);
  } else {
    uint8_t rows[kColumnsAtOnce][kUnitBytes] = {};
    for (int64_t i = 0; i < count; ++i) std::memcpy(rows[i], quantized + i * step, kUnitBytes);
    transpose_block(unit.bytes[0], kColumnsAtOnce, rows[0], kUnitBytes);
  }
  for (int64_t i = 0; i < count; ++i) {
    const int64_t block = (column + i) * blocks + k / b.block_size;
    unit.scales[i] = b.scales[block];
    unit.zeros[i] = b.zeros == nullptr ? b.middle() : b.zeros[block];
  }
}

// Rows [k, k + depth) of the transposed matrix, both multiples of a unit; columns after the last one are zeros.
void unpack_panel(const Int4Matrix& b, int64_t column, int64_t k, int64_t depth, float* panel) {
  vectorized(0, depth / kInt4Unit, [&b, column, k, panel](int64_t begin, int64_t end) {
    for (int64_t first = 0; first < kInt4PanelColumns; first += kColumnsAtOnce) {
      const int64_t count = std::clamp<int64_t>(b.n - column - first, 0, kColumnsAtOnce);
      UnitColumns unit;
      for (int64_t number = begin; number < end; ++number) {
        load_unit(b, column + first, count, k + number * kInt4Unit, unit);
        float* const to = panel + number * kInt4Unit * kInt4PanelColumns + first;
        for (int64_t byte = 0; byte < kUnitBytes; ++byte) {
          float* const low = to + 2 * byte * kInt4PanelColumns;
          float* const high = low + kInt4PanelColumns;
          PX_INDEPENDENT_ITERATIONS
          for (int64_t i = 0; i < kColumnsAtOnce; ++i) {
            const int32_t pair = unit.bytes[byte][i];
            low[i] = (static_cast<float>(pair & 15) - unit.zeros[i]) * unit.scales[i];
            high[i] = (static_cast<float>(pair >> 4) - unit.zeros[i]) * unit.scales[i];
          }
        }
      }
    }
  });
}

// ---- Products ----

// y [rows, kInt4PanelColumns] = a [rows, depth] panel, or y + a panel.
struct PanelProduct {
  const float* a;
  int64_t a_step;
  const float* panel;
  int64_t depth;
  float* y;
  int64_t y_step;
  bool adds;
};

template <int kRows>
void multiply_panel_baseline(const PanelProduct& product) {
  for (int row = 0; row < kRows; ++row) {
    float sums[kInt4PanelColumns] = {};
    for (int64_t i = 0; i < product.depth; ++i) {
      const float left = product.a[row * product.a_step + i];
      for (int64_t column = 0; column < kInt4PanelColumns; ++column)
        sums[column] = std::fma(left, product.panel[i * kInt4PanelColumns + column], sums[column]);
    }
    float* const y = product.y + row * product.y_step;
    for (int64_t column = 0; column < kInt4PanelColumns; ++column)
      y[column] = product.adds ? y[column] + sums[column] : sums[column];
  }
}

#ifdef __x86_64__

// Half of the columns after the other: for their sums the 16 registers do.
template <int kRows>
__attribute__((target("avx2,fma"))) void multiply_panel_avx2(const PanelProduct& product) {
  for (int64_t half = 0; half < kInt4PanelColumns; half += 16) {
    const float* const panel = product.panel + half;
    __m256 sums[kRows][2];
#pragma GCC unroll 6
    for (int row = 0; row < kRows; ++row) sums[row][0] = sums[row][1] = _mm256_setzero_ps();
    for (int64_t i = 0; i < product.depth; ++i) {
      const __m256 first = _mm256_loadu_ps(panel + i * kInt4PanelColumns);
      const __m256 second = _mm256_loadu_ps(panel + i * kInt4PanelColumns + 8);
#pragma GCC unroll 6
      for (int row = 0; row < kRows; ++row) {
        const __m256 left = _mm256_broadcast_ss(product.a + row * product.a_step + i);
        sums[row][0] = _mm256_fmadd_ps(left, first, sums[row][0]);
        sums[row][1] = _mm256_fmadd_ps(left, second, sums[row][1]);
      }
    }
#pragma GCC unroll 6
    for (int row = 0; row < kRows; ++row) {
      float* const y = product.y + row * product.y_step + half;
#pragma GCC unroll 2
      for (int part = 0; part < 2; ++part) {
        const __m256 sum = sums[row][part];
        _mm256_storeu_ps(y + part * 8, product.adds ? _mm256_add_ps(_mm256_loadu_ps(y + part * 8), sum) : sum);
      }
    }
  }
}

template <int kRows>
__attribute__((target("avx512f"))) void multiply_panel_avx512(const PanelProduct& product) {
  __m512 sums[kRows][2];
#pragma GCC unroll 12
  for (int row = 0; row < kRows; ++row) sums[row][0] = sums[row][1] = _mm512_setzero_ps();
  for (int64_t i = 0; i < product.depth; ++i) {
    const __m512 first = _mm512_loadu_ps(product.panel + i * kInt4PanelColumns);
    const __m512 second = _mm512_loadu_ps(product.panel + i * kInt4PanelColumns + 16);
#pragma GCC unroll 12
    for (int row = 0; row < kRows; ++row) {
      const __m512 left = _mm512_set1_ps(product.a[row * product.a_step + i]);
      sums[row][0] = _mm512_fmadd_ps(left, first, sums[row][0]);
      sums[row][1] = _mm512_fmadd_ps(left, second, sums[row][1]);
    }
  }
#pragma GCC unroll 12
  for (int row = 0; row < kRows; ++row) {
    float* const y = product.y + row * product.y_step;
#pragma GCC unroll 2
    for (int part = 0; part < 2; ++part) {
      const __m512 sum = sums[row][part];
      _mm512_storeu_ps(y + part * 16, product.adds ? _mm512_add_ps(_mm512_loadu_ps(y + part * 16), sum) : sum);
    }
  }
}

#endif

using MultiplyPanel = void (*)(const PanelProduct& product);

// For 1 up to as many rows as have their sums in registers.
struct PanelKernels {
  int64_t most_rows;
  const MultiplyPanel* of_rows;
};

PanelKernels panel_kernels() {
#ifdef __x86_64__
  static constexpr auto kAvx512 = []<int... I>(std::integer_sequence<int, I...>) {
    return std::array<MultiplyPanel, sizeof...(I)>{multiply_panel_avx512<I + 1>...};
  }
  (std::make_integer_sequence<int, 12>());
  static constexpr auto kAvx2 = []<int... I>(std::integer_sequence<int, I...>) {
    return std::array<MultiplyPanel, sizeof...(I)>{multiply_panel_avx2<I + 1>...};
  }
  (std::make_integer_sequence<int, 6>());
  if (vector_level() == VectorLevel::avx512) return {std::ssize(kAvx512), kAvx512.data()};
  if (vector_level() == VectorLevel::avx2) return {std::ssize(kAvx2), kAvx2.data()};
#endif
  static constexpr MultiplyPanel kBaseline[] = {multiply_panel_baseline<1>};
  return {1, kBaseline};
}

// Multiplies `columns` columns of the panel.
void multiply_part(MultiplyPanel multiply, PanelProduct product, int64_t rows, int64_t columns) {
  if (columns == kInt4PanelColumns) return multiply(product);
  constexpr int64_t kMostRows = 12;
  alignas(64) float sums[kMostRows * kInt4PanelColumns];
  float* const y = std::exchange(product.y, sums);
  const int64_t step = std::exchange(product.y_step, kInt4PanelColumns);
  const bool adds = std::exchange(product.adds, false);
  multiply(product);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      const float sum = sums[row * kInt4PanelColumns + column];
      y[row * step + column] = adds ? y[row * step + column] + sum : sum;
    }
  }
}

}  // namespace

void multiply_unpacked_int4(int64_t m, const float* a, const Int4Matrix& b, float* y) {
  constexpr int64_t kPartColumns = kPanelsAtOnce * kInt4PanelColumns;
  const PanelKernels kernels = panel_kernels();
  const int64_t parts = (b.n + kPartColumns - 1) / kPartColumns;
  parallel_for(parts, kPartColumns * b.k * m / 16 + 1, [&](int64_t begin, int64_t end) {
    auto panels = AlignedFloats::of_task(kPartColumns * kInt4RunDepth);
    for (int64_t part = begin; part < end; ++part) {
      const int64_t last = std::min(b.n, (part + 1) * kPartColumns);
      for (int64_t k = 0; k < b.k; k += kInt4RunDepth) {
        const int64_t padded = std::min(kInt4RunDepth, b.row_step() - k), depth = std::min(kInt4RunDepth, b.k - k);
        for (int64_t column = part * kPartColumns; column < last; column += kInt4PanelColumns)
          unpack_panel(b, column, k, padded, panels.data() + column % kPartColumns * kInt4RunDepth);
        for (int64_t row = 0; row < m; row += kernels.most_rows) {
          const int64_t rows = std::min(kernels.most_rows, m - row);
          for (int64_t column = part * kPartColumns; column < last; column += kInt4PanelColumns) {
            const float* const panel = panels.data() + column % kPartColumns * kInt4RunDepth;
            const PanelProduct product{a + row * b.k + k, b.k, panel, depth, y + row * b.n + column, b.n, k > 0};
            multiply_part(kernels.of_rows[rows - 1], product, rows, std::min(kInt4PanelColumns, last - column));
          }
        }
      }
    }
  });
}

}  // namespace parallax::runtime
