// SPDX-License-Identifier: Apache-2.0
// The content of the nodes of parallax.fused in this folder, for every device: the program of Pointwise, the rows of
// Rotary.
#pragma once

#include <array>

#include "runtime/device/cpu/ints.h"
#include "runtime/ops/op_call.h"

namespace parallax::runtime {

// The operators that the pattern `pointwise` gathers; runtime/rewrite/fuse_pointwise.cpp has the same list.
enum class PointwiseOperator : uint8_t {
  abs,
  add,
  div,
  erf,
  exp,
  hard_swish,
  mul,
  neg,
  reciprocal,
  relu,
  sigmoid,
  sqrt,
  sub,
  tanh,
};

// Operands are numbered: inputs first, then results. Short lists of fixed room: a small node costs no allocation.
struct PointwiseProgram {
  static constexpr size_t kMostSteps = 16, kMostInputs = 8;
  struct Step {
    PointwiseOperator op = PointwiseOperator::abs;
    bool has_b = false;
    size_t a = 0, b = 0;
  };
  std::array<Step, kMostSteps> steps;
  size_t step_count = 0, input_count = 0;
};

// Errors: unsupported, naming a step without a kernel; invalid_model for operands that are not made before their step.
Result<PointwiseProgram> pointwise_program(const OpCall& op);

// X (its axes in the order of attribute 'x_order'), cosine and sine, of one element type, walked along the rows of the
// result.
struct RotationRows {
  Shape shape;  // of the result
  Ints dims;    // of the result, without the last
  std::array<Ints, 3> strides;
  int64_t half = 0;

  int64_t offset(size_t operand, int64_t row) const;
};
// Errors: invalid_model for shapes that do not fit.
Result<RotationRows> rotation_rows(const OpCall& op);

}  // namespace parallax::runtime
