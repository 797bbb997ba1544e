// SPDX-License-Identifier: Apache-2.0
// Growable tensors: the filled part of a buffer that has room for more along one axis, as a decoder's cache has. Such a
// tensor is marked by a device of its own, so that no function that reads payloads of the host takes it for row-major;
// its shape is that of the filled part.
#pragma once

#include <vector>

#include "inspector/tensor/value.h"
#include "runtime/device/cpu/copy.h"
#include "runtime/device/cpu/ints.h"
#include "runtime/device/cpu/queue_cpu.h"

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

// Strides in elements of any tensor of the host: those of the whole buffer where it is growable.
Ints element_strides(const TensorView& view);

// The required shape of a growable tensor.
struct GrowableShape {
  DType dtype = DType::undefined;
  Shape shape;
  int64_t axis = 0, capacity = 0;
};

// Tensors to be filled, in one piece of memory: small buffers share huge pages there, from which reading them once is
// faster. Errors: out_of_memory.
Result<std::vector<Tensor>> make_growable(Queue<Cpu>& queue, std::span<const GrowableShape> shapes);

// A growable tensor with the elements of `tensor`, which is row-major or growable along the same axis; itself where its
// buffer has that capacity already. Errors: out_of_memory.
Result<Tensor> with_capacity(Queue<Cpu>& queue, const Tensor& tensor, int64_t axis, int64_t capacity);

// `growable`, which is open, and after its elements those of `more`, whose dimensions are the same but for `count`
// along the axis. They are written to the same buffer; to one of twice the capacity or more where it is too small.
Result<Tensor> append(Queue<Cpu>& queue, const Tensor& growable, int64_t count, const StridedSource& more);

// `growable` with the elements of `tensor`, which is row-major, in place of its own: in the same buffer where that is
// large enough and nobody else holds it.
Result<Tensor> refilled(Queue<Cpu>& queue, Tensor growable, const Tensor& tensor);

// The filled part in a buffer of its own, row-major.
Result<Tensor> without_room(Queue<Cpu>& queue, const Tensor& growable);

// Row i along the first axis is row rows[i] of each tensor, in buffers of the same capacity. Rows are valid.
Result<std::vector<Tensor>> take_growable_rows(Queue<Cpu>& queue, std::span<const Tensor> growable,
                                               std::span<const int32_t> rows);

}  // namespace parallax::runtime
