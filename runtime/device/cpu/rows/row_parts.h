// SPDX-License-Identifier: Apache-2.0
// Rows of bytes put together from parts, and cut into them.
#pragma once

#include <cstddef>
#include <span>

#include "runtime/device/cpu/queue_cpu.h"

namespace parallax::runtime {

// Rows of `row_bytes` bytes, one after the other.
struct SourcePart {
  const std::byte* data = nullptr;
  int64_t row_bytes = 0;
};
struct TargetPart {
  std::byte* data = nullptr;
  int64_t row_bytes = 0;
};

// Row i of the target is row i of each source, one after the other.
void join_rows(Queue<Cpu>& queue, int64_t rows, std::span<const SourcePart> sources, std::byte* target);

// Row i of the source is row i of each target, one after the other.
void split_rows(Queue<Cpu>& queue, int64_t rows, const std::byte* source, std::span<const TargetPart> targets);

}  // namespace parallax::runtime
