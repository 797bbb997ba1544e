// SPDX-License-Identifier: Apache-2.0
// Buffers with room, and copies into and out of them.
#include "runtime/device/cpu/growable.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "runtime/device/run_memory.h"

namespace parallax::runtime {
namespace {

constexpr int64_t kCacheLine = 64;

Device device_of(uint8_t kind, int64_t capacity) {
  return {static_cast<Device::Kind>(kind), static_cast<int32_t>(capacity)};
}

Tensor marked(const Tensor& tensor, const Shape& shape, uint8_t kind, int64_t capacity) {
  return Tensor::wrap(tensor.dtype(), shape, tensor.storage(), device_of(kind, capacity));
}

uint8_t kind_of(int64_t axis) { return static_cast<uint8_t>(kFirstGrowable + axis); }

Result<Shape> whole_shape(const GrowableShape& wanted) {
  if (wanted.capacity > std::numeric_limits<int32_t>::max()) {
    return out_of_memory(
        fmt::format("a capacity of {} positions is more than 2^31-1, the most there can be", wanted.capacity));
  }
  Ints dims(wanted.shape);
  dims[wanted.axis] = wanted.capacity;
  return shape_of(dims);
}

void copy_elements(Queue<Cpu>& queue, const Tensor& from, const Tensor& to) {
  copy_strided(queue, element_bytes(from.dtype()), from.shape(), {to.storage().get(), element_strides(to), 0},
               {from.view().data, element_strides(from), 0});
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

// They outlive the run, so no plan of memory counts them.
Result<std::vector<Tensor>> make_growable(Queue<Cpu>& queue, std::span<const GrowableShape> shapes) {
  std::vector<int64_t> begins{0};
  for (const GrowableShape& each : shapes) {
    const Shape whole = PX_TRY(whole_shape(each));
    const auto bytes = static_cast<int64_t>(byte_size(each.dtype, whole.element_count()));
    begins.push_back(begins.back() + (bytes + kCacheLine - 1) / kCacheLine * kCacheLine);
  }
  const Shape all = PX_TRY(Shape::create(std::span(&begins.back(), 1)));
  const auto pause = queue.memory().pause();
  const Tensor memory = PX_TRY(queue.allocate(DType::uint8, all));
  std::vector<Tensor> made;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const GrowableShape& each = shapes[i];
    const std::shared_ptr<std::byte> part(memory.storage().get() + begins[i],
                                          [whole = memory.storage()](std::byte*) {});  // counts its own owners
    made.push_back(Tensor::wrap(each.dtype, each.shape, part, device_of(kind_of(each.axis), each.capacity)));
  }
  return made;
}

Result<Tensor> with_capacity(Queue<Cpu>& queue, const Tensor& tensor, int64_t axis, int64_t capacity) {
  if (is_growable(tensor) && capacity_of(tensor) >= capacity) return tensor;
  const GrowableShape shape{tensor.dtype(), tensor.shape(), axis, std::max(capacity, dim_of(tensor.shape(), axis))};
  const std::vector<Tensor> made = PX_TRY(make_growable(queue, std::span(&shape, 1)));
  copy_elements(queue, tensor, made[0]);
  return made[0];
}

Result<Tensor> refilled(Queue<Cpu>& queue, Tensor growable, const Tensor& tensor) {
  const int64_t axis = growing_axis(growable), capacity = capacity_of(growable);
  Ints dims(tensor.shape());
  const bool fits = dims[axis] <= capacity && growable.storage().use_count() == 1;
  dims[axis] = dim_of(growable.shape(), axis);
  if (!fits || tensor.dtype() != growable.dtype() || !(dims == Ints(growable.shape())))
    return with_capacity(queue, tensor, axis, capacity);
  const Tensor filled = marked(growable, tensor.shape(), kind_of(axis), capacity);
  copy_elements(queue, tensor, filled);
  return filled;
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

Result<std::vector<Tensor>> take_growable_rows(Queue<Cpu>& queue, std::span<const Tensor> growable,
                                               std::span<const int32_t> rows) {
  std::vector<GrowableShape> shapes;
  for (const Tensor& each : growable) {
    Ints dims(each.shape());
    dims[0] = static_cast<int64_t>(rows.size());
    shapes.push_back({each.dtype(), PX_TRY(shape_of(dims)), growing_axis(each), capacity_of(each)});
  }
  const std::vector<Tensor> made = PX_TRY(make_growable(queue, shapes));
  for (size_t index = 0; index < made.size(); ++index) {
    const Tensor& from = growable[index];
    const Ints strides = element_strides(from), made_strides = element_strides(made[index]);
    Ints dims(from.shape());
    dims[0] = 1;
    for (size_t i = 0; i < rows.size(); ++i) {
      copy_strided(queue, element_bytes(from.dtype()), dims,
                   {made[index].storage().get(), made_strides, static_cast<int64_t>(i) * made_strides[0]},
                   {from.view().data, strides, rows[i] * strides[0]});
    }
  }
  return made;
}

}  // namespace parallax::runtime
