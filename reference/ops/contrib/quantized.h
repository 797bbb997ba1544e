// SPDX-License-Identifier: Apache-2.0
// Reading and writing quantized tensors by their scales and zero points, which are inputs of an operator.
#pragma once

#include "reference/ops/op_context.h"

namespace parallax::reference {

// Positions of a quantized input, its scale and its zero point (which may be absent: 0).
struct QuantizedInput {
  size_t values, scale, zero_point;
};

// (x - zero point) * scale as float64. The scale has one number, or one for each slice of the last axis; likewise the
// zero point.
Result<Tensor> dequantize(const OpContext& op, const QuantizedInput& input);
// x - zero point as float64.
Result<Tensor> less_zero_point(const OpContext& op, size_t values, size_t zero_point);

// Output 0: saturate(round(y / scale) + zero point) in type `dtype`, ties to even. The quotient is exact to double;
// onnxruntime forms it in float in several ways, so that a tie may fall to the other side there.
Status set_quantized(OpContext& op, const Tensor& y, size_t scale, size_t zero_point, DType dtype);

}  // namespace parallax::reference
