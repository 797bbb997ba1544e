// SPDX-License-Identifier: Apache-2.0
// How one axis of Resize is resampled: where each output position comes from and with which weights.
#pragma once

#include <string>
#include <vector>

#include "runtime/device/cpu/ints.h"

namespace parallax::runtime {

struct ResizeSettings {
  std::string mode = "nearest";
  std::string transform = "half_pixel";
  std::string nearest_mode = "round_prefer_floor";
  double cubic_a = -0.75;
  bool exclude_outside = false;
  bool antialias = false;
};

struct ResizeAxis {
  int64_t in = 0;
  int64_t out = 0;
  double scale = 1.0;
  double roi_start = 0.0;
  double roi_end = 1.0;
  bool is_plain() const { return in == out && scale == 1.0; }
};

// Output position i is the sum of weights[i][k] * input[indices[i][k]]; `outside` marks positions whose source is off
// the axis.
struct ResizeTable {
  std::vector<std::vector<int64_t>> indices;
  std::vector<std::vector<double>> weights;
  std::vector<bool> outside;
};

Result<ResizeTable> resize_table(const ResizeAxis& axis, const ResizeSettings& settings);

}  // namespace parallax::runtime
