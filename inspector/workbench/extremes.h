// SPDX-License-Identifier: Apache-2.0
// The least and the greatest element: of integers every digit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json_fwd.hpp>

#include "inspector/tensor/statistics.h"
#include "inspector/tensor/tensor.h"

namespace parallax {

// The bits of a uint64.
struct IntegerExtremes {
  int64_t least = 0;
  int64_t greatest = 0;
  bool is_unsigned = false;
};

// The exact extremes of integers beyond 2^53, which statistics round; nothing where the statistics are exact.
// `statistics` are those of all elements.
std::optional<IntegerExtremes> integer_extremes(const TensorView& all, const TensorStatistics& statistics);

// As people read them. Numbers that are no integers, and those that are rounded, have `digits` digits.
std::pair<std::string, std::string> extremes_text(const std::optional<IntegerExtremes>& integers,
                                                  const TensorStatistics& statistics, DType dtype, int digits);

// statistics_json() with these integers, where there are any.
nlohmann::ordered_json exact_statistics_json(const std::optional<IntegerExtremes>& integers,
                                             const TensorStatistics& statistics);

}  // namespace parallax
