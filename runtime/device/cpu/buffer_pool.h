// SPDX-License-Identifier: Apache-2.0
// BufferPool: host memory for values, kept in size classes and reused as soon as the last owner lets go. A buffer is
// owned by whoever holds its shared_ptr, so a value that escapes (an output, an observer's copy) can never be
// overwritten. A run that a MemoryPlan foresees takes its buffers from one block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "inspector/base/result.h"
#include "runtime/device/run_memory.h"

namespace parallax::runtime {

struct BufferPoolOptions {
  bool poison = false;  // tests: fill buffers with a pattern when they are handed out and when they come back
};

class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  static std::shared_ptr<BufferPool> create(const BufferPoolOptions& options);
  ~BufferPool();

  // 64-byte aligned, uninitialized, readable up to the next multiple of 64. Errors: out_of_memory.
  Result<std::shared_ptr<std::byte>> allocate(size_t bytes);

  int64_t live_bytes() const;
  int64_t peak_bytes() const;
  int64_t held_bytes() const;  // live and idle
  void reset_peak();
  // The limit of live buffers and the weights, which are stored elsewhere; 0: none.
  void set_limit(int64_t bytes, int64_t weight_bytes);

  // ---- Runs, as RunMemory has them ----
  void begin_run(std::shared_ptr<const MemoryPlan> plan);
  void enter_step(int32_t step) { runs_->enter_step(step); }
  RunMemory::Run end_run() { return runs_->end_run(); }
  RunMemory& runs() { return *runs_; }

 private:
  explicit BufferPool(const BufferPoolOptions& options);
  // With the mutex held.
  Result<std::byte*> take(size_t bytes, size_t rounded);
  void free_idle();

  // These take it.
  std::shared_ptr<std::byte> make_block(int64_t bytes);
  std::shared_ptr<std::byte> owned(std::byte* memory, size_t rounded, const RunMemory::Request& request);
  void release(std::byte* memory, size_t bytes, const RunMemory::Request& request);

  const BufferPoolOptions options_;
  mutable std::mutex mutex_;
  std::unordered_map<size_t, std::vector<std::byte*>> idle_;
  int64_t live_bytes_ = 0;
  int64_t idle_bytes_ = 0;
  int64_t peak_bytes_ = 0;
  int64_t limit_bytes_ = 0;
  int64_t weight_bytes_ = 0;
  int64_t block_bytes_ = 0;  // of the live ones: the block of planned runs
  const std::shared_ptr<RunMemory> runs_;
};

}  // namespace parallax::runtime
