// SPDX-License-Identifier: Apache-2.0
// Sums that run side by side, added up in one order.
#pragma once

namespace parallax::runtime {

inline float sum_of_sixteen(const float* lanes) {
  float sums[8];
  for (int lane = 0; lane < 8; ++lane) sums[lane] = lanes[lane] + lanes[lane + 8];
  for (int lane = 0; lane < 4; ++lane) sums[lane] += sums[lane + 4];
  return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}

}  // namespace parallax::runtime
