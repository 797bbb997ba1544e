// SPDX-License-Identifier: Apache-2.0
// The untyped half of pointwise operators.
#include "runtime/ops/pointwise.h"

#include <fmt/format.h>

namespace parallax::runtime {

Result<TensorView> second_operand(const OpCall& op) {
  const Tensor& x = op.input(0);
  const Tensor& y = op.input(1);
  if (x.dtype() != y.dtype()) {
    return execution_error(
        fmt::format("operands have element types {} and {}", name_of(x.dtype()), name_of(y.dtype())));
  }
  TensorView view = y.view();
  const auto axis = op.since_version() < 7 ? op.find_integer("axis") : std::nullopt;
  if (!axis.has_value()) return view;
  const int64_t first = PX_TRY(OpCall::resolve_axis(*axis, rank_of(x.shape())));
  Ints dims(y.shape());
  if (first + dims.size() > rank_of(x.shape())) {
    return execution_error(fmt::format("axis {} leaves no room for shape {}", first, y.shape().to_string()));
  }
  while (first + dims.size() < rank_of(x.shape())) dims.push_back(1);
  view.shape = PX_TRY(shape_of(dims));
  return view;
}

}  // namespace parallax::runtime
