// SPDX-License-Identifier: Apache-2.0
// The trace of a run, and the offsets of a planned one.
#include "runtime/device/run_memory.h"

#include <utility>

namespace parallax::runtime {

std::shared_ptr<RunMemory> RunMemory::create(BufferWatch watch) {
  return std::shared_ptr<RunMemory>(new RunMemory(std::move(watch)));
}

void RunMemory::begin_run(std::shared_ptr<const MemoryPlan> plan, const MakeBlock& make_block) {
  const std::lock_guard lock(mutex_);
  plan_ = std::move(plan);
  run_ = Run();
  ++run_number_;
  is_running_ = true;
  step_ = kOtherStep;
  const int64_t wanted = plan_ == nullptr ? 0 : plan_->arena_bytes;
  if (wanted == 0 || (arena_ != nullptr && arena_->bytes() >= wanted)) return;
  arena_.reset();
  if (auto block = make_block(wanted)) arena_ = std::make_shared<Arena>(std::move(block), wanted);
}

RunMemory::Run RunMemory::end_run() {
  const std::lock_guard lock(mutex_);
  is_running_ = false;
  plan_.reset();
  step_ = kOtherStep;
  return std::exchange(run_, Run());
}

void RunMemory::drop_block() {
  const std::lock_guard lock(mutex_);
  arena_.reset();
}

std::shared_ptr<const Arena> RunMemory::arena() const {
  const std::lock_guard lock(mutex_);
  return arena_;
}

bool RunMemory::is_idle(const Arena& arena) const {
  const std::lock_guard lock(mutex_);
  return arena.is_idle();
}

std::shared_ptr<std::byte> RunMemory::location(size_t bytes) {
  if (step_ < 0) return nullptr;  // outside of what is planned, as most of a loop is: no lock for it
  const std::lock_guard lock(mutex_);
  if (plan_ == nullptr || arena_ == nullptr) return nullptr;
  const size_t index = plan_->first[static_cast<size_t>(step_)] + requests_++;
  const bool foreseen = index < plan_->first[static_cast<size_t>(step_) + 1];
  if (!foreseen || plan_->buffers[index].bytes < bytes + watch_.gap_bytes) {
    ++run_.requests_outgrown;
    return nullptr;
  }
  const PlannedBuffer& location = plan_->buffers[index];
  std::byte* memory =
      location.is_inside() ? arena_->claim(location.offset, static_cast<int64_t>(location.bytes)) : nullptr;
  if (memory == nullptr) return nullptr;
  if (watch_.claimed) watch_.claimed(memory, bytes);
  return std::shared_ptr<std::byte>(memory, [self = shared_from_this(), arena = arena_, room = location.bytes](
                                                std::byte* pointer) { self->release(*arena, pointer, room); });
}

void RunMemory::release(Arena& arena, std::byte* memory, size_t bytes) {
  if (watch_.released) watch_.released(memory, bytes);
  const std::lock_guard lock(mutex_);
  arena.release(memory);
}

RunMemory::Request RunMemory::note_request(size_t bytes) {
  if (step_ < 0) return {};
  const std::lock_guard lock(mutex_);
  if (!is_running_ || plan_ != nullptr) return {};
  run_.trace.lives.push_back({step_, bytes + watch_.gap_bytes, run_.trace.events++, BufferLife::kNever});
  return {run_number_, static_cast<int64_t>(run_.trace.lives.size()) - 1};
}

void RunMemory::note_return(const Request& request) {
  if (request.life < 0) return;
  const std::lock_guard lock(mutex_);
  if (!is_running_ || request.run != run_number_) return;
  run_.trace.lives[static_cast<size_t>(request.life)].end = run_.trace.events++;
}

}  // namespace parallax::runtime
