// SPDX-License-Identifier: Apache-2.0
// Columns spread over threads; each sum runs along k in one order.
#include "runtime/device/cpu/products/gemm_kernels.h"

#include <algorithm>
#include <cmath>

#include "inspector/base/thread_pool.h"
#include "runtime/device/cpu/multiversion.h"
#include "runtime/device/cpu/products/lane_sums.h"
#include "runtime/device/cpu/rows/rows.h"

namespace parallax::runtime {
namespace {

constexpr int64_t kStripColumns = 4096;  // of float sums: long runs of each row of b, sums in the nearest caches
constexpr int64_t kDepths = 8;           // rows of b walked at once: their sums are loaded and stored once
constexpr int64_t kSharedColumns = 512;  // of kDepths rows of b, which stay near while each row of a reads them

// Partial sums of a dot product (more than 16: GCC unrolls a loop of so few before it would make vectors of it), and
// the columns that are summed at once: their eight vectors of AVX2 hide how long an addition takes.
constexpr int64_t kDotLanes = 32;
constexpr int64_t kDotColumns = 2;

// The sum of all lanes and of the last `rest` products, which fill no row of lanes.
inline float total_of(float* sums, const float* a, const float* b, int64_t rest) {
  for (int64_t lane = 0; lane < rest; ++lane) sums[lane] += a[lane] * b[lane];
  for (int64_t lane = 0; lane < 16; ++lane) sums[lane] += sums[lane + 16];
  return sum_of_sixteen(sums);
}
static_assert(kDotLanes == 32);  // as total_of() has it

// out[column - begin] = the product of a and that column of b, whose k numbers are contiguous. A sum has the same order
// whichever columns are next to it.
void dots(const float* a, const float* b, int64_t k, int64_t begin, int64_t end, float* out) {
  vectorized(begin, end, [=](int64_t first, int64_t last) {
    const int64_t whole = k / kDotLanes * kDotLanes, rest = k - whole;
    static constexpr float kZeros[kDotLanes] = {};
    const float* const start = whole > 0 ? a : kZeros;
    for (int64_t column = first; column < last; column += kDotColumns) {
      const float* const b0 = b + column * k;
      const float* const b1 = column + 1 < last ? b0 + k : b0;
      const float* const start0 = whole > 0 ? b0 : kZeros;
      const float* const start1 = whole > 0 ? b1 : kZeros;
      float lanes0[kDotLanes], lanes1[kDotLanes];
      for (int64_t lane = 0; lane < kDotLanes; ++lane) {
        lanes0[lane] = 0.0F + start[lane] * start0[lane];
        lanes1[lane] = 0.0F + start[lane] * start1[lane];
      }
      for (int64_t i = kDotLanes; i < whole; i += kDotLanes) {
        for (int64_t lane = 0; lane < kDotLanes; ++lane) {
          lanes0[lane] += a[i + lane] * b0[i + lane];
          lanes1[lane] += a[i + lane] * b1[i + lane];
        }
      }
      float* const results = out + (column - first);
      results[0] = total_of(lanes0, a + whole, b0 + whole, rest);
      if (column + 1 < last) results[1] = total_of(lanes1, a + whole, b1 + whole, rest);
    }
  });
}

float scaled(float sum, float alpha, float beta, float old) {
  return beta == 0.0F ? alpha * sum : alpha * sum + beta * old;
}

// sums[i] += factors[0] * values[i] + ... + factors[kDepths - 1] * values[(kDepths - 1) * n + i], one after the other.
void add_depths(const float* factors, const float* values, int64_t n, int64_t count, float* sums) {
  vectorized(0, count, [=](int64_t begin, int64_t end) {
    float local[kDepths];
    for (int64_t depth = 0; depth < kDepths; ++depth) local[depth] = factors[depth];
    PX_INDEPENDENT_ITERATIONS
    for (int64_t i = begin; i < end; ++i) {
      float sum = sums[i];
      for (int64_t depth = 0; depth < kDepths; ++depth) sum = std::fma(local[depth], values[depth * n + i], sum);
      sums[i] = sum;
    }
  });
}

void add_depth(float factor, const float* values, int64_t count, float* sums) {
  vectorized(0, count, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) sums[i] = std::fma(factor, values[i], sums[i]);
  });
}

