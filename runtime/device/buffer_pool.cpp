// Size classes with at most an eighth of waste; idle buffers are given back when they outgrow what is in use.
#include "runtime/device/buffer_pool.h"

#include <bit>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

namespace parallax::runtime {
namespace {

constexpr size_t kAlignment = 64;
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
  {
    const std::lock_guard lock(mutex_);
    const int64_t live = live_bytes_ + static_cast<int64_t>(rounded);
    if (limit_bytes_ > 0 && live > limit_bytes_) {
      return out_of_memory(
          fmt::format("{} bytes more would exceed the memory limit: {} of {} bytes left for values are in use", bytes,
                      live_bytes_, limit_bytes_));
    }
    auto& buffers = idle_[rounded];
    if (!buffers.empty()) {
      memory = buffers.back();
      buffers.pop_back();
      idle_bytes_ -= static_cast<int64_t>(rounded);
    } else if (idle_bytes_ > live_bytes_ + kIdleSlackBytes) {
      free_idle();
    }
    live_bytes_ = live;
    peak_bytes_ = std::max(peak_bytes_, live_bytes_);
  }
  if (memory == nullptr) memory = static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded));
  if (memory == nullptr) {
    const std::lock_guard lock(mutex_);
    live_bytes_ -= static_cast<int64_t>(rounded);
    return out_of_memory(fmt::format("cannot allocate {} bytes", bytes));
  }
  if (options_.poison) std::memset(memory, kPoison, rounded);
  return std::shared_ptr<std::byte>(
      memory, [pool = shared_from_this(), rounded](std::byte* pointer) { pool->release(pointer, rounded); });
}

void BufferPool::release(std::byte* memory, size_t bytes) {
  if (options_.poison) std::memset(memory, kPoison, bytes);
  const std::lock_guard lock(mutex_);
  idle_[bytes].push_back(memory);
  live_bytes_ -= static_cast<int64_t>(bytes);
  idle_bytes_ += static_cast<int64_t>(bytes);
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
