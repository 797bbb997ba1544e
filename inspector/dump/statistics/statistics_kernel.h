// SPDX-License-Identifier: Apache-2.0
// The statistics of one chunk of numbers. One body of generic vectors, compiled for three instruction sets; it fixes
// the order of every addition, so that all three give the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "inspector/base/cpu_features.h"
#include "inspector/tensor/chunk_statistics.h"
#include "inspector/tensor/number_format.h"

namespace parallax::dump {

constexpr size_t kCopyAlignment = 64;
using parallax::NumberFormat;
using statistics::ChunkStatistics;
using statistics::kBundleElements;
using statistics::kChunkElements;
using statistics::kSignSequences;

// CRC-32C of a chunk's whole groups of elements, as of four parts of one length after one another, where the kernel
// takes it on its way: the processor does that next to the sums, which need its other units.
struct GroupsCrc {
  static constexpr int kParts = 4;
  bool is_taken = false;
  size_t part_bytes = 0;
  uint32_t parts[kParts] = {};
};

// `first_element` is the index in the tensor of the chunk's first element, a multiple of kBundleElements. On the way
// the chunk is copied to `target`, past the cache, unless that is null; it must be aligned to kCopyAlignment, and the
// caller fences. `crc` may be null where nothing is copied: then no CRC is taken.
using ChunkKernel = void (*)(NumberFormat format, const std::byte* data, int64_t count, int64_t first_element,
                             std::byte* target, ChunkStatistics& out, GroupsCrc* crc);

// Copies alone, as a chunk kernel does, any bytes: `target` is aligned likewise, and the caller fences. The CRC is that
// of the whole blocks of 512 bytes.
using CopyKernel = void (*)(const std::byte* data, size_t size_bytes, std::byte* target, GroupsCrc& crc);

// `level` is vector_level() at most.
ChunkKernel chunk_kernel(VectorLevel level);
ChunkKernel best_chunk_kernel();
CopyKernel copy_kernel(VectorLevel level);
CopyKernel best_copy_kernel();

}  // namespace parallax::dump
