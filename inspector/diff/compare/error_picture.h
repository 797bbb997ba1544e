// SPDX-License-Identifier: Apache-2.0
// ErrorPicture: where in a tensor two sides differ, small enough to be kept: a coarse map of the errors and the
// histograms of both sides.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "inspector/diff/comparison.h"
#include "inspector/tensor/value.h"

namespace parallax {

struct ErrorPicture {
  // The tensor as a matrix: the last axis of more than one element across, all others down.
  int64_t matrix_rows = 0;
  int64_t matrix_columns = 0;
  // The map: at most kMaxRows by kMaxColumns cells, each the largest |a-b| of the elements it covers; infinity where
  // one side is NaN or infinite and the other is not the same.
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<double> errors;
  // Finite elements of both sides in equal bins from low to high.
  double low = 0;
  double high = 0;
  std::vector<int64_t> histogram_a;
  std::vector<int64_t> histogram_b;

  static constexpr int64_t kMaxRows = 48;
  static constexpr int64_t kMaxColumns = 96;
  static constexpr int64_t kBins = 48;
};

// Nothing for what is no pair of number tensors of one shape on the host, and for empty ones.
std::optional<ErrorPicture> make_error_picture(const Value& a, const Value& b);

// Decides of which diverged values pictures are made: the first ones, and each that is worse than all before it. May be
// used by two threads.
class PictureGallery {
 public:
  explicit PictureGallery(bool is_wanted) : is_wanted_(is_wanted) {}
  void consider(const Value& a, const Value& b, ValueComparison& result);

 private:
  static constexpr int kFirst = 8;
  static constexpr int kMost = 24;
  const bool is_wanted_;
  std::mutex mutex_;
  int made_ = 0;
  double worst_ = 0;
};

}  // namespace parallax
