// SPDX-License-Identifier: Apache-2.0
// TensorStatistics: what is kept of every captured tensor, and how the statistics of its chunks are joined.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "inspector/tensor/chunk_statistics.h"
#include "inspector/tensor/element_order.h"

namespace parallax {

constexpr size_t kProjectionCount = statistics::kSignSequences;

// Over all elements read as double. Strings have only `count` and projections
// (inspector/dump/statistics/statistics.h); complex numbers are taken as twice as many real ones;
// bool as 0/1.
struct TensorStatistics {
  int64_t count = 0;
  double min = 0;  // over all that are not NaN, infinities included; NaN when there is none; never -0
  double max = 0;
  double mean = 0;    // over finite elements, summed in double; NaN when there is none
  double std = 0;     // population standard deviation over finite elements; NaN when there is none
  double l2 = 0;      // square root of the sum of squares over finite elements
  int64_t zeros = 0;  // +0 and -0
  int64_t nan = 0;
  int64_t positive_inf = 0;
  int64_t negative_inf = 0;
  // Sum of s_k(i) * x_i over finite elements for eight fixed pseudo-random sign sequences: a permutation changes them.
  std::array<double, kProjectionCount> projections{};
  // Not in dumps that were written before the signs were what they are, whose projections are not comparable with
  // these.
  bool has_projections = true;
  // In which the elements are counted. Sums are taken in it, and signs follow it: projections of different orders are
  // not comparable.
  ElementOrder order = ElementOrder::row_major;
};

// The largest difference of sums in double of the same elements in another order, as a part of their norm.
constexpr double kSumsInDouble = 1e-12;

inline bool have_comparable_projections(const TensorStatistics& a, const TensorStatistics& b) {
  return a.has_projections && b.has_projections && a.order == b.order;
}

// The statistics of `count` elements from those of their chunks, in order.
TensorStatistics joined_statistics(std::span<const statistics::ChunkStatistics> chunks, int64_t count,
                                   ElementOrder order = ElementOrder::row_major);

}  // namespace parallax
