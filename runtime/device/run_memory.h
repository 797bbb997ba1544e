// SPDX-License-Identifier: Apache-2.0
// RunMemory: the buffers that a run asks for. It is traced, or each buffer is where a MemoryPlan says, in one block
// that is kept from run to run. The same for every device: the block is memory of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "runtime/device/arena.h"
#include "runtime/device/memory_plan.h"

namespace parallax::runtime {

// A tool or a test that follows the buffers of the block.
struct BufferWatch {
  using Call = std::function<void(std::byte* memory, size_t bytes)>;
  Call claimed;          // a buffer is handed out; `bytes` were asked for. May be null
  Call released;         // it comes back; `bytes` are all that it had room for. May be null
  size_t gap_bytes = 0;  // between two buffers, at least
};

class RunMemory : public std::enable_shared_from_this<RunMemory> {
 public:
  static constexpr int32_t kOtherStep = -1;

  struct Run {
    MemoryTrace trace;              // of a run without a plan
    int64_t requests_outgrown = 0;  // that the plan had no room for
  };
  // A block of so many bytes; null where there is none, or where it would break a limit: then nothing is placed.
  using MakeBlock = std::function<std::shared_ptr<std::byte>(int64_t bytes)>;

  static std::shared_ptr<RunMemory> create(BufferWatch watch = {});

  // Requests between begin_run and end_run are traced, or served by `plan` (null: none). A plan that needs a larger
  // block than the last one frees that and allocates its own.
  void begin_run(std::shared_ptr<const MemoryPlan> plan, const MakeBlock& make_block);
  void enter_step(int32_t step) {  // kOtherStep: one that may run several times, or not at all
    step_ = step;
    requests_ = 0;
  }
  Run end_run();
  // Until it is destroyed, nothing is placed or traced, and no request is counted.
  class Pause {
   public:
    explicit Pause(RunMemory& memory) : memory_(memory), step_(std::exchange(memory.step_, kOtherStep)) {}
    ~Pause() { memory_.step_ = step_; }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    RunMemory& memory_;
    int32_t step_;
  };
  Pause pause() { return Pause(*this); }
  void drop_block();                           // owners of a buffer in it keep its memory
  std::shared_ptr<const Arena> arena() const;  // the block; null: none
  bool is_idle(const Arena& arena) const;      // no buffer in it is in use

  // The next request of the step. Null: not planned, or its range is in use; then the caller takes a buffer of its own,
  // and reports it, and of its return.
  std::shared_ptr<std::byte> location(size_t bytes);
  struct Request {
    uint64_t run = 0;
    int64_t life = -1;  // in the trace; -1 where none is kept
  };
  Request note_request(size_t bytes);
  void note_return(const Request& request);

 private:
  explicit RunMemory(BufferWatch watch) : watch_(std::move(watch)) {}
  void release(Arena& arena, std::byte* memory, size_t bytes);

  const BufferWatch watch_;
  mutable std::mutex mutex_;
  std::shared_ptr<Arena> arena_;
  std::shared_ptr<const MemoryPlan> plan_;
  Run run_;
  uint64_t run_number_ = 0;
  bool is_running_ = false;
  int32_t step_ = kOtherStep;
  size_t requests_ = 0;  // of the step
};

}  // namespace parallax::runtime
