// SPDX-License-Identifier: Apache-2.0
// The innermost steps of sums of products. Each sum runs over k upward in one accumulator.
#pragma once

#include <cstdint>

namespace parallax::reference {

constexpr int64_t kTileRows = 4;
constexpr int64_t kPanelWidth = 32;

// A panel that holds fewer than kPanelWidth columns is packed to its own width first; this spreads it, so that kernels
// see full lines.
template <class Number>
void spread_panel(Number* panel, int64_t depth, int64_t width) {
  for (int64_t k = depth; k-- > 0;) {
    for (int64_t j = kPanelWidth; j-- > 0;) panel[k * kPanelWidth + j] = j < width ? panel[k * width + j] : Number{0};
  }
}

// A tile of a few rows and kPanelWidth columns over a stretch of the depth, with rows[k * kRows + r],
// panel[k * kPanelWidth + j] and sums[r * stride + j], k < depth. The sums go on from what is there, or begin at 0.
template <class Number>
using TileKernel = void (*)(const Number* rows, const Number* panel, int64_t depth, Number* sums, int64_t stride,
                            bool goes_on);

// One row over neighboring windows: sums[j] = sum over k of row[k] * x[offsets[k] + j]. More columns than `width` are
// read and written, up to a multiple of kPanelWidth.
template <class Number>
using WindowKernel = void (*)(const Number* row, const Number* x, const int64_t* offsets, int64_t depth, int64_t width,
                              Number* sums);

// For products that double holds exactly (of numbers with 26 bits or fewer): multiplying and adding in one step, where
// the processor can, rounds as two steps do, so the bits are the same on all.
TileKernel<double> exact_products_kernel();
WindowKernel<double> exact_windows_kernel();
// For any doubles, each product rounded, and for integers modulo 2^64.
TileKernel<double> rounded_products_kernel();
WindowKernel<double> rounded_windows_kernel();
TileKernel<uint64_t> integer_products_kernel();
WindowKernel<uint64_t> integer_windows_kernel();
// rounded_products_kernel() for tiles of 1, 2 or kTileRows rows: the least that holds `rows`.
struct RowsKernel {
  int64_t rows;
  TileKernel<double> run;
};
RowsKernel rounded_rows_kernel(int64_t rows);

}  // namespace parallax::reference
