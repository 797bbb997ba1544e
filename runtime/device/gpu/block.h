// SPDX-License-Identifier: Apache-2.0
// Operations of all threads of a block together: folds over their values.
#pragma once

#include <bit>
#include <type_traits>

#include "runtime/device/gpu/launch.h"

namespace parallax::runtime::gpu {

// A slot in shared memory for each warp, whatever type a fold's state has.
struct alignas(16) Slot {
  unsigned char bytes[32];
};
template <class T, class Slots>
struct SlotsAs {
  static_assert(sizeof(T) <= sizeof(Slot));
  Slots slots;
  PX_HD T& operator[](int64_t index) const { return *reinterpret_cast<T*>(&slots[index]); }
};

// `value` of the thread `lanes` further in the warp, whatever its size.
template <class Launch, class T>
PX_HD T shuffled_down(Launch& launch, const T& value, int lanes) {
  if constexpr (std::is_arithmetic_v<T>) {
    return launch.shuffle_down(value, lanes);
  } else {
    static_assert(sizeof(T) % sizeof(uint32_t) == 0);
    struct Words {
      uint32_t words[sizeof(T) / sizeof(uint32_t)];
    };
    Words all = std::bit_cast<Words>(value);
    for (uint32_t& word : all.words) word = launch.shuffle_down(word, lanes);
    return std::bit_cast<T>(all);
  }
}

// The merge of the values of a warp in a fixed tree, for its first thread.
template <class Launch, class T, class Merge>
PX_HD T merge_warp(Launch& launch, T value, const Merge& merge) {
  for (int lanes = kWarp / 2; lanes > 0; lanes /= 2) value = merge(value, shuffled_down(launch, value, lanes));
  return value;
}

// The merge of every thread's `value` in a fixed order, the same for all threads: in trees within warps, then warp by
// warp. `slots` has one for each warp.
template <class Launch, class T, class Slots, class Merge>
PX_HD T merge_block(Launch& launch, const Slots& slots, T value, const Merge& merge) {
  const SlotsAs<T, Slots> partial{slots};
  const int thread = launch.thread(), warps = launch.threads() / kWarp;
  value = merge_warp(launch, value, merge);
  if (thread % kWarp == 0) partial[thread / kWarp] = value;
  launch.barrier();
  T result = partial[0];
  for (int warp = 1; warp < warps; ++warp) result = merge(result, partial[warp]);
  launch.barrier();  // nobody writes the next value before all have read this one
  return result;
}

}  // namespace parallax::runtime::gpu
