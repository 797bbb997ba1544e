// SPDX-License-Identifier: Apache-2.0
// Queue<Cpu>: the host as a device. Work runs at once, on the process-wide thread pool; memory comes from the session's
// pool.
#pragma once

#include <memory>

#include "runtime/device/devices.h"

namespace parallax::runtime {

class BufferPool;
class RunMemory;
class WeightCache;

template <>
class Queue<Cpu> {
 public:
  explicit Queue(std::shared_ptr<BufferPool> pool);
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // A tensor of the pool, uninitialized (strings are made outside of it, empty). Its payload may be written through
  // writable() until it is handed on.
  Result<Tensor> allocate(DType dtype, const Shape& shape);

  BufferPool& pool() { return *pool_; }
  RunMemory& memory();
  WeightCache& weights() { return *weights_; }
  const WeightCache& weights() const { return *weights_; }

 private:
  std::shared_ptr<BufferPool> pool_;
  std::unique_ptr<WeightCache> weights_;
};

}  // namespace parallax::runtime
