// The least and the greatest element as people read them: of integers every digit.
#pragma once

#include <string>
#include <utility>

#include "inspector/tensor/statistics.h"
#include "inspector/tensor/tensor.h"

namespace parallax {

// `all` (may be null) holds the elements of which `statistics` tells: integers beyond 2^53, which statistics round, are
// read there. Other numbers have `digits` digits.
std::pair<std::string, std::string> extremes_text(const TensorView* all, const TensorStatistics& statistics,
                                                  DType dtype, int digits);

}  // namespace parallax
