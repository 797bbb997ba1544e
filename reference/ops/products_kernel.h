// The innermost step of sums of products: a tile of 4 rows and kPanelWidth columns over a stretch of the depth. Each
// sum goes on from what `sums` holds, k upward, in one accumulator.
#pragma once

#include <cstdint>

namespace parallax::reference {

constexpr int64_t kTileRows = 4;
constexpr int64_t kPanelWidth = 32;

// rows[k * kTileRows + r], panel[k * kPanelWidth + j], sums[r * kPanelWidth + j], k < depth.
template <class Number>
using TileKernel = void (*)(const Number* rows, const Number* panel, int64_t depth, Number* sums);

// For products that double holds exactly (of numbers with 26 bits or fewer): multiplying and adding in one step, where
// the processor can, rounds as two steps do, so the bits are the same on all.
TileKernel<double> exact_products_kernel();
// For any doubles, each product rounded, and for integers modulo 2^64.
TileKernel<double> rounded_products_kernel();
TileKernel<uint64_t> integer_products_kernel();
// The same with one row: row[k], panel[k * kPanelWidth + j], sums[j].
TileKernel<double> rounded_row_kernel();

}  // namespace parallax::reference
