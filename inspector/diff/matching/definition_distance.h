// SPDX-License-Identifier: Apache-2.0
// The distance of two definitions' results on the same values.
#pragma once

#include "inspector/diff/comparison.h"
#include "inspector/exec/executor.h"

namespace parallax::diff {

struct RelativeDistance {
  double severity = 0;      // in units of the limit
  double relative_rms = 0;  // 0 for what is exact and equal, infinite for what is exact and not
};

// Numbers next to a mask (-1e9) are measured by their own size, not by the mask's.
RelativeDistance relative_distance(const Value& a, const Value& b, const Limit& limit);

// Constants computed by different programs (folded by an exporter, or by an optimizer): differences up to this.
bool differ_by_rounding(const Tensor& a, const Tensor& b);

// True for floats that differ by no more than storing them in `narrow`, a float type. As many elements in both.
bool differ_by_storing(const Tensor& a, const Tensor& b, DType narrow);
bool differ_by_storing(double a, double b, DType narrow);
// The float type with the shorter mantissa.
DType narrower(DType a, DType b);

}  // namespace parallax::diff
