// Buffers with room, and copies into and out of them.
#include "runtime/device/growable.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "runtime/device/run_memory.h"

namespace parallax::runtime {
namespace {

Tensor marked(const Tensor& tensor, const Shape& shape, uint8_t kind, int64_t capacity) {
  return Tensor::wrap(tensor.dtype(), shape, tensor.storage(),
                      {static_cast<Device::Kind>(kind), static_cast<int32_t>(capacity)});
}

uint8_t kind_of(int64_t axis) { return static_cast<uint8_t>(kFirstGrowable + axis); }

// A buffer for `shape` with room for `capacity` along the axis. It outlives the run, so no plan of memory counts it.
Result<Tensor> make_growable(Queue<Cpu>& queue, DType dtype, const Shape& shape, int64_t axis, int64_t capacity) {
  if (capacity > std::numeric_limits<int32_t>::max())
    return out_of_memory(
        fmt::format("a capacity of {} positions is more than 2^31-1, the most there can be", capacity));
  Ints dims(shape);
  dims[axis] = capacity;
  const Shape whole = PX_TRY(shape_of(dims));
  const auto pause = queue.memory().pause();
  const Tensor buffer = PX_TRY(queue.allocate(dtype, whole));
  return marked(buffer, shape, kind_of(axis), capacity);
}

}  // namespace

Tensor opened(const Tensor& growable) {
  return marked(growable, growable.shape(), static_cast<uint8_t>(kFirstOpen + growing_axis(growable)),
                capacity_of(growable));
}

int64_t growing_axis(const TensorView& growable) { return static_cast<uint8_t>(growable.device.kind) & 0xF; }

int64_t capacity_of(const TensorView& growable) { return growable.device.index; }

Ints element_strides(const TensorView& view) {
  Ints dims(view.shape);
  if (is_growable(view)) dims[growing_axis(view)] = capacity_of(view);
  return row_major_strides(dims);
}

Result<Tensor> with_capacity(Queue<Cpu>& queue, const Tensor& tensor, int64_t axis, int64_t capacity) {
  if (is_growable(tensor) && capacity_of(tensor) >= capacity) return tensor;
  const Tensor made = PX_TRY(
      make_growable(queue, tensor.dtype(), tensor.shape(), axis, std::max(capacity, dim_of(tensor.shape(), axis))));
  copy_strided(queue, element_bytes(tensor.dtype()), tensor.shape(), {made.storage().get(), element_strides(made), 0},
               {tensor.view().data, element_strides(tensor), 0});
  return made;
}

Result<Tensor> append(Queue<Cpu>& queue, const Tensor& growable, int64_t count, const StridedSource& more) {
  const int64_t axis = growing_axis(growable);
  const int64_t filled = dim_of(growable.shape(), axis);
  int64_t capacity = std::max<int64_t>(capacity_of(growable), 1);
  while (capacity < filled + count) capacity *= 2;
  const Tensor buffer = PX_TRY(with_capacity(queue, growable, axis, capacity));
  Ints dims(growable.shape());
  dims[axis] = count;
  const Ints strides = element_strides(buffer);
  copy_strided(queue, element_bytes(growable.dtype()), dims, {buffer.storage().get(), strides, filled * strides[axis]},
               more);
  dims[axis] = filled + count;
  const Shape shape = PX_TRY(shape_of(dims));
  return marked(buffer, shape, kind_of(axis), capacity_of(buffer));
}

Result<Tensor> without_room(Queue<Cpu>& queue, const Tensor& growable) {
  Tensor made = PX_TRY(queue.allocate(growable.dtype(), growable.shape()));
  copy_strided(queue, element_bytes(growable.dtype()), growable.shape(),
               {made.storage().get(), row_major_strides(growable.shape()), 0},
               {growable.view().data, element_strides(growable), 0});
  return made;
}

Result<Tensor> take_growable_rows(Queue<Cpu>& queue, const Tensor& growable, std::span<const int32_t> rows) {
  Ints dims(growable.shape());
  bool stays = dims[0] == static_cast<int64_t>(rows.size());
  for (size_t i = 0; i < rows.size() && stays; ++i) stays = rows[i] == static_cast<int32_t>(i);
  if (stays) return growable;
  dims[0] = static_cast<int64_t>(rows.size());
  const Shape shape = PX_TRY(shape_of(dims));
  const Tensor made =
      PX_TRY(make_growable(queue, growable.dtype(), shape, growing_axis(growable), capacity_of(growable)));
  const Ints strides = element_strides(growable), made_strides = element_strides(made);
  dims[0] = 1;
  for (size_t i = 0; i < rows.size(); ++i) {
    copy_strided(queue, element_bytes(growable.dtype()), dims,
                 {made.storage().get(), made_strides, static_cast<int64_t>(i) * made_strides[0]},
                 {growable.view().data, strides, rows[i] * strides[0]});
  }
  return made;
}

}  // namespace parallax::runtime
