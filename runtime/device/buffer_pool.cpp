// Size classes with at most an eighth of waste; idle buffers are given back when they outgrow what is in use. In a
// planned run a buffer lies where the plan says, if that place is free.
#include "runtime/device/buffer_pool.h"

#include <bit>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace parallax::runtime {
namespace {

constexpr size_t kAlignment = kBufferAlignment;
constexpr int kPoison = 0xFB;  // as float: a large negative number; as int64 index: far out of range
constexpr int64_t kIdleSlackBytes = int64_t{64} << 20;  // idle memory that is always kept

// Rounded up to one of eight steps between powers of two, and to whole cache lines.
size_t size_class(size_t bytes) {
  const size_t lines = bytes < kAlignment ? kAlignment : bytes;
  const size_t step = std::max(kAlignment, std::bit_floor(lines) / 8);
  return (lines + step - 1) / step * step;
}

}  // namespace

std::shared_ptr<BufferPool> BufferPool::create(const BufferPoolOptions& options) {
  return std::shared_ptr<BufferPool>(new BufferPool(options));
}

BufferPool::~BufferPool() {
  for (auto& [bytes, buffers] : idle_) {
    for (std::byte* memory : buffers) std::free(memory);
  }
}

Result<std::shared_ptr<std::byte>> BufferPool::allocate(size_t bytes) {
  const size_t rounded = size_class(bytes);
  std::byte* memory = nullptr;
  int64_t life = -1;
  {
    const std::lock_guard lock(mutex_);
    if (auto planned = allocate_planned(bytes)) return planned;
    memory = PX_TRY(take(bytes, rounded));
    life = note_request(bytes);
  }
  return owned(memory, rounded, life);
}

Result<std::byte*> BufferPool::take(size_t bytes, size_t rounded) {
  const int64_t live = live_bytes_ + static_cast<int64_t>(rounded);
  if (limit_bytes_ > 0 && live > limit_bytes_) {
    return out_of_memory(
        fmt::format("{} bytes more would exceed the memory limit: {} of {} bytes left for values are in use", bytes,
                    live_bytes_, limit_bytes_));
  }
  std::byte* memory = nullptr;
  auto& buffers = idle_[rounded];
  if (!buffers.empty()) {
    memory = buffers.back();
    buffers.pop_back();
    idle_bytes_ -= static_cast<int64_t>(rounded);
  } else {
    if (idle_bytes_ > live_bytes_ + kIdleSlackBytes) free_idle();
    memory = static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded));
  }
  if (memory == nullptr) return out_of_memory(fmt::format("cannot allocate {} bytes", bytes));
  live_bytes_ = live;
  peak_bytes_ = std::max(peak_bytes_, live_bytes_);
  return memory;
}

std::shared_ptr<std::byte> BufferPool::owned(std::byte* memory, size_t rounded, int64_t life) {
  if (options_.poison) std::memset(memory, kPoison, rounded);
  return std::shared_ptr<std::byte>(memory, [pool = shared_from_this(), rounded, run = run_number_,
                                             life](std::byte* pointer) { pool->release(pointer, rounded, run, life); });
}

void BufferPool::release(std::byte* memory, size_t bytes, uint64_t run, int64_t life) {
  if (options_.poison) std::memset(memory, kPoison, bytes);
  const std::lock_guard lock(mutex_);
  idle_[bytes].push_back(memory);
  live_bytes_ -= static_cast<int64_t>(bytes);
  idle_bytes_ += static_cast<int64_t>(bytes);
  note_return(run, life);
}

void BufferPool::begin_run(std::shared_ptr<const MemoryPlan> plan) {
  const std::lock_guard lock(mutex_);
  plan_ = std::move(plan);
  run_ = Run();
  ++run_number_;
  is_running_ = true;
  step_ = kOtherStep;
  const int64_t wanted = plan_ == nullptr ? 0 : plan_->arena_bytes;
  if (plan_ == nullptr && limit_bytes_ > 0) drop_arena();  // its bytes are needed
  if (wanted > 0 && (arena_ == nullptr || arena_->bytes() < wanted)) make_arena(wanted);
}

