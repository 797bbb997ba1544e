// SPDX-License-Identifier: Apache-2.0
// Values in planned memory, announced to tools that check accesses: to a tool the block is one allocation, and what
// runs past the end of a value would be an access like any other. By NVTX's memory extension, which finds a tool by
// itself; where there is none nothing is announced, and no room is left between values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/device/run_memory.h"

namespace parallax::runtime {

// The block is announced as a heap, in which only announced values may be reached.
void announce_block(const std::byte* block, int64_t bytes);
void retract_block(const std::byte* block);
// Announces each buffer of a block; empty where no tool listens.
BufferWatch announcing_watch();

}  // namespace parallax::runtime
