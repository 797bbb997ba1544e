// SPDX-License-Identifier: Apache-2.0
// Numbers that begin a line of the cache and are not set to anything: packed weights, and what tasks keep for a moment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "inspector/base/payload_memory.h"
#include "runtime/device/cpu/weight_memory.h"

namespace parallax::runtime {

template <class T>
class AlignedNumbers {
 public:
  // In huge pages where they are many: for what one call of an operator needs once.
  explicit AlignedNumbers(int64_t count) : AlignedNumbers(allocate_payload, count) {}
  // In huge pages next to other weights, however few they are: for packed weights.
  static AlignedNumbers of_weights(int64_t count) {
    std::shared_ptr<std::byte> memory = weight_memory(static_cast<size_t>(count) * sizeof(T));
    if (memory == nullptr) throw std::bad_alloc();
    std::byte* const begin = memory.get();
    return AlignedNumbers(begin, Free{0, std::move(memory)});
  }
  // From the thread's own heap: for what each task of a parallel loop makes anew.
  static AlignedNumbers of_task(int64_t count) { return AlignedNumbers(allocate_scratch, count); }

  T* data() { return reinterpret_cast<T*>(memory_.get()); }
  const T* data() const { return reinterpret_cast<const T*>(memory_.get()); }

 private:
  struct Free {
    size_t bytes;
    std::shared_ptr<std::byte> owner = nullptr;  // of weights
    void operator()(std::byte* memory) const {
      if (owner == nullptr) free_payload(memory, bytes);
    }
  };

  AlignedNumbers(std::byte* (*allocate)(size_t), int64_t count)
      : memory_(allocate(static_cast<size_t>(count) * sizeof(T)), Free{static_cast<size_t>(count) * sizeof(T)}) {
    if (memory_ == nullptr) throw std::bad_alloc();
  }

  AlignedNumbers(std::byte* memory, Free free) : memory_(memory, std::move(free)) {}

  std::unique_ptr<std::byte, Free> memory_;
};

using AlignedFloats = AlignedNumbers<float>;
using AlignedBytes = AlignedNumbers<uint8_t>;

}  // namespace parallax::runtime
