// Channels last: the order of elements in which chains of convolutions hand values to each other on the host. A tensor
// [N, C, spatial...] that is marked so has a payload [N, spatial..., C]. The mark is a device of its own, so that no
// function that reads payloads of the host takes one for row-major; such tensors never leave the executor.
#pragma once

#include <optional>

#include "inspector/tensor/value.h"
#include "runtime/device/ints.h"
#include "runtime/device/queue_cpu.h"

namespace parallax::runtime {

inline constexpr parallax::Device kChannelsLast{static_cast<parallax::Device::Kind>(0x80), 0};

inline bool is_channels_last(const Value& value) {
  return value.is_tensor() && value.tensor().device() == kChannelsLast;
}
inline bool is_channels_last(const Tensor& tensor) { return tensor.device() == kChannelsLast; }

// [N, C, spatial...] as [N, spatial..., C], and back; both for ranks from 3 on.
Ints with_channels_last(const Ints& dims);
Ints with_channels_second(const Ints& dims);

// Whether both orders are the same: one channel, or one place.
bool is_order_free(const Ints& dims);

// The same payload, row-major under the shape it has; or, for a row-major tensor whose order is free, under that shape
// with the channels last. Nothing for other row-major tensors.
std::optional<Tensor> seen_channels_last(const Tensor& tensor);
// A row-major tensor [N, spatial..., C] as the channels-last one it is.
Tensor marked_channels_last(const Tensor& tensor);

// The same tensor in the other order; itself where it has that order already.
Result<Tensor> to_row_major(Queue<Cpu>& queue, const Tensor& tensor);
Result<Tensor> to_channels_last(Queue<Cpu>& queue, const Tensor& tensor);

}  // namespace parallax::runtime
