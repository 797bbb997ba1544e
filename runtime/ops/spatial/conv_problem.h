// SPDX-License-Identifier: Apache-2.0
// The problem that a convolution's attributes and operands state, for Conv and the operators made of it.
#pragma once

#include "runtime/device/cpu/products/conv.h"
#include "runtime/ops/op_call.h"

namespace parallax::runtime {

// X is [N, C, ...], the filters [M, C / group, ...]; input 1 says whether they are constant. Errors: execution, for
// shapes and attributes that do not fit.
Result<ConvProblem> conv_problem(const OpCall& op, const Shape& x, const Shape& filters);
// The problem of the transpose: the filters are [C, M / group, ...].
Result<ConvProblem> transposed_problem(const OpCall& op, const Shape& x, const Shape& filters);
Result<Shape> output_shape(const ConvProblem& problem);

}  // namespace parallax::runtime
