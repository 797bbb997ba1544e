// SPDX-License-Identifier: Apache-2.0
// The planning half of map: merging axes.
#include "runtime/device/cpu/map.h"

namespace parallax::runtime {

void merge_axes(Ints& dims, std::span<Ints> strides) {
  int64_t kept = 0;  // axes written so far, never past the one being read
  for (int64_t axis = 0; axis < dims.size(); ++axis) {
    const int64_t dim = dims[axis];
    if (dim == 1) continue;
    bool joins = kept > 0;
    for (size_t operand = 0; joins && operand < strides.size(); ++operand) {
      joins = strides[operand][kept - 1] == strides[operand][axis] * dim;
    }
    if (!joins) ++kept;
    dims[kept - 1] = joins ? dims[kept - 1] * dim : dim;
    for (Ints& own : strides) own[kept - 1] = own[axis];
  }
  dims.truncate(kept);
  for (Ints& own : strides) own.truncate(kept);
  if (kept > 0) return;
  dims.push_back(1);
  for (Ints& own : strides) own.push_back(0);
}

Error unsupported_dtype(DType dtype) {
  return unsupported("element type " + std::string(name_of(dtype)) +
                     " has no kernel here; --fallback=reference runs it");
}

}  // namespace parallax::runtime
