// The statistics of one chunk of numbers, and the signs of their projections: what every kernel that takes them agrees
// on, so that all give the same bits. Names no header with inline code: some kernels are compiled for wider vectors.
#pragma once

#include <cstdint>

namespace parallax::statistics {

// The signs: element i = 64 g + 8 j + l has, in projection k, the sign r_k(g) * h_k(j) * t_k(l), where r_k(g) is bit k
// of a hash of g, h is the Hadamard matrix of order 8 and t a fixed table. Sums over j are then a Walsh-Hadamard
// transform: three additions for each element serve all eight projections.
constexpr int kSignSequences = 8;
constexpr int kRows = 8;   // of a group
constexpr int kLanes = 8;  // of a row: neighbouring elements
constexpr int64_t kGroupElements = kRows * kLanes;
// A multiple of kGroupElements; 64 KiB of float32 stay in the second-level cache.
constexpr int64_t kChunkElements = 16384;
// The difference of two sums of a chunk keeps seven digits while it is no less than this part of them.
constexpr double kLeastSpread = 1e-6;

// Partial result over one chunk. Sums run over finite elements: over the rows of a lane in order, then over the lanes.
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

// The finalizer of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
static constexpr uint64_t mix(uint64_t value) {
  value += 0x9E3779B97F4A7C15U;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9U;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBU;
  return value ^ (value >> 31);
}
// Bit k is set where r_k(g) is -1.
static constexpr unsigned group_sign_bits(int64_t group) {
  return static_cast<unsigned>(mix(static_cast<uint64_t>(group)) >> 56);
}

// t_k(l): quadratic forms in the bits of k. The product of two of them is never a row of the Hadamard matrix, so that
// no two elements of a group have the same eight signs.
static constexpr double lane_sign(int k, int lane) {
  const int k0 = k & 1;
  const int k1 = k >> 1 & 1;
  const int k2 = k >> 2 & 1;
  const int form = ((lane & 1) * k0 * k1) ^ ((lane >> 1 & 1) * k0 * k2) ^ ((lane >> 2 & 1) * k1 * k2);
  return form != 0 ? -1.0 : 1.0;
}
// h_k(j): the parity of the bits that k and j share.
static constexpr double row_sign(int k, int row) {
  const int shared = k & row;
  return ((shared ^ (shared >> 1) ^ (shared >> 2)) & 1) != 0 ? -1.0 : 1.0;
}

}  // namespace parallax::statistics