// Whoever still holds a buffer in it keeps its memory; it is no longer the pool's.
void BufferPool::drop_arena() {
  if (arena_ != nullptr) live_bytes_ -= arena_->bytes();
  arena_.reset();
}

// Without one, where it would break the limit, buffers are taken one by one, and the error is about one of them.
void BufferPool::make_arena(int64_t bytes) {
  drop_arena();
  free_idle();
  if (limit_bytes_ > 0 && live_bytes_ + bytes > limit_bytes_) return;
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(kAlignment, static_cast<size_t>(bytes)));
  if (memory == nullptr) return;
  live_bytes_ += bytes;
  peak_bytes_ = std::max(peak_bytes_, live_bytes_);
  std::shared_ptr<std::byte> owner(memory, [](std::byte* pointer) { std::free(pointer); });
  arena_ = std::make_shared<Arena>(std::move(owner), bytes);
}

BufferPool::Run BufferPool::end_run() {
  const std::lock_guard lock(mutex_);
  is_running_ = false;
  plan_.reset();
  step_ = kOtherStep;
  return std::exchange(run_, Run());
}

std::shared_ptr<std::byte> BufferPool::allocate_planned(size_t bytes) {
  if (plan_ == nullptr || arena_ == nullptr || step_ < 0) return nullptr;
  const size_t index = plan_->first[static_cast<size_t>(step_)] + requests_++;
  const bool foreseen = index < plan_->first[static_cast<size_t>(step_) + 1];
  if (!foreseen || plan_->buffers[index].bytes < bytes) {
    ++run_.requests_outgrown;
    return nullptr;
  }
  const PlannedBuffer& place = plan_->buffers[index];
  std::byte* memory = place.is_inside() ? arena_->claim(place.offset, static_cast<int64_t>(place.bytes)) : nullptr;
  if (memory == nullptr) return nullptr;
  if (options_.poison) std::memset(memory, kPoison, place.bytes);
  return std::shared_ptr<std::byte>(memory, [pool = shared_from_this(), arena = arena_, room = place.bytes](
                                                std::byte* pointer) { pool->release_planned(*arena, pointer, room); });
}

void BufferPool::release_planned(Arena& arena, std::byte* memory, size_t bytes) {
  if (options_.poison) std::memset(memory, kPoison, bytes);
  const std::lock_guard lock(mutex_);
  arena.release(memory);
}

// The number of the request in the trace, -1 where none is kept.
int64_t BufferPool::note_request(size_t bytes) {
  if (!is_running_ || plan_ != nullptr || step_ < 0) return -1;
  run_.trace.lives.push_back({step_, bytes, run_.trace.events++, BufferLife::kNever});
  return static_cast<int64_t>(run_.trace.lives.size()) - 1;
}

void BufferPool::note_return(uint64_t run, int64_t life) {
  if (life < 0 || !is_running_ || run != run_number_) return;
  run_.trace.lives[static_cast<size_t>(life)].end = run_.trace.events++;
}

void BufferPool::free_idle() {
  for (auto& [bytes, buffers] : idle_) {
    for (std::byte* memory : buffers) std::free(memory);
    buffers.clear();
  }
  idle_bytes_ = 0;
}

int64_t BufferPool::live_bytes() const {
  const std::lock_guard lock(mutex_);
  return live_bytes_;
}

int64_t BufferPool::peak_bytes() const {
  const std::lock_guard lock(mutex_);
  return peak_bytes_;
}

int64_t BufferPool::held_bytes() const {
  const std::lock_guard lock(mutex_);
  return live_bytes_ + idle_bytes_;
}

void BufferPool::set_limit(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  limit_bytes_ = bytes;
}

void BufferPool::reset_peak() {
  const std::lock_guard lock(mutex_);
  peak_bytes_ = live_bytes_;
}

}  // namespace parallax::runtime
