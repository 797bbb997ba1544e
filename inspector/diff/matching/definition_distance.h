// SPDX-License-Identifier: Apache-2.0
// How far what two definitions make of the same values is apart.
#pragma once

#include "inspector/diff/comparison.h"
#include "inspector/exec/executor.h"

namespace parallax::diff {

struct RelativeDistance {
  double severity = 0;      // in units of the limit
  double relative_rms = 0;  // 0 for what is exact and equal, infinite for what is exact and not
};

// Numbers beside a mask (-1e9) are measured by their own size, not by the mask's.
RelativeDistance relative_distance(const Value& a, const Value& b, const Limit& limit);

// Constants computed by different programs (folded by an exporter, or by an optimiser): no more apart than that.
bool differ_by_rounding(const Tensor& a, const Tensor& b);

// Floats that are no more apart than storing them in `narrow`, a float type, makes them. As many elements in both.
bool differ_by_storing(const Tensor& a, const Tensor& b, DType narrow);
bool differ_by_storing(double a, double b, DType narrow);
// Of two float types the one with the shorter mantissa.
DType narrower(DType a, DType b);

}  // namespace parallax::diff
