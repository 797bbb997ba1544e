// SPDX-License-Identifier: Apache-2.0
// Growable tensors: the filled part of a buffer that has room for more along one axis, as a decoder's cache has. Such a
// tensor is marked by a device of its own, so that no function that reads payloads takes it for row-major; its shape is
// that of the filled part. It is stored on the device of the session that keeps it, and never leaves that session.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "inspector/tensor/value.h"
#include "runtime/device/cpu/copy.h"
#include "runtime/device/cpu/ints.h"
#include "runtime/device/cpu/queue_cpu.h"
#include "runtime/device/run_memory.h"

namespace parallax::runtime {

// The device's kind tells the axis and whether the tensor is open, its index the capacity.
inline constexpr uint8_t kFirstGrowable = 0x90, kFirstOpen = 0xA0, kEndGrowable = 0xB0;

inline bool is_growable(const TensorView& view) {
  const auto kind = static_cast<uint8_t>(view.device.kind);
  return kind >= kFirstGrowable && kind < kEndGrowable;
}
inline bool is_growable(const Tensor& tensor) { return is_growable(tensor.view()); }
inline bool is_growable(const Value& value) { return value.is_tensor() && is_growable(value.tensor().view()); }

// An open tensor may be appended to: whoever opens it knows that nobody else appends to the same buffer.
inline bool is_open(const TensorView& view) {
  return is_growable(view) && static_cast<uint8_t>(view.device.kind) >= kFirstOpen;
}
Tensor opened(const Tensor& growable);

int64_t growing_axis(const TensorView& growable);
int64_t capacity_of(const TensorView& growable);

// Strides in elements of any tensor: those of the whole buffer where it is growable, else those of row-major order.
Ints element_strides(const TensorView& view);

// The location, in the row-major copy of the filled part, of the element at `offset` of a growable tensor's buffer.
// Strides are offsets, too.
int64_t offset_without_room(const TensorView& growable, int64_t offset);

// The tensor's payload with that shape as its filled part, not open.
Tensor as_growable(const Tensor& tensor, const Shape& shape, int64_t axis, int64_t capacity);

// The required shape of a growable tensor.
struct GrowableShape {
  DType dtype = DType::undefined;
  Shape shape;
  int64_t axis = 0, capacity = 0;
};
Result<Shape> whole_shape(const GrowableShape& wanted);  // with the capacity; errors: out_of_memory

// ---- On any device ----

// Tensors to be filled, in one piece of memory: small buffers share huge pages of the host there, from which reading
// them once is faster. They outlive the run, so no plan of memory counts them. Errors: out_of_memory.
template <class Device>
Result<std::vector<Tensor>> make_growable(Queue<Device>& queue, std::span<const GrowableShape> shapes) {
  constexpr int64_t kAlignment = 256;  // of GPUs' buffers; of a cache line and more
  std::vector<int64_t> begins{0};
  for (const GrowableShape& each : shapes) {
    const Shape whole = PX_TRY(whole_shape(each));
    const auto bytes = static_cast<int64_t>(byte_size(each.dtype, whole.element_count()));
    begins.push_back(begins.back() + (bytes + kAlignment - 1) / kAlignment * kAlignment);
  }
  const Shape all = PX_TRY(Shape::create(std::span(&begins.back(), 1)));
  const auto pause = queue.memory().pause();
  const Tensor memory = PX_TRY(queue.allocate(DType::uint8, all));
  std::vector<Tensor> made;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const GrowableShape& each = shapes[i];
    const std::shared_ptr<std::byte> part(memory.storage().get() + begins[i],
                                          [whole = memory.storage()](std::byte*) {});  // counts its own owners
    made.push_back(
        as_growable(Tensor::wrap(each.dtype, each.shape, part, memory.device()), each.shape, each.axis, each.capacity));
  }
  return made;
}

// All elements of `from` to those of `to`, whatever the strides of both.
template <class Device>
void copy_filled(Queue<Device>& queue, const Tensor& from, const Tensor& to) {
  copy_strided(queue, element_bytes(from.dtype()), from.shape(), {to.storage().get(), element_strides(to), 0},
               {from.view().data, element_strides(from), 0});
}

// A growable tensor with the elements of `tensor`, which is row-major or growable along the same axis; itself where its
// buffer has that capacity already. Errors: out_of_memory.
template <class Device>
Result<Tensor> with_capacity(Queue<Device>& queue, const Tensor& tensor, int64_t axis, int64_t capacity) {
  if (is_growable(tensor) && capacity_of(tensor) >= capacity) return tensor;
  const GrowableShape shape{tensor.dtype(), tensor.shape(), axis, std::max(capacity, dim_of(tensor.shape(), axis))};
  const std::vector<Tensor> made = PX_TRY(make_growable(queue, std::span(&shape, 1)));
  copy_filled(queue, tensor, made[0]);
  return made[0];
}

// `growable`, which is open, and after its elements those of `more`, whose dimensions are the same but for `count`
// along the axis. They are written to the same buffer; to one of twice the capacity or more where it is too small.
template <class Device>
Result<Tensor> append(Queue<Device>& queue, const Tensor& growable, int64_t count, const StridedSource& more) {
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
  return as_growable(buffer, shape, axis, capacity_of(buffer));
}

// `growable` with the elements of `tensor`, which is row-major, in place of its own: in the same buffer where that is
// large enough and nobody else holds it.
template <class Device>
Result<Tensor> refilled(Queue<Device>& queue, Tensor growable, const Tensor& tensor) {
  const int64_t axis = growing_axis(growable), capacity = capacity_of(growable);
  Ints dims(tensor.shape());
  const bool fits = dims[axis] <= capacity && growable.storage().use_count() == 1;
  dims[axis] = dim_of(growable.shape(), axis);
  if (!fits || tensor.dtype() != growable.dtype() || !(dims == Ints(growable.shape())))
    return with_capacity(queue, tensor, axis, capacity);
  const Tensor filled = as_growable(growable, tensor.shape(), axis, capacity);
  copy_filled(queue, tensor, filled);
  return filled;
}

// The filled part in a buffer of its own, row-major.
template <class Device>
Result<Tensor> without_room(Queue<Device>& queue, const Tensor& growable) {
  Tensor made = PX_TRY(queue.allocate(growable.dtype(), growable.shape()));
  copy_filled(queue, growable, made);
  return made;
}

// Row i along the first axis is row rows[i] of each tensor, in buffers of the same capacity. Rows are valid.
template <class Device>
Result<std::vector<Tensor>> take_growable_rows(Queue<Device>& queue, std::span<const Tensor> growable,
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
    const Ints made_strides = element_strides(made[index]);
    Ints strides = element_strides(from), dims(from.shape());
    const int64_t row = strides[0];
    for (size_t i = 0, end = 0; i < rows.size(); i = end) {  // rows at an even distance are copied at once
      const int64_t step = i + 1 < rows.size() ? std::max(rows[i + 1] - rows[i], 0) : 0;
      for (end = i + 1; end < rows.size() && rows[end] - rows[end - 1] == step;) ++end;
      dims[0] = static_cast<int64_t>(end - i);
      strides[0] = step * row;
      copy_strided(queue, element_bytes(from.dtype()), dims,
                   {made[index].storage().get(), made_strides, static_cast<int64_t>(i) * made_strides[0]},
                   {from.view().data, strides, rows[i] * row});
    }
  }
  return made;
}

}  // namespace parallax::runtime
