// SPDX-License-Identifier: Apache-2.0
// How a functor becomes an operator: output shape and buffer, then map. A functor with parameters is built from the
// call.
#pragma once

#include "runtime/device/cpu/map.h"
#include "runtime/ops/op_context.h"

namespace parallax::runtime {

template <class F>
F make_functor(const OpCall& op) {
  if constexpr (std::is_constructible_v<F, const OpCall&>) {
    return F(op);
  } else {
    return F{};
  }
}

// y = f(x)
template <class Device, class Domain, class F>
Status unary(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const MutableView y = PX_TRY(op.make_output_over(0, x.dtype(), x.shape(), {0}));
  return map<Domain>(op.queue(), make_functor<F>(op), y, std::array<TensorView, 1>{x.view()});
}

// y = f(x), a bool
template <class Device, class Domain, class F>
Status unary_predicate(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const MutableView y = PX_TRY(op.make_output_over(0, DType::bool_, x.shape(), {0}));
  return map<Domain>(op.queue(), make_functor<F>(op), y, std::array<TensorView, 1>{x.view()});
}

// y as operators before version 7 broadcast it: its axes match those of x from attribute 'axis' on.
Result<TensorView> second_operand(const OpCall& op);

// z = f(x, y) of x's type, or bool for a predicate
template <class Device, class Domain, class F, bool kIsPredicate>
Status binary_as(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const TensorView y = PX_TRY(second_operand(op));
  const Shape shapes[] = {x.shape(), y.shape};
  const Shape shape = PX_TRY(broadcast_shapes(shapes));
  const MutableView z = PX_TRY(op.make_output_over(0, kIsPredicate ? DType::bool_ : x.dtype(), shape, {0, 1}));
  return map<Domain>(op.queue(), make_functor<F>(op), z, std::array<TensorView, 2>{x.view(), y});
}
template <class Device, class Domain, class F>
Status binary(OpContext<Device>& op) {
  return binary_as<Device, Domain, F, false>(op);
}
template <class Device, class Domain, class F>
Status binary_predicate(OpContext<Device>& op) {
  return binary_as<Device, Domain, F, true>(op);
}

}  // namespace parallax::runtime
