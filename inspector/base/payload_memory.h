// SPDX-License-Identifier: Apache-2.0
// Memory for arrays of numbers: tensors' payloads and what operators keep for a moment. What is freed serves the next
// array of its size or goes back to the system, so that what a program holds does not grow with the number of arrays
// that came and went, however many small blocks that live longer were allocated between them.
#pragma once

#include <cstddef>
#include <memory>

namespace parallax {

constexpr size_t kPayloadAlignment = 64;  // a cache line, a vector of AVX-512

// At least `bytes` bytes, up to the end of the cache line behind them, so that a vector may read past the last element.
// Not set to anything. Null where the system has no more.
std::byte* allocate_payload(size_t bytes);
// The same from the thread's own heap, however many: for what threads make and drop at the same time, again and again.
std::byte* allocate_scratch(size_t bytes);
// What one of the two gave for `bytes`; null is let pass.
void free_payload(std::byte* memory, size_t bytes);

std::shared_ptr<std::byte> shared_payload(size_t bytes);

}  // namespace parallax
