// The planning half of map: merging axes.
#include "runtime/device/map.h"

namespace parallax::runtime {

void merge_axes(Ints& dims, std::span<Ints> strides) {
  Ints merged;
  std::vector<Ints> kept(strides.size());
  for (int64_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] == 1) continue;
    bool joins = !merged.empty();
    for (size_t operand = 0; joins && operand < strides.size(); ++operand) {
      joins = kept[operand].back() == strides[operand][axis] * dims[axis];
    }
    if (joins) {
      const int64_t last = merged.size() - 1;
      merged[last] *= dims[axis];
      for (size_t operand = 0; operand < strides.size(); ++operand) kept[operand][last] = strides[operand][axis];
    } else {
      merged.push_back(dims[axis]);
      for (size_t operand = 0; operand < strides.size(); ++operand) kept[operand].push_back(strides[operand][axis]);
    }
  }
  if (merged.empty()) {
    merged.push_back(1);
    for (Ints& own : kept) own.push_back(0);
  }
  dims = std::move(merged);
  for (size_t operand = 0; operand < strides.size(); ++operand) strides[operand] = std::move(kept[operand]);
}

Error unsupported_dtype(DType dtype) {
  return unsupported("no kernel for element type " + std::string(name_of(dtype)));
}

}  // namespace parallax::runtime
