// Many rows by weights of 4 bits: some columns at a time are unpacked to floats, which stay in the caches while all
// rows meet them, in tiles of sums of products along both operands. Sixteen sums a place, as for few rows.
#include <algorithm>
#include <cmath>

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "inspector/base/thread_pool.h"
#include "runtime/device/float_panels.h"
#include "runtime/device/lane_sums.h"
#include "runtime/device/multiversion.h"
#include "runtime/device/nibble_products.h"

namespace parallax::runtime {
namespace {

constexpr int64_t kTileSide = 4;          // rows and columns of a tile
constexpr int64_t kTileLanes = 16;        // sums of a place, side by side
constexpr int64_t kTileDepth = 1024;      // of both operands: 32 KiB of a tile's, which the nearest cache holds
constexpr int64_t kUnpackedColumns = 64;  // at once, by one thread

// The four rows and four columns of a tile, from a place in their depth on.
struct TileOperands {
  const float* rows[kTileSide];
  const float* columns[kTileSide];
  int64_t depth;  // a multiple of kTileLanes
};
using TileSums = float[kTileSide][kTileSide][kTileLanes];

void sum_tile_baseline(const TileOperands& tile, TileSums& sums) {
  for (int64_t r = 0; r < kTileSide; ++r) {
    for (int64_t c = 0; c < kTileSide; ++c) {
      std::fill_n(sums[r][c], kTileLanes, 0.0F);
      for (int64_t i = 0; i < tile.depth; i += kTileLanes) {
        for (int64_t lane = 0; lane < kTileLanes; ++lane)
          sums[r][c][lane] = std::fma(tile.rows[r][i + lane], tile.columns[c][i + lane], sums[r][c][lane]);
      }
    }
  }
}

#ifdef __x86_64__

// Two columns and half of the lanes, for which the 16 registers do.
__attribute__((target("avx2,fma"))) void sum_half_tile_avx2(const TileOperands& tile, int64_t column, int64_t lane,
                                                            TileSums& sums) {
  __m256 local[kTileSide][2];
#pragma GCC unroll 4
  for (int64_t r = 0; r < kTileSide; ++r) local[r][0] = local[r][1] = _mm256_setzero_ps();
  for (int64_t i = lane; i < tile.depth; i += kTileLanes) {
    const __m256 first = _mm256_loadu_ps(tile.columns[column] + i);
    const __m256 second = _mm256_loadu_ps(tile.columns[column + 1] + i);
#pragma GCC unroll 4
    for (int64_t r = 0; r < kTileSide; ++r) {
      const __m256 row = _mm256_loadu_ps(tile.rows[r] + i);
      local[r][0] = _mm256_fmadd_ps(row, first, local[r][0]);
      local[r][1] = _mm256_fmadd_ps(row, second, local[r][1]);
    }
  }
#pragma GCC unroll 4
  for (int64_t r = 0; r < kTileSide; ++r) {
    _mm256_storeu_ps(sums[r][column] + lane, local[r][0]);
    _mm256_storeu_ps(sums[r][column + 1] + lane, local[r][1]);
  }
}

__attribute__((target("avx512f"))) void sum_tile_avx512(const TileOperands& tile, TileSums& sums) {
  __m512 local[kTileSide][kTileSide];
#pragma GCC unroll 4
  for (int64_t r = 0; r < kTileSide; ++r) {
#pragma GCC unroll 4
    for (int64_t c = 0; c < kTileSide; ++c) local[r][c] = _mm512_setzero_ps();
  }
  for (int64_t i = 0; i < tile.depth; i += kTileLanes) {
    __m512 columns[kTileSide];
#pragma GCC unroll 4
    for (int64_t c = 0; c < kTileSide; ++c) columns[c] = _mm512_loadu_ps(tile.columns[c] + i);
#pragma GCC unroll 4
    for (int64_t r = 0; r < kTileSide; ++r) {
      const __m512 row = _mm512_loadu_ps(tile.rows[r] + i);
#pragma GCC unroll 4
      for (int64_t c = 0; c < kTileSide; ++c) local[r][c] = _mm512_fmadd_ps(row, columns[c], local[r][c]);
    }
  }
#pragma GCC unroll 4
  for (int64_t r = 0; r < kTileSide; ++r) {
#pragma GCC unroll 4
    for (int64_t c = 0; c < kTileSide; ++c) _mm512_storeu_ps(sums[r][c], local[r][c]);
  }
}

#endif

void sum_tile(const TileOperands& tile, TileSums& sums) {
#ifdef __x86_64__
  if (vector_level() == VectorLevel::avx512) return sum_tile_avx512(tile, sums);
  if (vector_level() == VectorLevel::avx2) {
    for (const int64_t column : {0, 2}) {
      for (const int64_t lane : {0, 8}) sum_half_tile_avx2(tile, column, lane, sums);
    }
    return;
  }
#endif
  sum_tile_baseline(tile, sums);
}

// Four rows by `count` unpacked columns: y[row * n + column]. Where there are fewer than four, the last one stands in.
void multiply_rows(const float* left, int64_t rows, const float* columns, int64_t count, int64_t step, int64_t n,
                   float* y) {
  for (int64_t depth = 0; depth < step; depth += kTileDepth) {
    TileOperands tile;
    tile.depth = std::min(kTileDepth, step - depth);
    for (int64_t r = 0; r < kTileSide; ++r) tile.rows[r] = left + std::min(r, rows - 1) * step + depth;
    for (int64_t first = 0; first < count; first += kTileSide) {
      const int64_t width = std::min(kTileSide, count - first);
      for (int64_t c = 0; c < kTileSide; ++c)
        tile.columns[c] = columns + (first + std::min(c, width - 1)) * step + depth;
      alignas(64) TileSums sums;
      sum_tile(tile, sums);
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < width; ++c) {
          float& out = y[r * n + first + c];
          out = depth == 0 ? sum_of_sixteen(sums[r][c]) : out + sum_of_sixteen(sums[r][c]);
        }
      }
    }
  }
}

}  // namespace

void multiply_unpacked_nibbles(int64_t m, const float* left, const NibbleMatrix& b, float* y) {
  const int64_t step = b.row_step(), parts = (b.n + kUnpackedColumns - 1) / kUnpackedColumns;
  parallel_for(parts, kUnpackedColumns * step * m / 16 + 1, [&](int64_t begin, int64_t end) {
    AlignedFloats columns(kUnpackedColumns * step);
    for (int64_t part = begin; part < end; ++part) {
      const int64_t first = part * kUnpackedColumns, count = std::min(kUnpackedColumns, b.n - first);
      unpack_nibbles(b, first, first + count, columns.data());
      for (int64_t row = 0; row < m; row += kTileSide) {
        multiply_rows(left + row * step, std::min(kTileSide, m - row), columns.data(), count, step, b.n,
                      y + row * b.n + first);
      }
    }
  });
}

}  // namespace parallax::runtime
