// SPDX-License-Identifier: Apache-2.0
// The mark of buffers with room, and their strides.
#include "runtime/device/cpu/growable.h"

#include <limits>

#include <fmt/format.h>

namespace parallax::runtime {
namespace {

Tensor marked(const Tensor& tensor, const Shape& shape, int64_t kind, int64_t capacity) {
  return Tensor::wrap(tensor.dtype(), shape, tensor.storage(),
                      {static_cast<Device::Kind>(kind), static_cast<int32_t>(capacity)});
}

}  // namespace

Tensor as_growable(const Tensor& tensor, const Shape& shape, int64_t axis, int64_t capacity) {
  return marked(tensor, shape, kFirstGrowable + axis, capacity);
}

Tensor opened(const Tensor& growable) {
  return marked(growable, growable.shape(), kFirstOpen + growing_axis(growable), capacity_of(growable));
}

int64_t growing_axis(const TensorView& growable) { return static_cast<uint8_t>(growable.device.kind) & 0xF; }

int64_t capacity_of(const TensorView& growable) { return growable.device.index; }

Ints element_strides(const TensorView& view) {
  Ints dims(view.shape);
  if (is_growable(view)) dims[growing_axis(view)] = capacity_of(view);
  return row_major_strides(dims);
}

int64_t offset_without_room(const TensorView& growable, int64_t offset) {
  const int64_t axis = growing_axis(growable);
  int64_t inner = 1;
  for (int64_t after = axis + 1; after < rank_of(growable.shape); ++after) inner *= dim_of(growable.shape, after);
  const int64_t matrix = std::max<int64_t>(1, capacity_of(growable) * inner);
  return offset / matrix * (dim_of(growable.shape, axis) * inner) + offset % matrix;
}

Result<Shape> whole_shape(const GrowableShape& wanted) {
  if (wanted.capacity > std::numeric_limits<int32_t>::max()) {
    return out_of_memory(
        fmt::format("a capacity of {} positions is more than 2^31-1, the most there can be", wanted.capacity));
  }
  Ints dims(wanted.shape);
  dims[wanted.axis] = wanted.capacity;
  return shape_of(dims);
}

}  // namespace parallax::runtime
