// SPDX-License-Identifier: Apache-2.0
// The untyped half of pointwise operators.
#include "runtime/ops/pointwise/pointwise.h"

#include "inspector/model/rule_errors.h"

namespace parallax::runtime {

Result<TensorView> second_operand(const OpCall& op) {
  const Tensor& x = op.input(0);
  const Tensor& y = op.input(1);
  if (x.dtype() != y.dtype())
    return wrong_input(op, 1, "have the element type of the first operand, {}", name_of(x.dtype()));
  TensorView view = y.view();
  const auto axis = op.since_version() < 7 ? op.find_integer("axis") : std::nullopt;
  if (!axis.has_value()) return view;
  const int64_t first = PX_TRY(OpCall::resolve_axis(*axis, rank_of(x.shape())));
  Ints dims(y.shape());
  if (first + dims.size() > rank_of(x.shape()))
    return wrong_input(op, 1, "fit into the first operand {} from axis {} on", x.shape().to_string(), first);
  while (first + dims.size() < rank_of(x.shape())) dims.push_back(1);
  view.shape = PX_TRY(shape_of(dims));
  return view;
}

}  // namespace parallax::runtime
