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
#include "runtime/device/arena.h"
#include "runtime/device/memory_plan.h"

namespace parallax::runtime {

struct BufferPoolOptions {
  bool poison = false;  // tests: fill buffers with a pattern when they are handed out and when they come back
};

class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  static std::shared_ptr<BufferPool> create(const BufferPoolOptions& options);
  ~BufferPool();

  // 64-byte aligned, uninitialised, readable up to the next multiple of 64. Errors: out_of_memory.
  Result<std::shared_ptr<std::byte>> allocate(size_t bytes);

  int64_t live_bytes() const;
  int64_t peak_bytes() const;
  int64_t held_bytes() const;  // live and idle
  void reset_peak();
  void set_limit(int64_t bytes);  // of live buffers, 0: none

  // ---- Runs: what is asked for between begin_run and end_run is traced, or placed as `plan` says (null: not) ----
  void begin_run(std::shared_ptr<const MemoryPlan> plan);
  void enter_step(int32_t step) {  // kOtherStep: one that may run several times, or not at all
    step_ = step;
    requests_ = 0;
  }
  struct Run {
    MemoryTrace trace;              // of a run without a plan
    int64_t requests_outgrown = 0;  // that the plan had no room for
  };
  Run end_run();
  static constexpr int32_t kOtherStep = -1;

 private:
  explicit BufferPool(const BufferPoolOptions& options) : options_(options) {}
  // All below: with the mutex held.
  std::shared_ptr<std::byte> allocate_planned(size_t bytes);  // null: not planned, or its place is in use
  Result<std::byte*> take(size_t bytes, size_t rounded);
  int64_t note_request(size_t bytes);
  void note_return(uint64_t run, int64_t life);
  void make_arena(int64_t bytes);
  void drop_arena();
  void free_idle();

  // These take it.
  std::shared_ptr<std::byte> owned(std::byte* memory, size_t rounded, int64_t life);
  void release(std::byte* memory, size_t bytes, uint64_t run, int64_t life);
  void release_planned(Arena& arena, std::byte* memory, size_t bytes);

  const BufferPoolOptions options_;
  mutable std::mutex mutex_;
  std::unordered_map<size_t, std::vector<std::byte*>> idle_;
  int64_t live_bytes_ = 0;
  int64_t idle_bytes_ = 0;
  int64_t peak_bytes_ = 0;
  int64_t limit_bytes_ = 0;

  std::shared_ptr<Arena> arena_;  // kept from run to run
  std::shared_ptr<const MemoryPlan> plan_;
  Run run_;
  uint64_t run_number_ = 0;
  bool is_running_ = false;
  int32_t step_ = kOtherStep;
  size_t requests_ = 0;  // of the step
};

}  // namespace parallax::runtime
