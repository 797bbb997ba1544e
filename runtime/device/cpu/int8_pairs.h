// SPDX-License-Identifier: Apache-2.0
// Sums and products of two tensors of 8-bit quantized values, quantized again: QLinearAdd and QLinearMul of one shape.
#pragma once

#include <cstdint>

#include "inspector/tensor/dtype.h"

namespace parallax::runtime {

// The numbers that quantized values represent: (value - zero) * scale.
struct QuantizedScale {
  double scale = 1, zero = 0;
};

struct QuantizedPairs {
  bool is_product = false;
  QuantizedScale a, b, y;
  int64_t count = 0;
  bool b_is_one = false;  // one value for all of a
};

// True where these scales suit the method: in float, and once more in double where a result is so near to half way
// between two quantized values that float may have rounded to the wrong side. All results are those of double.
bool suits_quantized_pairs(const QuantizedPairs& pairs);

// y = saturate(round to even((a's number + or * b's) / y's scale) + zero), of int8 or uint8 all three.
void combine_quantized(const QuantizedPairs& pairs, DType dtype, const std::byte* a, const std::byte* b, std::byte* y);

}  // namespace parallax::runtime
