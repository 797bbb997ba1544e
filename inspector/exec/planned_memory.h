// SPDX-License-Identifier: Apache-2.0
// PlannedMemory: the report of a session that plans its values' memory, besides its statistics.
#pragma once

#include <cstdint>

namespace parallax {

struct MemoryReport {
  int64_t arena_bytes = 0;  // planned memory of the last run, 0 where nothing was planned
  int64_t bound_bytes = 0;  // most of its buffers alive at once: what no arena can do without
  int64_t sum_bytes = 0;    // all of its buffers: what they would take without sharing
  int64_t plan_count = 0;   // made so far
};

class PlannedMemory {
 public:
  virtual ~PlannedMemory() = default;
  virtual MemoryReport memory_report() const = 0;
};

}  // namespace parallax
