// SPDX-License-Identifier: Apache-2.0
// MemoryPlan: the offset of each buffer of a run in one block of memory, made from the trace of a run like it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace parallax::runtime {

// Sizes are rounded up to this, and buffers are aligned to it.
constexpr size_t kBufferAlignment = 64;      // on the host: a cache line
constexpr size_t kGpuBufferAlignment = 256;  // what cublasLt takes its operands to have
constexpr size_t aligned_bytes(size_t bytes, size_t alignment = kBufferAlignment) {
  return bytes == 0 ? alignment : (bytes + alignment - 1) / alignment * alignment;
}

// One buffer of a run: who asked for it, and when it was handed out and came back, in events of the run.
struct BufferLife {
  static constexpr int64_t kNever = INT64_MAX;
  int32_t step = 0;
  size_t bytes = 0;
  int64_t begin = 0;
  int64_t end = kNever;  // kNever: it outlived the run, as outputs do
};

struct MemoryTrace {
  std::vector<BufferLife> lives;  // in the order of requests
  int64_t events = 0;
};

struct PlannedBuffer {
  static constexpr int64_t kOutside = -1;
  size_t bytes = 0;           // room for so many
  int64_t offset = kOutside;  // in the block; kOutside: a buffer of its own, because it outlives the run
  bool is_inside() const { return offset != kOutside; }
};

struct MemoryPlan {
  std::vector<size_t> first;           // by step: the first of its buffers; one more at the end
  std::vector<PlannedBuffer> buffers;  // by step, then in the order of requests
  int64_t arena_bytes = 0;
  int64_t sum_bytes = 0;    // of all buffers inside: what they would take without sharing
  int64_t bound_bytes = 0;  // most of them alive at once: no arena can be smaller
};

// Steps are numbered from 0 to `step_count`; each runs at most once. None for a run with more buffers than the
// packing is made for.
std::optional<MemoryPlan> plan_memory(std::span<const BufferLife> lives, int32_t step_count,
                                      size_t alignment = kBufferAlignment);

}  // namespace parallax::runtime
