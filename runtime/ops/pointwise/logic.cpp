// SPDX-License-Identifier: Apache-2.0
// Comparisons, operators on bool, and Where.
#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/choose.h"
#include "runtime/ops/families.h"
#include "runtime/ops/pointwise/binary_functors.h"
#include "runtime/ops/pointwise/pointwise.h"

namespace parallax::runtime {
namespace {

template <class Device>
Status equal(OpContext<Device>& op) {
  if (op.input(0).dtype() == DType::bool_) return binary_predicate<Device, Booleans, Equal>(op);
  return binary_predicate<Device, Numbers, Equal>(op);
}

template <class Device>
Status where(OpContext<Device>& op) {
  const Tensor& x = op.input(1);
  if (x.dtype() != op.input(2).dtype()) return wrong_input(op, 2, "have the element type of X, {}", name_of(x.dtype()));
  const Shape shapes[] = {op.input(0).shape(), x.shape(), op.input(2).shape()};
  const Shape shape = PX_TRY(broadcast_shapes(shapes));
  const MutableView out = PX_TRY(op.make_output(0, x.dtype(), shape));
  const std::array<TensorView, 3> operands{op.input(0).view(), x.view(), op.input(2).view()};
  choose(op.queue(), out, operands);
  return {};
}

template <class Device>
constexpr KernelRow<Device> kLogicRows[] = {
    {"And", kBool, binary<Device, Booleans, And>},
    {"Equal", kReals | kBool, equal<Device>},
    {"Greater", kReals, binary_predicate<Device, Numbers, Greater>},
    {"GreaterOrEqual", kReals, binary_predicate<Device, Numbers, GreaterOrEqual>},
    {"Less", kReals, binary_predicate<Device, Numbers, Less>},
    {"LessOrEqual", kReals, binary_predicate<Device, Numbers, LessOrEqual>},
    {"Or", kBool, binary<Device, Booleans, Or>},
    {"Where", kMovable, where<Device>, 1, INT64_MAX, 1},
    {"Xor", kBool, binary<Device, Booleans, Xor>},
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> logic_rows() {
  return kLogicRows<CompiledDevice>;
}

}  // namespace parallax::runtime
