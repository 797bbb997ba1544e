// SPDX-License-Identifier: Apache-2.0
// The host as a platform: its kernels on its own memory.
#pragma once

#include <memory>

#include "runtime/device/cpu/buffer_pool.h"
#include "runtime/plan/platform.h"

namespace parallax::runtime {

std::unique_ptr<Platform> make_host_platform(const BufferPoolOptions& options);

// The error where a kernel's own buffers, or packed weights, find no memory: the job's budget or the system refuses it.
Error no_kernel_memory();

// A call of one row: what every platform does with its own context.
template <class Device>
Status call_row(const KernelRow<Device>& row, const Node& node, std::span<const OpInput> inputs, uint64_t seed,
                Queue<Device>& queue, CallResult& result) {
  OpContext<Device> op(node, inputs, seed, queue, &result);
  Status ran = row.run(op);
  if constexpr (GpuDevice<Device>) {  // launches tell their errors to the queue
    Status launched = queue.take_failure();
    if (ran.ok()) ran = std::move(launched);
  }
  return ran;
}

template <class Device>
ChosenKernel chosen(const KernelRow<Device>& row) {
  return {&row, row.dtypes, row.dtype_input, row.arguments, row.host_inputs};
}

}  // namespace parallax::runtime
