// SPDX-License-Identifier: Apache-2.0
// The two orders in which chains of convolutions hand values to each other on the host: row-major and channels last
// (inspector/tensor/channels_last.h). Channels-last tensors leave the executor only to observers that take them.
#pragma once

#include <optional>

#include "inspector/tensor/channels_last.h"
#include "runtime/device/cpu/ints.h"
#include "runtime/device/cpu/queue_cpu.h"

namespace parallax::runtime {

// [N, C, spatial...] as [N, spatial..., C], and back; both for ranks from 3 on.
Ints with_channels_last(const Ints& dims);
Ints with_channels_second(const Ints& dims);

// A view of the payload, row-major under the shape it has; or, for a row-major tensor whose order is free, under that
// shape with the channels last. Nothing for other row-major tensors.
std::optional<Tensor> seen_channels_last(const Tensor& tensor);
// A row-major tensor [N, spatial..., C] as the channels-last one it is.
Tensor marked_channels_last(const Tensor& tensor);

// The tensor in the other order; itself where it has that order already.
Result<Tensor> to_row_major(Queue<Cpu>& queue, const Tensor& tensor);
Result<Tensor> to_channels_last(Queue<Cpu>& queue, const Tensor& tensor);

}  // namespace parallax::runtime
