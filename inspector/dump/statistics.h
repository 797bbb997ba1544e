// TensorStatistics: what is kept of every captured tensor, and printed wherever a tensor is summarised.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "inspector/tensor/tensor.h"

namespace parallax {

constexpr size_t kProjectionCount = 8;

// Over all elements read as double. Strings have only `count`; complex numbers are taken as twice as many real ones;
// bool as 0/1.
struct TensorStatistics {
  int64_t count = 0;
  double min = 0;  // over all that are not NaN, infinities included; NaN when there is none
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
};

TensorStatistics compute_statistics(const TensorView& view);

// The same while copying the payload to `target` (size_bytes() long), in one pass over the source.
struct CheckedCopy {
  TensorStatistics statistics;
  uint32_t crc = 0;  // CRC-32C of the payload
};
CheckedCopy copy_with_statistics(const TensorView& view, std::byte* target);

}  // namespace parallax
