// SPDX-License-Identifier: Apache-2.0
// Allocation for the host's queue.
#include "runtime/device/cpu/queue_cpu.h"

#include "runtime/device/cpu/buffer_pool.h"
#include "runtime/device/cpu/weight_cache.h"

namespace parallax::runtime {

Queue<Cpu>::Queue(std::shared_ptr<BufferPool> pool)
    : pool_(std::move(pool)), weights_(std::make_unique<WeightCache>()) {}

Queue<Cpu>::~Queue() = default;

RunMemory& Queue<Cpu>::memory() { return pool_->runs(); }

Result<Tensor> Queue<Cpu>::allocate(DType dtype, const Shape& shape) {
  if (dtype == DType::string) return Tensor::allocate(dtype, shape);
  const size_t bytes = byte_size(dtype, shape.element_count());
  std::shared_ptr<std::byte> memory = PX_TRY(pool_->allocate(bytes));
  if (is_sub_byte(dtype) && bytes > 0) memory.get()[bytes - 1] = std::byte{0};  // unused high bits are zero
  return Tensor::wrap(dtype, shape, std::move(memory));
}

}  // namespace parallax::runtime
