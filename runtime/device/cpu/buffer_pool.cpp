// SPDX-License-Identifier: Apache-2.0
// Size classes with at most an eighth of waste; idle buffers are given back when they outgrow what is in use. In a
// planned run a buffer is where the plan says, if that range is free.
#include "runtime/device/cpu/buffer_pool.h"

#include <bit>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "inspector/base/memory_budget.h"
#include "inspector/base/payload_memory.h"

namespace parallax::runtime {
namespace {

constexpr int kPoison = 0xFB;  // as float: a large negative number; as int64 index: far out of range
constexpr int64_t kIdleSlackBytes = int64_t{64} << 20;  // idle memory that is always kept

// Rounded up to one of eight steps between powers of two, and to whole cache lines.
size_t size_class(size_t bytes) {
  const size_t lines = bytes < kBufferAlignment ? kBufferAlignment : bytes;
  const size_t step = std::max(kBufferAlignment, std::bit_floor(lines) / 8);
  return (lines + step - 1) / step * step;
}

BufferWatch watch_of(const BufferPoolOptions& options) {
  if (!options.poison) return {};
  const auto fill = [](std::byte* memory, size_t bytes) { std::memset(memory, kPoison, bytes); };
  return {fill, fill};
}

}  // namespace

std::shared_ptr<BufferPool> BufferPool::create(const BufferPoolOptions& options) {
  return std::shared_ptr<BufferPool>(new BufferPool(options));
}

BufferPool::BufferPool(const BufferPoolOptions& options)
    : options_(options), runs_(RunMemory::create(watch_of(options))) {}

BufferPool::~BufferPool() {
  for (auto& [bytes, buffers] : idle_) {
    for (std::byte* memory : buffers) free_payload(memory, bytes);
  }
}

Result<std::shared_ptr<std::byte>> BufferPool::allocate(size_t bytes) {
  if (auto planned = runs_->location(bytes)) return planned;
  const size_t rounded = size_class(bytes);
  std::byte* memory = nullptr;
  {
    const std::lock_guard lock(mutex_);
    memory = PX_TRY(take(bytes, rounded));
  }
  return owned(memory, rounded, runs_->note_request(bytes));
}

Result<std::byte*> BufferPool::take(size_t bytes, size_t rounded) {
  const int64_t live = live_bytes_ + static_cast<int64_t>(rounded);
  if (limit_bytes_ > 0 && weight_bytes_ + live > limit_bytes_)
    return over_memory_limit("a value", static_cast<int64_t>(rounded), weight_bytes_ + live_bytes_, limit_bytes_);
  std::byte* memory = nullptr;
  auto& buffers = idle_[rounded];
  if (!buffers.empty()) {
    memory = buffers.back();
    buffers.pop_back();
    idle_bytes_ -= static_cast<int64_t>(rounded);
  } else {
    const bool has_room = MemoryBudget::has_room(static_cast<int64_t>(rounded + kBufferAlignment));
    if (idle_bytes_ > live_bytes_ + kIdleSlackBytes || !has_room) free_idle();
    memory = allocate_payload(rounded);
  }
  if (memory == nullptr)
    return MemoryBudget::take_refusal("a value").value_or(
        out_of_memory(fmt::format("cannot allocate {} bytes", bytes)));
  live_bytes_ = live;
  peak_bytes_ = std::max(peak_bytes_, live_bytes_);
  return memory;
}

std::shared_ptr<std::byte> BufferPool::owned(std::byte* memory, size_t rounded, const RunMemory::Request& request) {
  if (options_.poison) std::memset(memory, kPoison, rounded);
  return std::shared_ptr<std::byte>(memory, [pool = shared_from_this(), rounded, request](std::byte* pointer) {
    pool->release(pointer, rounded, request);
  });
}

void BufferPool::release(std::byte* memory, size_t bytes, const RunMemory::Request& request) {
  if (options_.poison) std::memset(memory, kPoison, bytes);
  runs_->note_return(request);
  const std::lock_guard lock(mutex_);
  idle_[bytes].push_back(memory);
  live_bytes_ -= static_cast<int64_t>(bytes);
  idle_bytes_ += static_cast<int64_t>(bytes);
}

void BufferPool::begin_run(std::shared_ptr<const MemoryPlan> plan) {
  bool is_needed = false;  // by buffers that are taken one by one
  {
    const std::lock_guard lock(mutex_);
    is_needed = plan == nullptr && limit_bytes_ > 0;
    if (is_needed) live_bytes_ -= std::exchange(block_bytes_, 0);
  }
  if (is_needed) runs_->drop_block();
  runs_->begin_run(std::move(plan), [this](int64_t bytes) { return make_block(bytes); });
}

// The last block is no longer the pool's. Without one, where it would break the limit, buffers are taken one by one,
// and the error is about one of them.
std::shared_ptr<std::byte> BufferPool::make_block(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  live_bytes_ -= std::exchange(block_bytes_, 0);
  free_idle();
  if (limit_bytes_ > 0 && weight_bytes_ + live_bytes_ + bytes > limit_bytes_) return nullptr;
  if (!MemoryBudget::has_room(bytes + static_cast<int64_t>(kBufferAlignment))) return nullptr;
  std::shared_ptr<std::byte> memory = shared_payload(static_cast<size_t>(bytes));
  if (memory == nullptr) return nullptr;
  block_bytes_ = bytes;
  live_bytes_ += bytes;
  peak_bytes_ = std::max(peak_bytes_, live_bytes_);
  return memory;
}

void BufferPool::free_idle() {
  for (auto& [bytes, buffers] : idle_) {
    for (std::byte* memory : buffers) free_payload(memory, bytes);
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

void BufferPool::set_limit(int64_t bytes, int64_t weight_bytes) {
  const std::lock_guard lock(mutex_);
  limit_bytes_ = bytes;
  weight_bytes_ = weight_bytes;
}

void BufferPool::reset_peak() {
  const std::lock_guard lock(mutex_);
  peak_bytes_ = live_bytes_;
}

}  // namespace parallax::runtime
