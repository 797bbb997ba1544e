// SPDX-License-Identifier: Apache-2.0
// The kernels as templates over the number and how many of them a vector holds, and their choice for this processor.
// Lanes are different sums: the bits do not depend on the choice. Included by the files that compile them.
#pragma once

#include "reference/kernels/lanes.h"
#include "reference/kernels/products_kernel.h"

// Accumulators stay in registers only when their loops are unrolled.
#ifdef __clang__
#define PX_UNROLL _Pragma("unroll")
#else
#define PX_UNROLL _Pragma("GCC unroll 8")
#endif

namespace parallax::reference {
namespace {

// kRows * kVectors accumulators stay in registers; a panel that is wider than kVectors is processed in tiles of rows.
template <class Number, int kRows, int kLanes, int kVectors>
PX_INLINE inline void tile(const Number* rows, const Number* panel, int64_t depth, Number* sums, int64_t stride,
                           bool goes_on) {
  using Vector = typename VectorOf<Number, kLanes>::InMemory;
  constexpr int64_t kRowTile = int64_t{kLanes} * kVectors;
  for (int64_t row_tile = 0; row_tile < kPanelWidth; row_tile += kRowTile) {
    Vector held[kRows][kVectors] = {};
    PX_UNROLL
    for (int r = 0; goes_on && r < kRows; ++r) {
      PX_UNROLL
      for (int v = 0; v < kVectors; ++v)
        held[r][v] = *reinterpret_cast<const Vector*>(sums + r * stride + row_tile + v * kLanes);
    }
    for (int64_t k = 0; k < depth; ++k) {
      const auto* line = panel + k * kPanelWidth + row_tile;
      PX_UNROLL
      for (int r = 0; r < kRows; ++r) {
        PX_UNROLL
        for (int v = 0; v < kVectors; ++v)
          held[r][v] += rows[k * kRows + r] * *reinterpret_cast<const Vector*>(line + v * kLanes);
      }
    }
    PX_UNROLL
    for (int r = 0; r < kRows; ++r) {
      PX_UNROLL
      for (int v = 0; v < kVectors; ++v)
        *reinterpret_cast<Vector*>(sums + r * stride + row_tile + v * kLanes) = held[r][v];
    }
  }
}

// kVectors vectors of windows, from the first at x.
template <class Number, int kLanes, int kVectors>
PX_INLINE inline void window_tile(const Number* row, const Number* x, const int64_t* offsets, int64_t depth,
                                  Number* sums) {
  using Vector = typename VectorOf<Number, kLanes>::InMemory;
  Vector held[kVectors] = {};
  for (int64_t k = 0; k < depth; ++k) {
    const Number* line = x + offsets[k];
    PX_UNROLL
    for (int v = 0; v < kVectors; ++v) held[v] += row[k] * *reinterpret_cast<const Vector*>(line + v * kLanes);
  }
  PX_UNROLL
  for (int v = 0; v < kVectors; ++v) *reinterpret_cast<Vector*>(sums + v * kLanes) = held[v];
}

template <class Number, int kLanes>
PX_INLINE inline void windows(const Number* row, const Number* x, const int64_t* offsets, int64_t depth, int64_t width,
                              Number* sums) {
  int64_t done = 0;
  for (; done + 2 * kLanes < width; done += 4 * kLanes)
    window_tile<Number, kLanes, 4>(row, x + done, offsets, depth, sums + done);
  if (done < width) window_tile<Number, kLanes, 2>(row, x + done, offsets, depth, sums + done);
}

template <class Number, int kRows>
void tile_baseline(const Number* rows, const Number* panel, int64_t depth, Number* sums, int64_t stride, bool goes_on) {
  tile<Number, kRows, 2, 8 / kRows>(rows, panel, depth, sums, stride, goes_on);
}
template <class Number>
void windows_baseline(const Number* row, const Number* x, const int64_t* offsets, int64_t depth, int64_t width,
                      Number* sums) {
  windows<Number, 2>(row, x, offsets, depth, width, sums);
}

#if defined(__x86_64__)
#define PX_AVX2 __attribute__((target("avx2,fma")))
#define PX_AVX512 __attribute__((target("avx512f,avx512dq")))

template <class Number, int kRows>
PX_AVX2 void tile_avx2(const Number* rows, const Number* panel, int64_t depth, Number* sums, int64_t stride,
                       bool goes_on) {
  tile<Number, kRows, 4, 8 / kRows>(rows, panel, depth, sums, stride, goes_on);
}
template <class Number>
PX_AVX2 void windows_avx2(const Number* row, const Number* x, const int64_t* offsets, int64_t depth, int64_t width,
                          Number* sums) {
  windows<Number, 4>(row, x, offsets, depth, width, sums);
}

template <class Number, int kRows>
PX_AVX512 void tile_avx512(const Number* rows, const Number* panel, int64_t depth, Number* sums, int64_t stride,
                           bool goes_on) {
  tile<Number, kRows, 8, 4>(rows, panel, depth, sums, stride, goes_on);
}
template <class Number>
PX_AVX512 void windows_avx512(const Number* row, const Number* x, const int64_t* offsets, int64_t depth, int64_t width,
                              Number* sums) {
  windows<Number, 8>(row, x, offsets, depth, width, sums);
}
#endif

template <class Number, int kRows = kTileRows>
TileKernel<Number> tile_kernel() {
#if defined(__x86_64__)
  if (vector_level() == VectorLevel::avx512) return tile_avx512<Number, kRows>;
  if (vector_level() == VectorLevel::avx2) return tile_avx2<Number, kRows>;
#endif
  return tile_baseline<Number, kRows>;
}

template <class Number>
WindowKernel<Number> windows_kernel() {
#if defined(__x86_64__)
  if (vector_level() == VectorLevel::avx512) return windows_avx512<Number>;
  if (vector_level() == VectorLevel::avx2) return windows_avx2<Number>;
#endif
  return windows_baseline<Number>;
}

}  // namespace
}  // namespace parallax::reference
