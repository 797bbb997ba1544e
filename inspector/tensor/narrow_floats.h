// SPDX-License-Identifier: Apache-2.0
// float32 to float16 and bfloat16 in bulk, at the speed of memory: rounded once, to nearest, ties to even.
#pragma once

#include <cstdint>
#include <span>

#include "inspector/tensor/tensor.h"

namespace parallax {

// `to` is float16 or bfloat16; `out` takes its bits and is as long as `values`. What rounds beyond the largest finite
// number becomes infinity, NaN stays NaN.
void narrow_floats(std::span<const float> values, DType to, std::span<uint16_t> out);

// A float32 tensor on the host in the narrower type. Errors: out_of_memory.
Result<Tensor> narrow_tensor(const Tensor& tensor, DType to);

// The smallest magnitude that rounds to infinity: 65520 for float16.
float overflow_threshold(DType to);

// Magnitudes over finite elements; NaN and infinities count for nothing.
struct FiniteRange {
  float largest = 0;   // with its sign; 0 where there is none
  float smallest = 0;  // magnitude of the smallest element that is not 0; 0 where there is none
};
FiniteRange finite_range(std::span<const float> values);

}  // namespace parallax
