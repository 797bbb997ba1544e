// SPDX-License-Identifier: Apache-2.0
// Layouts: where the rows of a tensor along one axis begin and the stride of their elements.
#include "runtime/device/cpu/rows/rows.h"

namespace parallax::runtime {

RowLayout rows_along(const Shape& shape, int64_t axis) {
  const Ints dims(shape);
  return {product(dims, 0, axis), dims[axis], product(dims, axis + 1, dims.size())};
}

}  // namespace parallax::runtime
