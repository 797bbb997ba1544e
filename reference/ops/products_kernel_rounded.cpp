// The tile without contraction: a product is rounded before it is added.
#include "reference/ops/products_kernel_body.h"

namespace parallax::reference {

TileKernel<double> rounded_products_kernel() { return tile_kernel<double>(); }
TileKernel<uint64_t> integer_products_kernel() { return tile_kernel<uint64_t>(); }
TileKernel<double> rounded_row_kernel() { return tile_kernel<double, 1>(); }

}  // namespace parallax::reference
