// SPDX-License-Identifier: Apache-2.0
// Operations of all threads of a block together: folds over their values.
#pragma once

#include "runtime/device/gpu/launch.h"

namespace parallax::runtime::gpu {

// A slot in shared memory for each thread, whatever type a fold's state has.
struct alignas(16) Slot {
  unsigned char bytes[16];
};
template <class T, class Slots>
struct SlotsAs {
  static_assert(sizeof(T) <= sizeof(Slot));
  Slots slots;
  PX_HD T& operator[](int64_t index) const { return *reinterpret_cast<T*>(&slots[index]); }
};

// The merge of every thread's `value` in a fixed tree, the same for all threads. `slots` has one for each thread.
template <class Launch, class T, class Slots, class Merge>
PX_HD T merge_block(Launch& launch, const Slots& slots, T value, const Merge& merge) {
  const SlotsAs<T, Slots> partial{slots};
  const int thread = launch.thread();
  partial[thread] = value;
  launch.barrier();
  int width = launch.threads();
  while (width > kWarp) {  // any number of warps: the upper half, rounded up, folds onto the lower
    const int half = (width / kWarp + 1) / 2 * kWarp;
    if (thread + half < width) partial[thread] = merge(partial[thread], partial[thread + half]);
    launch.barrier();
    width = half;
  }
  if (thread < kWarp) {
    if constexpr (std::is_arithmetic_v<T>) {
      T own = partial[thread];
      for (int lanes = kWarp / 2; lanes > 0; lanes /= 2) own = merge(own, launch.shuffle_down(own, lanes));
      if (thread == 0) partial[0] = own;
    } else if (thread == 0) {
      for (int lane = 1; lane < kWarp; ++lane) partial[0] = merge(partial[0], partial[lane]);
    }
  }
  launch.barrier();
  const T result = partial[0];
  launch.barrier();  // nobody writes the next value before all have read this one
  return result;
}

}  // namespace parallax::runtime::gpu
