// SPDX-License-Identifier: Apache-2.0
// Scratch<T>: a vector of numbers that are about to be written: they are not set to 0 first, and begin
// a cache line.
#pragma once

#include <cstddef>
#include <new>
#include <utility>
#include <vector>

#include "inspector/base/payload_memory.h"

namespace parallax::reference {

template <class T>
struct ScratchAllocator {
  using value_type = T;

  ScratchAllocator() = default;
  template <class U>
  ScratchAllocator(const ScratchAllocator<U>&) {}

  T* allocate(size_t count) {
    std::byte* memory = allocate_payload(count * sizeof(T));
    if (memory == nullptr) throw std::bad_alloc();
    return reinterpret_cast<T*>(memory);
  }
  void deallocate(T* memory, size_t count) { free_payload(reinterpret_cast<std::byte*>(memory), count * sizeof(T)); }
  // An element made without a value is left as it is.
  template <class U, class... Arguments>
  void construct(U* location, Arguments&&... arguments) {
    if constexpr (sizeof...(Arguments) > 0)
      ::new (static_cast<void*>(location)) U(std::forward<Arguments>(arguments)...);
  }
  bool operator==(const ScratchAllocator&) const { return true; }
};

template <class T>
using Scratch = std::vector<T, ScratchAllocator<T>>;

}  // namespace parallax::reference
