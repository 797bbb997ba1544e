// SPDX-License-Identifier: Apache-2.0
// How a strided copy is done: its axes in the order of the target, as few as possible, its elements as wide as their
// neighbors allow, and whether it goes by tiles.
#pragma once

#include <array>

#include "runtime/device/cpu/copy.h"

namespace parallax::runtime::gpu {

struct CopyPlan {
  int64_t bytes = 0;  // of what is moved at once: 1, 2, 4, 8 or 16
  Ints dims;
  std::array<Ints, 2> strides;  // of the target and of the source, in units of `bytes`
  int64_t source_axis = -1;     // not the last one, along which the source is contiguous: by tiles of it and the last
};

// Targets do not overlap themselves. No dim is 0.
CopyPlan plan_copy(int64_t bytes_per_element, const Ints& dims, const StridedTarget& target,
                   const StridedSource& source);

}  // namespace parallax::runtime::gpu
