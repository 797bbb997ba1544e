// SPDX-License-Identifier: Apache-2.0
// The kernels compiled with contraction (see CMakeLists.txt): one rounding for a product that needs none and its sum.
#include "reference/kernels/products_kernel_body.h"

namespace parallax::reference {

TileKernel<double> exact_products_kernel() { return tile_kernel<double>(); }
WindowKernel<double> exact_windows_kernel() { return windows_kernel<double>(); }

}  // namespace parallax::reference
