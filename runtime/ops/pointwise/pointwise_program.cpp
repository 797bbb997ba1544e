// SPDX-License-Identifier: Apache-2.0
// Attributes and shapes of Pointwise and Rotary.
#include "runtime/ops/pointwise/pointwise_program.h"

#include <algorithm>

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"

namespace parallax::runtime {
namespace {

struct OperatorRow {
  std::string_view name;
  PointwiseOperator op;
  bool has_b = false;
};
constexpr OperatorRow kOperators[] = {
    {"Abs", PointwiseOperator::abs},
    {"Add", PointwiseOperator::add, true},
    {"Div", PointwiseOperator::div, true},
    {"Erf", PointwiseOperator::erf},
    {"Exp", PointwiseOperator::exp},
    {"HardSwish", PointwiseOperator::hard_swish},
    {"Mul", PointwiseOperator::mul, true},
    {"Neg", PointwiseOperator::neg},
    {"Reciprocal", PointwiseOperator::reciprocal},
    {"Relu", PointwiseOperator::relu},
    {"Sigmoid", PointwiseOperator::sigmoid},
    {"Sqrt", PointwiseOperator::sqrt},
    {"Sub", PointwiseOperator::sub, true},
    {"Tanh", PointwiseOperator::tanh},
};

}  // namespace

Result<PointwiseProgram> pointwise_program(const OpCall& op) {
  PointwiseProgram program;
  program.input_count = static_cast<size_t>(op.input_count());
  const std::span<const std::string> names = op.given<std::string>("operators");
  const std::span<const int64_t> operands = op.given<int64_t>("operands");
  if (names.empty() || names.size() > PointwiseProgram::kMostSteps ||
      program.input_count > PointwiseProgram::kMostInputs || operands.size() != 2 * names.size())
    return invalid_model(
        fmt::format("a program of {} steps over {} inputs has {} operands; it must have two for each of 1 to {} steps",
                    names.size(), program.input_count, operands.size(), PointwiseProgram::kMostSteps));
  for (size_t index = 0; index < names.size(); ++index) {
    const auto row = std::find_if(std::begin(kOperators), std::end(kOperators),
                                  [&](const OperatorRow& each) { return each.name == names[index]; });
    if (row == std::end(kOperators))
      return unsupported(
          fmt::format("step '{}' of its program has no kernel here; --fallback=reference runs it", names[index]));
    const int64_t known = static_cast<int64_t>(program.input_count + index);
    const int64_t a = operands[2 * index], b = operands[2 * index + 1];
    if (a < 0 || a >= known || (row->has_b && (b < 0 || b >= known)))
      return invalid_model(
          fmt::format("step {} of its program reads operands {} and {}; they must be of the {} values made before it",
                      index, a, b, known));
    program.steps[program.step_count++] = {row->op, row->has_b, static_cast<size_t>(a),
                                           static_cast<size_t>(std::max<int64_t>(0, b))};
  }
  return program;
}

int64_t RotationRows::offset(size_t operand, int64_t row) const {
  int64_t offset = 0;
  for (int64_t axis = dims.size() - 1; axis >= 0; --axis) {
    offset += row % dims[axis] * strides[operand][axis];
    row /= dims[axis];
  }
  return offset;
}

Result<RotationRows> rotation_rows(const OpCall& op) {
  const Shape& stored = op.input(0).shape();
  Ints order = op.find_integers("x_order").value_or(Ints());
  Ints dims(stored), strides = row_major_strides(stored);
  if (!order.empty()) {
    if (order.size() != dims.size() || order.back() != dims.size() - 1)
      return wrong_length("attribute 'x_order'", order.size(),
                          "have {}, one for each axis of X, of which the last stays", dims.size());
    for (int64_t axis = 0; axis < order.size(); ++axis) {
      const int64_t from = order[axis];
      if (from < 0 || from >= dims.size())
        return invalid_model(
            fmt::format("attribute 'x_order' names axis {}; it must name axes in [0, {})", from, dims.size()));
      dims[axis] = dim_of(stored, from);
    }
  }
  const Shape x = PX_TRY(shape_of(dims));
  const Shape shapes[] = {x, op.input(1).shape(), op.input(2).shape()};
  RotationRows rows;
  rows.shape = PX_TRY(broadcast_shapes(shapes));
  const int64_t size = rows.shape.rank() == 0 ? 0 : dim_of(rows.shape, rank_of(rows.shape) - 1);
  for (int64_t operand = 0; operand < 3; ++operand) {
    const Shape& own = shapes[operand];
    if (size % 2 != 0 || own.rank() == 0 || dim_of(own, rank_of(own) - 1) != size)
      return wrong_shape("an operand", own, "have a last axis of {}, an even size, to be rotated", size);
    if (op.input(operand).dtype() != op.input(0).dtype())
      return wrong_input(op, operand, "have the element type of X, {}", name_of(op.input(0).dtype()));
    rows.strides[static_cast<size_t>(operand)] = broadcast_strides(own, rows.shape);
  }
  const int64_t lead = rank_of(rows.shape) - dims.size();
  for (int64_t axis = 0; axis < order.size(); ++axis) {
    if (dims[axis] != 1) rows.strides[0][lead + axis] = strides[order[axis]];
  }
  rows.dims = rows.shape;
  rows.dims.truncate(rows.dims.size() - 1);
  for (Ints& own : rows.strides) own.truncate(rows.dims.size());
  rows.half = size / 2;
  return rows;
}

}  // namespace parallax::runtime
