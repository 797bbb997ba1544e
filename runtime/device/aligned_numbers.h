// Numbers that begin a line of the cache and are not set to anything: packed weights, and what tasks keep for a moment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "inspector/base/payload_memory.h"

namespace parallax::runtime {

template <class T>
class AlignedNumbers {
 public:
  // In huge pages where they are many: for weights, and for what one call of an operator needs once.
  explicit AlignedNumbers(int64_t count) : AlignedNumbers(allocate_payload, count) {}
  // From the thread's own heap: for what each task of a parallel loop makes anew.
  static AlignedNumbers of_task(int64_t count) { return AlignedNumbers(allocate_scratch, count); }

  T* data() { return reinterpret_cast<T*>(memory_.get()); }
  const T* data() const { return reinterpret_cast<const T*>(memory_.get()); }

 private:
  struct Free {
    size_t bytes;
    void operator()(std::byte* memory) const { free_payload(memory, bytes); }
  };

  AlignedNumbers(std::byte* (*allocate)(size_t), int64_t count)
      : memory_(allocate(static_cast<size_t>(count) * sizeof(T)), Free{static_cast<size_t>(count) * sizeof(T)}) {
    if (memory_ == nullptr) throw std::bad_alloc();
  }

  std::unique_ptr<std::byte, Free> memory_;
};

using AlignedFloats = AlignedNumbers<float>;
using AlignedBytes = AlignedNumbers<uint8_t>;

}  // namespace parallax::runtime
