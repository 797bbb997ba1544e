// SPDX-License-Identifier: Apache-2.0
// Shapes of reductions, of ArgMax and ArgMin, and of the losses.
#include <algorithm>
#include <array>

#include "inspector/model/shape_inference/rows.h"

namespace parallax {
namespace {

DimExpressions reduced(const DimExpressions& shape, const std::vector<bool>& drop, bool keep_dims) {
  DimExpressions result;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (!drop[axis]) result.push_back(shape[axis]);
    if (drop[axis] && keep_dims) result.emplace_back(1);
  }
  return result;
}

void reduce_contents(NodeContext& context) {
  const auto contents = context.contents(0);
  if (!contents || context.rank(0) != 1) return;
  if (context.node().op_type == "ReduceProd") context.set_contents(0, DimExpressions{product(*contents)});
  if (context.node().op_type == "ReduceSum") {
    DimExpression sum = 0;
    for (const DimExpression& element : *contents) sum = sum + element;
    context.set_contents(0, DimExpressions{sum});
  }
}

void reduce(NodeContext& context) {
  const auto& shape = context.shape(0);
  if (!shape) return;
  const bool keep_dims = context.integer_or("keepdims", 1) != 0;
  const bool by_attribute = context.schema_has_attribute("axes");
  const bool has_axes = by_attribute ? context.integers("axes").has_value() : context.has_input(1);
  const auto given = context.integers_from(1, "axes");
  if (has_axes && !given) {
    if (keep_dims) context.set_shape(0, unknown_dims(shape->size()));
    return;
  }
  const bool all = !given || given->empty();
  if (all && context.integer_or("noop_with_empty_axes", 0) != 0) return context.set_shape(0, *shape);
  std::vector<bool> drop(shape->size(), all);
  const auto axes = normalized_axes(given.value_or(std::vector<int64_t>{}), shape->size());
  if (!axes) return;
  for (const size_t axis : *axes) drop[axis] = true;
  context.set_shape(0, reduced(*shape, drop, keep_dims));
  if (std::ranges::find(drop, true) != drop.end()) reduce_contents(context);
}

void arg_reduce(NodeContext& context) {
  const auto& shape = context.shape(0);
  const auto axis = shape ? normalized_axis(context.integer_or("axis", 0), shape->size()) : std::nullopt;
  if (!axis) return;
  std::vector<bool> drop(shape->size());
  drop[*axis] = true;
  context.set_shape(0, reduced(*shape, drop, context.integer_or("keepdims", 1) != 0));
}

// Unreduced losses have one element for each label; SoftmaxCrossEntropyLoss may also give the log probabilities.
void loss(NodeContext& context) {
  context.set_shape(0, context.text("reduction") == "none" ? context.shape(1) : DimExpressions{});
  context.set_shape(1, context.shape(0));
}

void determinant(NodeContext& context) {
  const auto& shape = context.shape(0);
  if (shape && shape->size() >= 2) context.set_shape(0, DimExpressions(shape->begin(), shape->end() - 2));
}

constexpr std::array kReductionRows = {
    ShapeRow{"ArgMax", arg_reduce},
    ShapeRow{"ArgMin", arg_reduce},
    ShapeRow{"Det", determinant},
    ShapeRow{"NegativeLogLikelihoodLoss", loss},
    ShapeRow{"ReduceL1", reduce},
    ShapeRow{"ReduceL2", reduce},
    ShapeRow{"ReduceLogSum", reduce},
    ShapeRow{"ReduceLogSumExp", reduce},
    ShapeRow{"ReduceMax", reduce},
    ShapeRow{"ReduceMean", reduce},
    ShapeRow{"ReduceMin", reduce},
    ShapeRow{"ReduceProd", reduce},
    ShapeRow{"ReduceSum", reduce},
    ShapeRow{"ReduceSumSquare", reduce},
    ShapeRow{"SoftmaxCrossEntropyLoss", loss},
};

}  // namespace

std::span<const ShapeRow> reduction_rows() { return kReductionRows; }

}  // namespace parallax
