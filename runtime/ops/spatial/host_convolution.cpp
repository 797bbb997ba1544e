// SPDX-License-Identifier: Apache-2.0
// The order of the operands is settled here, once for each node and shape; the arithmetic is the device's conv.
#include "runtime/ops/spatial/host_convolution.h"

#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/channels_last.h"
#include "runtime/device/cpu/weight_cache.h"
#include "runtime/ops/orders.h"
#include "runtime/ops/pointwise/activation_attributes.h"
#include "runtime/ops/spatial/conv_problem.h"

namespace parallax::runtime {
namespace {

const float* float_data(const Tensor& tensor) { return reinterpret_cast<const float*>(tensor.view().data); }

// The plan of a node for one shape and order of its input.
struct Settled {
  ConvProblem problem;
  Activation last;  // after the sum
  Shape shape;      // of the output
  bool is_free = false;
  const float* filters = nullptr;
  const float* bias = nullptr;
  std::shared_ptr<ReadyConv> ready;  // where the filters and the bias never change
};

// `is_constant`: filters and bias never change. `x_is`: x has its channels last.
void settle_layouts(ConvProblem& problem, bool may_reorder, bool is_constant, bool x_is) {
  if (!may_reorder) return;
  ConvProblem wanted = problem;
  wanted.filters_are_constant = is_constant;
  problem.y_channels_last = wanted.y_channels_last = suits_channels_last(wanted);
  problem.x_channels_last = problem.y_channels_last && (x_is || gains_from_channels_last_copy(wanted));
}

Result<Settled> settle(OpContext<Cpu>& op) {
  Settled settled;
  const Tensor& x = op.input(0);
  ConvProblem& problem = settled.problem;
  problem = PX_TRY(conv_problem(op, x.shape(), op.input(1).shape()));
  settled.shape = PX_TRY(output_shape(problem));
  settled.is_free = is_order_free(settled.shape);
  if (op.has_input(2) && op.input(2).element_count() != problem.out_channels)
    return wrong_input(op, 2, "have {} elements, one for each output channel", problem.out_channels);
  (op.has_input(3) ? settled.last : problem.activation) = PX_TRY(activation_of_conv(op));
  const bool is_constant = op.is_constant(1) && (!op.has_input(2) || op.is_constant(2));
  settle_layouts(problem, op.may_reorder(), is_constant, is_channels_last(x) || is_order_free(x.shape()));
  settled.filters = float_data(op.input(1));
  settled.bias = op.has_input(2) ? float_data(op.input(2)) : nullptr;
  if (problem.y_channels_last && is_constant)
    settled.ready = PX_TRY(make_ready(op.queue(), problem, settled.filters, settled.bias));
  return settled;
}

// Nodes of inner operators live for one call only, and are settled anew in each.
Result<std::shared_ptr<const Settled>> settled_for(OpContext<Cpu>& op) {
  if (!op.may_reorder() || !op.is_constant(1)) return std::make_shared<const Settled>(PX_TRY(settle(op)));
  CacheKey key("conv at");
  key.add(&op.node()).add(is_channels_last(op.input(0))).add_all(op.input(0).shape());
  const auto known = op.queue().weights().get<Settled>(key.text(), [] { return std::make_shared<Settled>(); });
  const bool fits =
      known->filters == float_data(op.input(1)) && known->bias == (op.has_input(2) ? float_data(op.input(2)) : nullptr);
  if (known->ready == nullptr || !fits) *known = PX_TRY(settle(op));
  return std::shared_ptr<const Settled>(known);
}

Result<Tensor> in_order(OpContext<Cpu>& op, const Tensor& tensor, bool channels_last) {
  if (channels_last && is_order_free(tensor.shape())) return tensor;
  return channels_last ? to_channels_last(op.queue(), tensor) : to_row_major(op.queue(), tensor);
}

}  // namespace

Status host_convolution(OpContext<Cpu>& op) {
  const auto settled = PX_TRY(settled_for(op));
  const ConvProblem& problem = settled->problem;
  const Tensor x = PX_TRY(in_order(op, op.input(0), problem.x_channels_last));
  const MutableView y = problem.y_channels_last && !settled->is_free
                            ? PX_TRY(make_channels_last_output(op, 0, settled->shape))
                            : PX_TRY(op.make_output(0, DType::float32, settled->shape));
  float* target = reinterpret_cast<float*>(y.data);
  Tensor z;
  Addend addend;
  if (op.has_input(3)) {
    if (!(op.input(3).shape() == settled->shape))
      return wrong_input(op, 3, "have the shape of the result, {}", settled->shape.to_string());
    z = PX_TRY(in_order(op, op.input(3), problem.y_channels_last));
    addend = {float_data(z), settled->last};
  }
  if (settled->ready != nullptr) return conv(op.queue(), *settled->ready, float_data(x), addend, target);
  PX_TRY(conv(op.queue(), problem, float_data(x), settled->filters, settled->bias, target));
  if (addend.values != nullptr) finish_sum<float>(y.element_count(), addend.values, addend.activation, target);
  return {};
}

}  // namespace parallax::runtime
