// SPDX-License-Identifier: Apache-2.0
// A GPU's launch model on the host: the threads of a block are fibers that run until they meet a barrier or an exchange
// within their warp. What a GPU would leave undefined is an error here: a barrier that not all threads reach, an access
// out of bounds of shared or of device memory, host code that follows an address of the device.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <set>
#include <string>

#include "runtime/device/gpu/launch.h"
#include "runtime/device/storage.h"

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

uint32_t to_tf32(float value);

// A lane's numbers of a product of matrices, and the numbers of each lane of its warp after that.
struct Fragments {
  uint32_t a[4], b[2];
};

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
  template <class W>
  W& at(int byte) const {
    const auto bytes = static_cast<int64_t>(sizeof(T)) * count_;
    if (byte >= 0 && byte % alignof(W) == 0 && byte + static_cast<int64_t>(sizeof(W)) <= bytes)
      return *reinterpret_cast<W*>(memory_ + byte);
    report("shared memory: " + std::to_string(sizeof(W)) + " bytes at " + std::to_string(byte) + " of " +
           std::to_string(bytes));
    static thread_local W spare;
    return spare;
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
  template <class T>
  T shuffle_xor(T value, int lanes) {
    static_assert(sizeof(T) <= sizeof(uint64_t));
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(T));
    const uint64_t other = exchange(bits, thread_ ^ lanes);
    std::memcpy(&value, &other, sizeof(T));
    return value;
  }
  uint32_t ballot(bool flag);
  template <class T>
  void multiply_add(float* c, const uint32_t* a, uint32_t b0, uint32_t b1);
  uint32_t to_tf32(float value) { return emulation::to_tf32(value); }
  template <class T>
  uint32_t pack(float low, float high);
  void atomic_add(uint32_t* pointer, uint32_t value) { *pointer += value; }

 private:
  std::byte* take_shared(size_t offset, size_t bytes);
  uint64_t exchange(uint64_t own, int from_thread);  // waits for the warp, then reads
  // Those of the whole warp, which reads them before `release`.
  const emulation::Fragments* exchange(const emulation::Fragments& own);
  void release();

  emulation::Block& owner_;
  int64_t block_, blocks_;
  int thread_, threads_;
  size_t used_ = 0;
};

// The sum of each number in the order of the operands, each product fused.
template <class T>
void LaunchEmulated::multiply_add(float* c, const uint32_t* a, uint32_t b0, uint32_t b1) {
  constexpr int kInWord = static_cast<int>(4 / sizeof(T)), kHalf = 4 * kInWord;  // of the operands, 8 or 4 at a time
  const emulation::Fragments* warp = exchange({{a[0], a[1], a[2], a[3]}, {b0, b1}});
  const auto number = [](uint32_t word, int k) {
    if constexpr (kInWord == 1)
      return std::bit_cast<float>(word);
    else
      return storage::decode(T{static_cast<uint16_t>(word >> k % 2 * 16)});
  };
  const int lane = thread_ % kWarp;
  for (int i = 0; i < 4; ++i) {
    const int row = lane / 4, half_of_rows = i / 2, column = lane % 4 * 2 + i % 2;
    for (int k = 0; k < 2 * kHalf; ++k) {
      const int of_row = k % kHalf / kInWord;
      const uint32_t left = warp[row * 4 + of_row].a[half_of_rows + k / kHalf * 2];
      const uint32_t right = warp[column * 4 + of_row].b[k / kHalf];
      c[i] = std::fma(number(left, k), number(right, k), c[i]);
    }
  }
  release();
}
template <class T>
uint32_t LaunchEmulated::pack(float low, float high) {
  return storage::to_storage<T>(low).bits | uint32_t{storage::to_storage<T>(high).bits} << 16;
}

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
