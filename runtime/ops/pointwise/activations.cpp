// SPDX-License-Identifier: Apache-2.0
// Unary operators: one functor and one row each.
#include "inspector/model/rule_errors.h"
#include "runtime/ops/families.h"
#include "runtime/ops/pointwise/narrow_casts.h"
#include "runtime/ops/pointwise/pointwise.h"
#include "runtime/ops/pointwise/unary_functors.h"

namespace parallax::runtime {
namespace {

template <class Device>
Status gelu(OpContext<Device>& op) {
  const std::string approximate = op.find_text("approximate").value_or("none");
  if (approximate == "tanh") return unary<Device, Floats, GeluTanh>(op);
  if (approximate == "none") return unary<Device, Floats, GeluErf>(op);
  return wrong_attribute("approximate", approximate, "be none or tanh");
}

// The predicates of 8-bit floats, whose only other operators are casts and copies.
template <class Device, class F>
Status float8_predicate(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const MutableView y = PX_TRY(op.make_output(0, DType::bool_, x.shape()));
  TensorView numbers = x.view();
  if constexpr (GpuDevice<Device>) numbers = PX_TRY(decoded(op, numbers));
  map_as<double, bool>(op.queue(), make_functor<F>(op), y, std::array<TensorView, 1>{numbers});
  return {};
}

template <class Device>
constexpr auto kActivationRows = elementwise_rows<Device>({
    {"Abs", kReals, unary<Device, Numbers, Abs>},
    {"Acos", kFloats, unary<Device, Floats, Acos>},
    {"Acosh", kFloats, unary<Device, Floats, Acosh>},
    {"Asin", kFloats, unary<Device, Floats, Asin>},
    {"Asinh", kFloats, unary<Device, Floats, Asinh>},
    {"Atan", kFloats, unary<Device, Floats, Atan>},
    {"Atanh", kFloats, unary<Device, Floats, Atanh>},
    {"BitwiseNot", kInts, unary<Device, Integers, BitwiseNot>},
    {"Ceil", kFloats, unary<Device, Floats, Ceil>},
    {"Celu", kFloats, unary<Device, Floats, Celu>},
    {"Cos", kFloats, unary<Device, Floats, Cos>},
    {"Cosh", kFloats, unary<Device, Floats, Cosh>},
    {"Elu", kFloats, unary<Device, Floats, Elu>},
    {"Erf", kFloats, unary<Device, Floats, Erf>},
    {"Exp", kFloats, unary<Device, Floats, Exp>},
    {"Floor", kFloats, unary<Device, Floats, Floor>},
    {"Gelu", kFloats, gelu<Device>},
    {"HardSigmoid", kFloats, unary<Device, Floats, HardSigmoid>},
    {"HardSwish", kFloats, unary<Device, Floats, HardSwish>},
    {"IsInf", kFloats, unary_predicate<Device, Floats, IsInf>},
    {"IsInf", kFloat8, float8_predicate<Device, IsInf>},
    {"IsNaN", kFloats, unary_predicate<Device, Floats, IsNaN>},
    {"IsNaN", kFloat8, float8_predicate<Device, IsNaN>},
    {"LeakyRelu", kFloats, unary<Device, Floats, LeakyRelu>},
    {"Log", kFloats, unary<Device, Floats, Log>},
    {"Mish", kFloats, unary<Device, Floats, Mish>},
    {"Neg", kReals, unary<Device, Numbers, Neg>},
    {"Not", kBool, unary<Device, Booleans, Not>},
    {"Reciprocal", kFloats, unary<Device, Floats, Reciprocal>},
    {"Relu", kReals, unary<Device, Numbers, Relu>},
    {"Round", kFloats, unary<Device, Floats, Round>},
    {"Selu", kFloats, unary<Device, Floats, Selu>},
    {"Shrink", kReals, unary<Device, Numbers, Shrink>},
    {"Sigmoid", kFloats, unary<Device, Floats, Sigmoid>},
    {"Sign", kReals, unary<Device, Numbers, Sign>},
    {"Sin", kFloats, unary<Device, Floats, Sin>},
    {"Sinh", kFloats, unary<Device, Floats, Sinh>},
    {"Softplus", kFloats, unary<Device, Floats, Softplus>},
    {"Softsign", kFloats, unary<Device, Floats, Softsign>},
    {"Sqrt", kFloats, unary<Device, Floats, Sqrt>},
    {"Swish", kFloats, unary<Device, Floats, Swish>},
    {"Tan", kFloats, unary<Device, Floats, Tan>},
    {"Tanh", kFloats, unary<Device, Floats, Tanh>},
    {"ThresholdedRelu", kFloats, unary<Device, Floats, ThresholdedRelu>},
    {"Gelu", kFloats, unary<Device, Floats, GeluErf>, 1, INT64_MAX, 0, Arguments::tensors, "com.microsoft"},
});

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> activation_rows() {
  return kActivationRows<CompiledDevice>;
}

}  // namespace parallax::runtime