void few_rows_tile(int64_t m, int64_t n, int64_t k, const float* a, const float* b, float alpha, float beta, float* c,
                   int64_t column, int64_t count) {
  alignas(64) float sums[kFewRows][kStripColumns];
  for (int64_t row = 0; row < m; ++row) std::fill_n(sums[row], count, 0.0F);
  const int64_t whole = k / kDepths * kDepths;
  const int64_t step = m == 1 ? count : kSharedColumns;
  for (int64_t depth = 0; depth < whole; depth += kDepths) {
    const float* values = b + depth * n + column;
    for (int64_t first = 0; first < count; first += step) {
      const int64_t width = std::min(step, count - first);
      for (int64_t row = 0; row < m; ++row)
        add_depths(a + row * k + depth, values + first, n, width, sums[row] + first);
    }
  }
  for (int64_t depth = whole; depth < k; ++depth) {
    for (int64_t row = 0; row < m; ++row) add_depth(a[row * k + depth], b + depth * n + column, count, sums[row]);
  }
  for (int64_t row = 0; row < m; ++row) {
    float* out = c + row * n + column;
    for (int64_t i = 0; i < count; ++i) out[i] = scaled(sums[row][i], alpha, beta, out[i]);
  }
}

}  // namespace

void gemm_few_rows(int64_t m, int64_t n, int64_t k, const float* a, const float* b, bool transpose_b, float alpha,
                   float beta, float* c) {
  if (transpose_b) {
    parallel_for(n, m * k / 4 + 1, [&](int64_t begin, int64_t end) {
      constexpr int64_t kColumns = 64;  // that stay near while each row of a reads them
      float sums[kColumns];
      for (int64_t column = begin; column < end; column += kColumns) {
        const int64_t count = std::min(kColumns, end - column);
        for (int64_t row = 0; row < m; ++row) {
          dots(a + row * k, b, k, column, column + count, sums);
          float* const out = c + row * n + column;
          for (int64_t i = 0; i < count; ++i) out[i] = scaled(sums[i], alpha, beta, out[i]);
        }
      }
    });
    return;
  }
  const int64_t share = (n / thread_count() + 63) / 64 * 64;
  const int64_t row_tile_columns = std::clamp<int64_t>(share, kSharedColumns, kStripColumns);
  const int64_t row_tiles = (n + row_tile_columns - 1) / row_tile_columns;
  parallel_for(row_tiles, m * k * std::min(n, row_tile_columns) / 8 + 1, [&](int64_t begin, int64_t end) {
    for (int64_t row_tile = begin; row_tile < end; ++row_tile) {
      const int64_t column = row_tile * row_tile_columns;
      few_rows_tile(m, n, k, a, b, alpha, beta, c, column, std::min(row_tile_columns, n - column));
    }
  });
}

int64_t panel_floats(int64_t n, int64_t k) { return (n + kPanelColumns - 1) / kPanelColumns * kPanelColumns * k; }

void pack_panels(int64_t n, int64_t k, const float* b, bool transpose_b, float* panels) {
  parallel_for((n + kPanelColumns - 1) / kPanelColumns, kPanelColumns * k, [=](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel) {
      const int64_t column = panel * kPanelColumns, count = std::min(kPanelColumns, n - column);
      for (int64_t depth = 0; depth < k; ++depth) {
        float* const to = panels + (panel * k + depth) * kPanelColumns;
        for (int64_t i = 0; i < count; ++i)
          to[i] = transpose_b ? b[(column + i) * k + depth] : b[depth * n + column + i];
        std::fill(to + count, to + kPanelColumns, 0.0F);
      }
    }
  });
}

