// SPDX-License-Identifier: Apache-2.0
// find_first: the first element that a predicate holds for. Its answer is a number on the host, whatever the device.
#pragma once

#include <array>

#include "runtime/device/cpu/blocks.h"
#include "runtime/device/cpu/queue_cpu.h"

namespace parallax::runtime {

// The effect of a found element on later kernels. Recorded runs of a GPU learn it afterwards, and so cannot have
// kernels that it would harm.
enum class WhenFound : uint8_t { harms, is_harmless };

// The first i with holds(value i, i), values converted to C; -1 where there is none, and in a recorded run.
template <class C, class Predicate>
Result<int64_t> find_first(Queue<Cpu>&, const Predicate& holds, const TensorView& in,
                           WhenFound /*when_found*/ = WhenFound::harms) {
  std::array<C, kBlockElements> block;
  const int64_t count = in.element_count();
  for (int64_t first = 0; first < count; first += kBlockElements) {
    const int64_t size = std::min(kBlockElements, count - first);
    load_block<C>(in.dtype, in.data, first, 1, size, block.data());
    for (int64_t i = 0; i < size; ++i) {
      if (holds(block[static_cast<size_t>(i)], first + i)) return first + i;
    }
  }
  return int64_t{-1};
}

}  // namespace parallax::runtime
