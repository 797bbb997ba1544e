// SPDX-License-Identifier: Apache-2.0
// The rounding of quantization, shared by all quantized operators: to nearest, ties to even, saturated to the type.
#pragma once

#include <cstdint>
#include <utility>

#include "inspector/tensor/dtype.h"

namespace parallax::reference {

// Least and greatest value of an integer type of at most 32 bits.
std::pair<int64_t, int64_t> integer_limits(DType dtype);

// saturate(round(scaled) + zero_point). NaN gives the zero point.
int64_t quantize_number(double scaled, int64_t zero_point, DType dtype);

// To nearest, ties to even.
double round_half_even(double value);

}  // namespace parallax::reference
