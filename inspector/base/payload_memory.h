// SPDX-License-Identifier: Apache-2.0
// Memory for arrays of numbers: tensors' payloads and what operators keep for a moment. What is freed serves the next
// array of its size or goes back to the system, so that what a program holds does not grow with the number of arrays
// that came and went, however many small blocks that live longer were allocated between them.
#pragma once

#include <cstddef>
#include <memory>

namespace parallax {

constexpr size_t kPayloadAlignment = 64;  // a cache line, a vector of AVX-512

// At least `bytes` bytes, up to the end of the cache line after them, so that a vector may read past the last element.
// Not set to anything. Null where the system has no more.
std::byte* allocate_payload(size_t bytes);
// Allocates from the thread's own heap: for memory that several threads allocate and free at the same time, again and
// again.
std::byte* allocate_scratch(size_t bytes);
// Frees `bytes` that one of these two functions allocated; null is ignored.
void free_payload(std::byte* memory, size_t bytes);

std::shared_ptr<std::byte> shared_payload(size_t bytes);

}  // namespace parallax
