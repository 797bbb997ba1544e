// SPDX-License-Identifier: Apache-2.0
// One process-wide pool of threads for loops over independent outputs. Whether a loop is spread over threads is decided
// by how much work it is; a result never depends on how many threads ran it, because no sum is split.
#pragma once

#include <cstdint>
#include <functional>

namespace parallax {

// Number of threads that may work on one loop, the caller included. 0 = one per hardware thread. Takes effect for later
// loops.
void set_thread_count(int count);
int thread_count();

// Calls body(begin, end) for disjoint ranges that cover [0, count). `work_per_item` is a rough count of simple
// operations (about a nanosecond each): loops below some 50 microseconds run on the caller alone. Several callers may
// be inside at once; a nested call runs on its caller alone. The body must not throw.
void parallel_for(int64_t count, int64_t work_per_item, const std::function<void(int64_t begin, int64_t end)>& body);

}  // namespace parallax
