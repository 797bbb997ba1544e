// SPDX-License-Identifier: Apache-2.0
// The kernels without contraction: a product is rounded before it is added.
#include "reference/kernels/products_kernel_body.h"

namespace parallax::reference {

TileKernel<double> rounded_products_kernel() { return tile_kernel<double>(); }
WindowKernel<double> rounded_windows_kernel() { return windows_kernel<double>(); }
TileKernel<uint64_t> integer_products_kernel() { return tile_kernel<uint64_t>(); }
WindowKernel<uint64_t> integer_windows_kernel() { return windows_kernel<uint64_t>(); }

RowsKernel rounded_rows_kernel(int64_t rows) {
  if (rows == 1) return {1, tile_kernel<double, 1>()};
  if (rows == 2) return {2, tile_kernel<double, 2>()};
  return {kTileRows, tile_kernel<double>()};
}

}  // namespace parallax::reference
