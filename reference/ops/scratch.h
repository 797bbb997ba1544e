// Scratch<T>: a vector of numbers that are about to be written: they are not set to 0 first, and begin a cache line.
#pragma once

#include <cstddef>
#include <new>
#include <utility>
#include <vector>

namespace parallax::reference {

template <class T>
struct ScratchAllocator {
  using value_type = T;
  static constexpr std::align_val_t kAlignment{64};

  ScratchAllocator() = default;
  template <class U>
  ScratchAllocator(const ScratchAllocator<U>&) {}

  T* allocate(size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), kAlignment)); }
  void deallocate(T* memory, size_t) { ::operator delete(memory, kAlignment); }
  // An element made without a value is left as it is.
  template <class U, class... Arguments>
  void construct(U* place, Arguments&&... arguments) {
    if constexpr (sizeof...(Arguments) > 0) ::new (static_cast<void*>(place)) U(std::forward<Arguments>(arguments)...);
  }
  bool operator==(const ScratchAllocator&) const { return true; }
};

template <class T>
using Scratch = std::vector<T, ScratchAllocator<T>>;

}  // namespace parallax::reference
