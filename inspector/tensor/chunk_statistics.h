// SPDX-License-Identifier: Apache-2.0
// The statistics of one chunk of numbers, and the signs of their projections: what every kernel that takes them agrees
// on, so that all give the same bits. Names no header with inline code: some kernels are compiled for wider vectors.
#pragma once

#include <cstdint>

namespace parallax::statistics {

// The signs: element i = 512 b + 64 g + 8 j + l has, in projection k, the sign r_k(b) * s(g) * h_k(j ^ m(g)) * t_k(l),
// where r_k(b) is bit k of a hash of b, h the Hadamard matrix of order 8, and s, m, t are fixed tables. As h_k(j ^ m)
// is h_k(j) * h_k(m), the groups of a bundle are first added up, row j of group g to row j ^ m(g), and one
// Walsh-Hadamard transform of what that gives serves all of them and all eight projections.
constexpr int kSignSequences = 8;
constexpr int kRows = 8;    // of a group
constexpr int kLanes = 8;   // of a row: neighboring elements
constexpr int kGroups = 8;  // of a bundle
constexpr int64_t kGroupElements = kRows * kLanes;
constexpr int64_t kBundleElements = kGroups * kGroupElements;
// A multiple of kBundleElements; 64 KiB of float32 stay in the second-level cache.
constexpr int64_t kChunkElements = 16384;
// The difference of two sums of a chunk keeps seven digits while it is no less than this part of them.
constexpr double kLeastDeviation = 1e-6;

// Partial result over one chunk. Sums run over finite elements, each lane by itself, then over the lanes: of squares
// over the even rows in order and over the odd ones, then both; of numbers over the bundles in order.
struct ChunkStatistics {
  double min;  // +inf when there is none
  double max;
  double sum;
  double sum_of_squares;
  double centered_squares;  // around the chunk's mean
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
// Bit k is set where r_k(b) is -1.
static constexpr unsigned bundle_sign_bits(int64_t bundle) {
  return static_cast<unsigned>(mix(static_cast<uint64_t>(bundle)) >> 56);
}

// s(g): the first half of a bundle is added, the second subtracted.
constexpr int kAddedGroups = kGroups / 2;
static constexpr double group_sign(int group) { return group < kAddedGroups ? 1.0 : -1.0; }
// m(g): g times x in the field of eight elements, x^3 = x + 1. Rows of one number have eight elements, and where groups
// and rows are exchanged, only those on the diagonal keep theirs.
static constexpr int row_index(int group, int row) {
  const int product = (group << 1) ^ ((group & 4) != 0 ? 0b1011 : 0);
  return row ^ product;
}

// t_k(l): quadratic forms in the bits of k. The product of two of them is never a row of the Hadamard matrix, so that
// no two elements of a group have the same eight signs; of a bundle, one in 128 has those of another one.
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
