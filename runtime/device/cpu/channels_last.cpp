// SPDX-License-Identifier: Apache-2.0
// The two orders, and the way from one to the other.
#include "runtime/device/cpu/channels_last.h"

#include "runtime/device/cpu/copy.h"

namespace parallax::runtime {

Ints with_channels_last(const Ints& dims) {
  Ints order{dims[0]};
  for (int64_t axis = 2; axis < dims.size(); ++axis) order.push_back(dims[axis]);
  order.push_back(dims[1]);
  return order;
}

Ints with_channels_second(const Ints& dims) {
  Ints order{dims[0], dims.back()};
  for (int64_t axis = 1; axis + 1 < dims.size(); ++axis) order.push_back(dims[axis]);
  return order;
}

std::optional<Tensor> seen_channels_last(const Tensor& tensor) {
  const Ints dims(tensor.shape());
  if (!is_channels_last(tensor) && !is_order_free(dims)) return std::nullopt;
  const auto shape = shape_of(with_channels_last(dims));
  if (!shape.ok()) return std::nullopt;
  return Tensor::wrap(tensor.dtype(), *shape, tensor.storage());
}

Tensor marked_channels_last(const Tensor& tensor) {
  const Shape shape = shape_of(with_channels_second(tensor.shape())).take();
  return Tensor::wrap(tensor.dtype(), shape, tensor.storage(), kChannelsLast);
}

Result<Tensor> to_row_major(Queue<Cpu>& queue, const Tensor& tensor) {
  if (!is_channels_last(tensor)) return tensor;
  Tensor made = PX_TRY(queue.allocate(tensor.dtype(), tensor.shape()));
  TransposingReader(tensor).read_all(made.storage().get());
  return made;
}

Result<Tensor> to_channels_last(Queue<Cpu>& queue, const Tensor& tensor) {
  if (is_channels_last(tensor)) return tensor;
  const Ints dims(tensor.shape());
  Tensor made = PX_TRY(queue.allocate(tensor.dtype(), tensor.shape()));
  const int64_t channels = dims[1], locations = product(dims, 2, dims.size());
  const Ints order{dims[0], locations, channels};
  copy_strided(queue, element_bytes(tensor.dtype()), order, {made.storage().get(), row_major_strides(order), 0},
               {tensor.view().data, {channels * locations, 1, locations}, 0});
  return Tensor::wrap(made.dtype(), made.shape(), made.storage(), kChannelsLast);
}

}  // namespace parallax::runtime
