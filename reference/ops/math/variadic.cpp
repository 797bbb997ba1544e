// SPDX-License-Identifier: Apache-2.0
// Elementwise functions of any number of inputs: Max, Min, Sum, Mean.
#include <cmath>

#include "reference/ops/families.h"
#include "reference/ops/map.h"

namespace parallax::reference {
namespace {

// Folds the broadcast inputs by f, in their order, then applies finish; one rounding at the end.
template <class F, class Finish>
Status fold_inputs(OpContext& op, F f, Finish finish) {
  Shape shape = op.input(0).shape();
  for (size_t index = 1; index < op.input_count(); ++index) {
    shape = PX_TRY(broadcast_shapes(shape, op.input(index).shape()));
  }
  std::vector<BroadcastInput> inputs;
  for (size_t index = 0; index < op.input_count(); ++index) inputs.emplace_back(op.input(index), shape);
  const DType dtype = op.input(0).dtype();
  Tensor output = PX_TRY(op.allocate(dtype, shape));
  PX_TRY(with_number_type(dtype, [&](auto number) -> Status {
    using T = decltype(number);
    for_blocks(shape.element_count(), static_cast<int64_t>(inputs.size()), [&](int64_t begin, int64_t end) {
      std::vector<T> folded(static_cast<size_t>(end - begin));
      std::vector<T> next(folded.size());
      inputs[0].read<T>(begin, folded);
      for (size_t input = 1; input < inputs.size(); ++input) {
        inputs[input].read<T>(begin, next);
        for (size_t index = 0; index < folded.size(); ++index) folded[index] = f(folded[index], next[index]);
      }
      for (T& value : folded) value = finish(value);
      store<T>(output, begin, folded);
    });
    return {};
  }));
  return op.set_output(0, std::move(output));
}

constexpr auto kAsItIs = [](auto value) { return value; };

// NaN in any input gives NaN. The specification is silent; a maximum that hides a NaN would hide a fault.
Status op_max(OpContext& op) {
  return fold_inputs(
      op, [](auto a, auto b) { return is_nan(a) || a >= b ? a : b; }, kAsItIs);
}

Status op_min(OpContext& op) {
  return fold_inputs(
      op, [](auto a, auto b) { return is_nan(a) || a <= b ? a : b; }, kAsItIs);
}

Status op_sum(OpContext& op) {
  return fold_inputs(
      op, [](auto a, auto b) { return wrapping_add(a, b); }, kAsItIs);
}

Status op_mean(OpContext& op) {
  const auto count = static_cast<double>(op.input_count());
  return fold_inputs(
      op, [](auto a, auto b) { return wrapping_add(a, b); },
      [=](auto sum) { return static_cast<decltype(sum)>(static_cast<double>(sum) / count); });
}

constexpr OpRow kVariadicRows[] = {
    {"Max", kOnnx, 1, 13, op_max},
    {"Mean", kOnnx, 1, 13, op_mean},
    {"Min", kOnnx, 1, 13, op_min},
    {"Sum", kOnnx, 1, 13, op_sum},
};

}  // namespace

OpRows variadic_rows() { return kVariadicRows; }

}  // namespace parallax::reference
