// SPDX-License-Identifier: Apache-2.0
// Work of a CUDA queue besides kernels: copies to the host (gpu/host_copies.h has the contract of each function), and
// statistics of captured values.
#pragma once

#include "inspector/tensor/element_order.h"
#include "runtime/device/cuda/queue_cuda.h"

namespace parallax::runtime {

Result<std::shared_ptr<std::byte>> host_memory(Queue<Cuda>& queue, size_t bytes);
Result<int64_t> start_copy_to_host(Queue<Cuda>& queue, std::byte* target, const std::byte* source, size_t bytes);
Result<bool> is_copied(Queue<Cuda>& queue, int64_t ticket);
Status wait_copied(Queue<Cuda>& queue, int64_t ticket);

// The statistics of each chunk of the view (gpu/statistics_kernel.h), for callers that do not see kernels.
Result<Tensor> chunk_statistics(Queue<Cuda>& queue, const TensorView& view,
                                ElementOrder order = ElementOrder::row_major);

}  // namespace parallax::runtime
