// The statistics of one chunk of numbers. One body of generic vectors, compiled for three instruction sets; it fixes
// the order of every addition, so that all three give the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace parallax::dump {

// The signs: element i = 64 g + 8 j + l has, in projection k, the sign r_k(g) * h_k(j) * t_k(l), where r_k(g) is bit k
// of a hash of g, h is the Hadamard matrix of order 8 and t a fixed table. Sums over j are then a Walsh-Hadamard
// transform: three additions for each element serve all eight projections.
constexpr int kSignSequences = 8;
constexpr size_t kCopyAlignment = 64;
constexpr int64_t kGroupElements = 64;
constexpr int64_t kChunkElements =
    16384;  // a multiple of kGroupElements; 64 KiB of float32 stay in the second-level cache

// Partial result over one chunk. Sums run over finite elements.
struct ChunkStatistics {
  double min;  // +inf when there is none
  double max;
  double sum;
  double sum_of_squares;
  double centred_squares;  // around the chunk's mean
  int64_t zeros;
  int64_t nan;
  int64_t positive_inf;
  int64_t negative_inf;
  int64_t count;
  double projections[kSignSequences];
};

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