namespace {

// sums += a[0 .. count) times that many lines of a panel.
void add_panel(const float* a, const float* panel, int64_t count, float* sums) {
  vectorized(0, count, [=](int64_t begin, int64_t end) {
    float local[kPanelColumns];
    for (int64_t lane = 0; lane < kPanelColumns; ++lane) local[lane] = sums[lane];
    for (int64_t depth = begin; depth < end; ++depth) {
      const float factor = a[depth];
      const float* const line = panel + depth * kPanelColumns;
      for (int64_t lane = 0; lane < kPanelColumns; ++lane) local[lane] = std::fma(factor, line[lane], local[lane]);
    }
    for (int64_t lane = 0; lane < kPanelColumns; ++lane) sums[lane] = local[lane];
  });
}

// Adds a panel for two rows: the eight vectors of AVX2 that hide how long an addition takes.
void add_panel(const float* a0, const float* a1, const float* panel, int64_t count, float* sums0, float* sums1) {
  vectorized(0, count, [=](int64_t begin, int64_t end) {
    float local0[kPanelColumns], local1[kPanelColumns];
    for (int64_t lane = 0; lane < kPanelColumns; ++lane) local0[lane] = sums0[lane], local1[lane] = sums1[lane];
    for (int64_t depth = begin; depth < end; ++depth) {
      const float factor0 = a0[depth], factor1 = a1[depth];
      const float* const line = panel + depth * kPanelColumns;
      for (int64_t lane = 0; lane < kPanelColumns; ++lane) {
        local0[lane] = std::fma(factor0, line[lane], local0[lane]);
        local1[lane] = std::fma(factor1, line[lane], local1[lane]);
      }
    }
    for (int64_t lane = 0; lane < kPanelColumns; ++lane) sums0[lane] = local0[lane], sums1[lane] = local1[lane];
  });
}

// sums = a[0 .. depths) times all of two panels, whose sums hide together how long an addition takes. From memory they
// come as fast as they are asked for early.
void two_panels(const float* a, const float* panel0, const float* panel1, int64_t depths, float* sums) {
  constexpr int64_t kAhead = 64 * kPanelColumns;
  vectorized(0, depths, [=](int64_t begin, int64_t end) {
    float local0[kPanelColumns] = {}, local1[kPanelColumns] = {};
    for (int64_t depth = begin; depth < end; ++depth) {
      const float factor = a[depth];
      const float* const line0 = panel0 + depth * kPanelColumns;
      const float* const line1 = panel1 + depth * kPanelColumns;
      for (int64_t lane = 0; lane < kPanelColumns; lane += 16) {
        __builtin_prefetch(line0 + kAhead + lane);
        __builtin_prefetch(line1 + kAhead + lane);
      }
      for (int64_t lane = 0; lane < kPanelColumns; ++lane) {
        local0[lane] = std::fma(factor, line0[lane], local0[lane]);
        local1[lane] = std::fma(factor, line1[lane], local1[lane]);
      }
    }
    for (int64_t lane = 0; lane < kPanelColumns; ++lane) {
      sums[lane] = local0[lane];
      sums[kPanelColumns + lane] = local1[lane];
    }
  });
}

void row_by_panels(int64_t n, int64_t k, const float* a, const float* panels, float* c) {
  constexpr int64_t kColumns = 2 * kPanelColumns;
  const int64_t panel_count = (n + kPanelColumns - 1) / kPanelColumns;
  parallel_for((panel_count + 1) / 2, k * kColumns / 16 + 1, [=](int64_t begin, int64_t end) {
    alignas(64) float sums[kColumns];
    for (int64_t pair = begin; pair < end; ++pair) {
      const float* const first = panels + 2 * pair * kPanelColumns * k;
      const float* const second = 2 * pair + 1 < panel_count ? first + kPanelColumns * k : first;
      two_panels(a, first, second, k, sums);
      std::copy_n(sums, std::min(kColumns, n - pair * kColumns), c + pair * kColumns);
    }
  });
}

}  // namespace

void gemm_panels(int64_t m, int64_t n, int64_t k, const float* a, const float* panels, float* c) {
  if (m == 1) return row_by_panels(n, k, a, panels, c);
  constexpr int64_t kDepthsAtOnce = 128;  // 16 KiB of a panel, which the nearest cache holds for all rows
  parallel_for((n + kPanelColumns - 1) / kPanelColumns, m * k * kPanelColumns / 16 + 1,
               [=](int64_t begin, int64_t end) {
                 alignas(64) float sums[kMostPanelRows][kPanelColumns];
                 for (int64_t panel = begin; panel < end; ++panel) {
                   for (int64_t row = 0; row < m; ++row) std::fill_n(sums[row], kPanelColumns, 0.0F);
                   for (int64_t depth = 0; depth < k; depth += kDepthsAtOnce) {
                     const float* const lines = panels + (panel * k + depth) * kPanelColumns;
                     const int64_t count = std::min(kDepthsAtOnce, k - depth);
                     int64_t row = 0;
                     for (; row + 1 < m; row += 2) {
                       const float* const first = a + row * k + depth;
                       add_panel(first, first + k, lines, count, sums[row], sums[row + 1]);
                     }
                     if (row < m) add_panel(a + row * k + depth, lines, count, sums[row]);
                   }
                   const int64_t column = panel * kPanelColumns, count = std::min(kPanelColumns, n - column);
                   for (int64_t row = 0; row < m; ++row) std::copy_n(sums[row], count, c + row * n + column);
                 }
               });
}

void gemm_integers(int64_t m, int64_t n, int64_t k, const int64_t* a, const int64_t* b, int64_t* c) {
  parallel_for(m, n * k, [=](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      uint64_t* out = reinterpret_cast<uint64_t*>(c) + row * n;  // unsigned: wraps where signed would be undefined
      std::fill_n(out, n, uint64_t{0});
      for (int64_t depth = 0; depth < k; ++depth) {
        const uint64_t factor = static_cast<uint64_t>(a[row * k + depth]);
        const uint64_t* values = reinterpret_cast<const uint64_t*>(b) + depth * n;
        vectorized(0, n, [=](int64_t first, int64_t last) {
          for (int64_t i = first; i < last; ++i) out[i] += factor * values[i];
        });
      }
    }
  });
}

}  // namespace parallax::runtime
