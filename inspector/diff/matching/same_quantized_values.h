// SPDX-License-Identifier: Apache-2.0
// Values quantized to int8 and to uint8.
#pragma once

#include "inspector/tensor/tensor.h"
#include "inspector/tensor/value.h"

namespace parallax::diff {

inline bool is_byte(DType dtype) { return dtype == DType::int8 || dtype == DType::uint8; }

// How many steps an element of a byte type is from the least one.
int64_t step_of(const TensorView& tensor, int64_t index);

// True for tensors of one shape, one in int8, the other in uint8, each element as many steps from the least one as the
// other's.
bool are_same_quantized(const TensorView& a, const TensorView& b);

// A tensor of one byte type in the other, each element as many steps from the least one; what is none as it is.
Value as_quantized_of(const Value& value, DType dtype);

}  // namespace parallax::diff
