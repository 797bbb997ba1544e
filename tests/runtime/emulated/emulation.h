// SPDX-License-Identifier: Apache-2.0
// A GPU's launch model on the host: the threads of a block are fibers that run until they meet a barrier or an exchange
// within their warp. What a GPU would leave undefined is an error here: a barrier that not all threads reach, an access
// out of bounds of shared or of device memory, host code that follows an address of the device.
#pragma once

#include <cstring>
#include <memory>
#include <set>
#include <string>

#include "runtime/device/gpu/launch.h"

namespace parallax::runtime::emulation {

// A thread has met something a GPU has no answer to; the first problem of a launch is its result.
void report(const std::string& problem);

// Device memory: freed when the owner lets go, checked in every access.
std::shared_ptr<const std::byte> allocate(size_t bytes);
int64_t allocation_count();                    // of this process so far
void poison(std::byte* memory, size_t bytes);  // of an allocation: what is fresh memory looks like
// The true address, for copies by the queue. Error: execution, unless all `bytes` are in one allocation.
Result<std::byte*> true_address(const std::byte* pointer, size_t bytes);
int64_t live_bytes();

// The block that a fiber belongs to, as its scheduler sees it.
class Block;

template <class T>
class Shared {
 public:
  Shared(std::byte* memory, int64_t count) : memory_(memory), count_(count) {}
  T& operator[](int64_t index) const {
    if (index < 0 || index >= count_) {
      report("shared memory: element " + std::to_string(index) + " of " + std::to_string(count_));
      static thread_local T spare;
      return spare;
    }
    return reinterpret_cast<T*>(memory_)[index];
  }

 private:
  std::byte* memory_;
  int64_t count_;
};

}  // namespace parallax::runtime::emulation

namespace parallax::runtime::gpu {

class LaunchEmulated {
 public:
  LaunchEmulated(emulation::Block& owner, int64_t block, int64_t blocks, int thread, int threads)
      : owner_(owner), block_(block), blocks_(blocks), thread_(thread), threads_(threads) {}

  int64_t block() const { return block_; }
  int64_t blocks() const { return blocks_; }
  int thread() const { return thread_; }
  int threads() const { return threads_; }

  template <class T>
  emulation::Shared<T> shared(int count) {
    used_ = (used_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    std::byte* memory = take_shared(used_, static_cast<size_t>(count) * sizeof(T));
    used_ += static_cast<size_t>(count) * sizeof(T);
    return {memory, memory == nullptr ? 0 : count};
  }

  void barrier();
  template <class T>
  T shuffle_down(T value, int lanes) {
    static_assert(sizeof(T) <= sizeof(uint64_t));
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(T));
    const int lane = thread_ % kWarp;
    const uint64_t other = exchange(bits, lane + lanes < kWarp ? thread_ + lanes : thread_);
    std::memcpy(&value, &other, sizeof(T));
    return value;
  }
  uint32_t ballot(bool flag);
  void atomic_add(uint32_t* pointer, uint32_t value) { *pointer += value; }

 private:
  std::byte* take_shared(size_t offset, size_t bytes);
  uint64_t exchange(uint64_t own, int from_thread);  // waits for the warp, then reads

  emulation::Block& owner_;
  int64_t block_, blocks_;
  int thread_, threads_;
  size_t used_ = 0;
};

}  // namespace parallax::runtime::gpu

namespace parallax::runtime::emulation {

using Body = void (*)(gpu::LaunchEmulated& launch, const void* kernel);

// Runs all blocks one after the other. Errors: execution, saying what a GPU would have no answer to.
Status run(const char* name, const gpu::LaunchSize& size, Body body, const void* kernel);

// The names of all kernels that have been run in this process.
const std::set<std::string>& kernels_run();
// How many launches there were in this process.
int64_t launch_count();

}  // namespace parallax::runtime::emulation
