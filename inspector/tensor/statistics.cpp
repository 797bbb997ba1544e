// SPDX-License-Identifier: Apache-2.0
// The chunks of a tensor joined in order.
#include "inspector/tensor/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace parallax {
namespace {

using statistics::ChunkStatistics;

// Chan, Golub, LeVeque: Updating formulae and a pairwise algorithm for computing sample variances, 1979.
class Joiner {
 public:
  void add(const ChunkStatistics& chunk) {
    statistics_.min = std::min(statistics_.min, chunk.min);
    statistics_.max = std::max(statistics_.max, chunk.max);
    statistics_.zeros += chunk.zeros;
    statistics_.nan += chunk.nan;
    statistics_.positive_inf += chunk.positive_inf;
    statistics_.negative_inf += chunk.negative_inf;
    for (size_t k = 0; k < kProjectionCount; ++k) statistics_.projections[k] += chunk.projections[k];
    if (chunk.count == 0) return;
    const auto count = static_cast<double>(chunk.count);
    const double difference = chunk.sum / count - mean_;
    const double total = count_ + count;
    mean_ += difference * (count / total);
    centered_squares_ += chunk.centered_squares + difference * difference * (count_ * count / total);
    squares_ += chunk.sum_of_squares;
    count_ = total;
  }

  TensorStatistics finish(int64_t count) {
    constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
    statistics_.count = count;
    if (statistics_.nan == count) statistics_.min = statistics_.max = kNaN;
    // The first of zeros of both signs depends on the order: the result is always +0.
    statistics_.min += 0.0;
    statistics_.max += 0.0;
    statistics_.mean = count_ > 0 ? mean_ : kNaN;
    // Squares beyond the range of double leave NaN where they are subtracted: no small spread, but one too large.
    const double squares =
        std::isnan(centered_squares_) ? std::numeric_limits<double>::infinity() : std::max(0.0, centered_squares_);
    statistics_.std = count_ > 0 ? std::sqrt(squares / count_) : kNaN;
    statistics_.l2 = std::sqrt(squares_);
    return statistics_;
  }

  Joiner() {
    statistics_.min = std::numeric_limits<double>::infinity();
    statistics_.max = -std::numeric_limits<double>::infinity();
  }

 private:
  TensorStatistics statistics_;
  double count_ = 0;
  double mean_ = 0;
  double centered_squares_ = 0;
  double squares_ = 0;
};

}  // namespace

TensorStatistics joined_statistics(std::span<const ChunkStatistics> chunks, int64_t count, ElementOrder order) {
  Joiner joiner;
  for (const ChunkStatistics& chunk : chunks) joiner.add(chunk);
  TensorStatistics joined = joiner.finish(count);
  joined.order = order;
  return joined;
}

}  // namespace parallax
