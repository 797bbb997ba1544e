// SPDX-License-Identifier: Apache-2.0
// select: the indices of the elements that are not zero, in order. How many there are is known on the host.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "runtime/device/cpu/blocks.h"
#include "runtime/device/cpu/queue_cpu.h"
#include "runtime/device/elements.h"

namespace parallax::runtime {

template <class Device>
struct Selection {
  Elements<Device, const int64_t> locations;
  int64_t count = 0;
  std::shared_ptr<const void> owner;
};

template <class C>
Result<Selection<Cpu>> select(Queue<Cpu>&, const TensorView& in) {
  auto locations = std::make_shared<std::vector<int64_t>>();
  std::array<C, kBlockElements> block;
  std::array<int64_t, kBlockElements> found;
  const int64_t all = in.element_count();
  for (int64_t first = 0; first < all; first += kBlockElements) {
    const int64_t size = std::min(kBlockElements, all - first);
    load_block<C>(in.dtype, in.data, first, 1, size, block.data());
    size_t count = 0;
    for (int64_t i = 0; i < size; ++i) {  // without a branch, which would be mispredicted
      found[count] = first + i;
      count += block[static_cast<size_t>(i)] != C(0) ? 1 : 0;
    }
    locations->insert(locations->end(), found.begin(), found.begin() + static_cast<std::ptrdiff_t>(count));
  }
  const Elements<Cpu, const int64_t> elements{locations->data()};
  const auto count = static_cast<int64_t>(locations->size());
  return Selection<Cpu>{elements, count, std::move(locations)};
}

}  // namespace parallax::runtime
