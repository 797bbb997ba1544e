// The statistics of one chunk of numbers. One body of generic vectors, compiled for three instruction sets; it fixes
// the order of every addition, so that all three give the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "inspector/tensor/chunk_statistics.h"

namespace parallax::dump {

constexpr size_t kCopyAlignment = 64;
using statistics::ChunkStatistics;
using statistics::kChunkElements;
using statistics::kGroupElements;
using statistics::kSignSequences;

enum class NumberFormat : uint8_t { float64, float32, float16, bfloat16 };

// `first_element` is the index in the tensor of the chunk's first element, a multiple of kGroupElements. On the way the
// chunk is copied to `target`, past the cache, unless that is null; it must be aligned to kCopyAlignment, and the
// caller fences.
using ChunkKernel = void (*)(NumberFormat format, const std::byte* data, int64_t count, int64_t first_element,
                             std::byte* target, ChunkStatistics& out);

enum class InstructionSet : uint8_t { portable, avx2, avx512 };
bool is_available(InstructionSet set);
ChunkKernel chunk_kernel(InstructionSet set);
ChunkKernel best_chunk_kernel();

}  // namespace parallax::dump
