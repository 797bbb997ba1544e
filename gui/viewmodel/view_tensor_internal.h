// SPDX-License-Identifier: Apache-2.0
// Parts that pictures and figures of a slice share.
#pragma once

#include <cmath>
#include <limits>

#include "gui/viewmodel/view_tensor.h"

namespace parallax {

constexpr int64_t kElementsBetweenPolls = 4096;  // whether to stop
constexpr double kInfinity = std::numeric_limits<double>::infinity();

constexpr bool is_difference(TensorMode mode) { return mode >= TensorMode::difference; }

// How much an element deserves the pixel of its block, or a row among the worst: NaN before infinities before large
// numbers.
inline double weight_of(double number) {
  return std::isnan(number) ? kInfinity : std::isinf(number) ? 1e308 : std::abs(number);
}

template <class Visit>
void TensorModel::for_each(Visit visit) const {
  const int64_t row_count = rows(), column_count = columns();
  int64_t visited = 0;
  for (int64_t row = 0; row < row_count; ++row) {
    for (int64_t column = 0; column < column_count; ++column) {
      if (++visited % kElementsBetweenPolls == 0 && stop_.is_cancelled()) return;
      const int64_t element = element_at(row, column);
      if (element >= 0) visit(row, column, element);
    }
  }
}

}  // namespace parallax
