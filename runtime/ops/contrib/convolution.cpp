// SPDX-License-Identifier: Apache-2.0
// Convolutions with something fused to them on the host: com.microsoft FusedConv, and our own Conv with more
// activations.
#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/products/gemm.h"
#include "runtime/ops/contributed.h"
#include "runtime/ops/families.h"
#include "runtime/ops/inner_op.h"
#include "runtime/ops/pointwise/activation_attributes.h"
#include "runtime/ops/spatial/conv_problem.h"
#include "runtime/ops/spatial/host_convolution.h"

namespace parallax::runtime {
namespace {

using Context = OpContext<Cpu>;

// The convolution alone, for types other than float and other orders of axes.
Result<Tensor> inner_conv(Context& op, const Tensor& x) {
  std::vector<Value> inputs{x, op.value(1)};
  if (op.has_input(2)) inputs.push_back(op.value(2));
  const InnerOp inner{"Conv", 11, passed_on(op, {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"})};
  return run_inner(op, inner, inputs);
}

Status finish(Context& op, Tensor y, const Activation& activation) {
  if (op.has_input(3)) {
    if (!(op.input(3).shape() == y.shape()))
      return wrong_input(op, 3, "have the shape of the result, {}", y.shape().to_string());
    y = PX_TRY(inner_binary(op, "Add", y, op.input(3)));
  }
  const MutableView out = PX_TRY(op.make_output(0, y.dtype(), y.shape()));
  Status ran;
  visit_activation(activation,
                   [&](auto apply) { ran = map<Floats>(op.queue(), apply, out, std::array<TensorView, 1>{y.view()}); });
  return ran;
}

Status fused_conv(Context& op) {
  if (op.input(1).dtype() != op.input(0).dtype())
    return wrong_input(op, 1, "have the element type of X, {}", name_of(op.input(0).dtype()));
  const bool is_empty = op.input(0).element_count() == 0 || op.input(1).element_count() == 0;
  if (op.input(0).dtype() == DType::float32 && !is_empty) return host_convolution(op);
  const Activation activation = PX_TRY(activation_of_conv(op));
  return finish(op, PX_TRY(inner_conv(op, op.input(0))), activation);
}

constexpr KernelRow<Cpu> kContribConvRows[] = {
    takes_channels_last({0, 3}, where<has_known_activation>(contributed_row("FusedConv", kFloats, fused_conv))),
    takes_channels_last({0, 3}, contributed_row("Conv", kFloats, fused_conv, 0, "parallax.fused")),
};

}  // namespace

template <>
Rows<Cpu> contrib_conv_rows() {
  return kContribConvRows;
}

}  // namespace parallax::runtime
