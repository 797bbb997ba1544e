// The two orders, and the way from one to the other.
#include "runtime/device/channels_last.h"

#include "runtime/device/copy.h"

namespace parallax::runtime {
namespace {

// Copies [N, rows, columns] to [N, columns, rows].
void transpose(Queue<Cpu>& queue, DType dtype, int64_t batch, int64_t rows, int64_t columns, const std::byte* source,
               std::byte* target) {
  const Ints dims{batch, columns, rows};
  copy_strided(queue, element_bytes(dtype), dims, {target, row_major_strides(dims), 0},
               {source, {rows * columns, 1, columns}, 0});
}

Result<Tensor> reordered(Queue<Cpu>& queue, const Tensor& tensor, bool to_last) {
  const Ints dims(tensor.shape());
  Tensor made = PX_TRY(queue.allocate(tensor.dtype(), tensor.shape()));
  const int64_t places = product(dims, 2, dims.size());
  transpose(queue, tensor.dtype(), dims[0], to_last ? dims[1] : places, to_last ? places : dims[1], tensor.view().data,
            made.storage().get());
  return to_last ? Tensor::wrap(made.dtype(), made.shape(), made.storage(), kChannelsLast) : made;
}

}  // namespace

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

bool is_order_free(const Ints& dims) { return dims[1] == 1 || product(dims, 2, dims.size()) == 1; }

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
  return reordered(queue, tensor, false);
}

Result<Tensor> to_channels_last(Queue<Cpu>& queue, const Tensor& tensor) {
  if (is_channels_last(tensor)) return tensor;
  return reordered(queue, tensor, true);
}

}  // namespace parallax::runtime
