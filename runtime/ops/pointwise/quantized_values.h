// SPDX-License-Identifier: Apache-2.0
// Quantized tensors with their scales and zero points among an operator's inputs: to float64 and back.
#pragma once

#include "runtime/ops/op_context.h"

namespace parallax::runtime {

// Positions of a quantized input, its scale and its zero point; a zero point that is absent is 0, a scale of -1 is 1.
struct QuantizedInput {
  int64_t values = 0;
  int64_t scale = -1;
  int64_t zero_point = -1;
};

// (x - zero point) * scale in float64; the parameters have one number, or one for each slice of the last axis.
Result<Tensor> real_values(OpContext<CompiledDevice>& op, const QuantizedInput& input);
// The real values of quantized values that are not an input, but have the parameters of one.
Result<Tensor> real_values(OpContext<CompiledDevice>& op, const Tensor& quantized, const QuantizedInput& parameters);

// saturate(round to even(y / scale) + zero point) as `dtype`; y is float64, the parameters are single numbers that are
// on the host.
Result<Tensor> quantized_values(OpContext<CompiledDevice>& op, const Tensor& y, int64_t scale, int64_t zero_point,
                                DType dtype);

}  // namespace parallax::runtime
