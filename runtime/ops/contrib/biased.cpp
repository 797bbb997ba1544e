// SPDX-License-Identifier: Apache-2.0
// com.microsoft's sums with a bias as chains of the operators of ai.onnx: BiasSoftmax and, for GPUs, BiasAdd,
// BiasDropout, BiasSplitGelu. Formulas: onnxruntime's ContribOperators.md.
#include "inspector/model/rule_errors.h"
#include "runtime/ops/contrib_families.h"
#include "runtime/ops/contributed.h"
#include "runtime/ops/inner_op.h"
#include "runtime/ops/on_gpu.h"

namespace parallax::runtime {
namespace {

using Context = ChainContext;
using Device = CompiledDevice;

// X + bias + skip.
template <class Gpu>
Status bias_add_by_parts(OpContext<Gpu>& op) {
  const Tensor& x = op.input(0);
  if (x.shape().rank() != 3 || !(op.input(1).shape() == Shape{x.shape()[2]}) || !(op.input(2).shape() == x.shape()))
    return wrong_input(op, 0, "be [N,S,C], bias, {}, be [C] and skip, {}, have the shape of X",
                       op.input(1).shape().to_string(), op.input(2).shape().to_string());
  const Tensor biased = PX_TRY(inner_binary(op, "Add", x, op.input(1)));
  op.set_output(0, PX_TRY(inner_binary(op, "Add", biased, op.input(2))));
  return {};
}

// data + bias + residual; the mask is all true.
template <class Gpu>
Status bias_dropout_by_parts(OpContext<Gpu>& op) {
  const Tensor& x = op.input(0);
  if (op.has_input(4) && PX_TRY(op.integer_of_input(4)) != 0) {
    const double ratio = op.has_input(3) ? PX_TRY(op.real_of_input(3)) : 0.5;
    if (ratio != 0.0) return unsupported("training with a ratio above 0: its random numbers are onnxruntime's own");
  }
  Tensor y = PX_TRY(inner_binary(op, "Add", x, op.input(1)));
  if (op.has_input(2)) y = PX_TRY(inner_binary(op, "Add", y, op.input(2)));
  op.set_output(0, std::move(y));
  if (op.wants_output(1)) op.set_output(1, PX_TRY(run_inner(op, {"Equal", 19}, {x, x})));
  return {};
}

// X + bias cut in two along the last axis; the left part times Gelu of the right.
template <class Gpu>
Status bias_split_gelu_by_parts(OpContext<Gpu>& op) {
  const Tensor& x = op.input(0);
  if (x.shape().rank() != 3 || x.shape()[2] % 2 != 0 || !(op.input(1).shape() == Shape{x.shape()[2]}))
    return wrong_input(op, 0, "be [N,S,D] with an even D, and bias, {}, be [D]", op.input(1).shape().to_string());
  const Tensor biased = PX_TRY(inner_binary(op, "Add", x, op.input(1)));
  InnerOp split{"Split", 18, {int_attribute("axis", 2), int_attribute("num_outputs", 2)}};
  split.output_count = 2;
  const Value whole = biased;
  const std::vector<Value> float16s = PX_TRY(run_inner_all(op, split, std::span<const Value>(&whole, 1)));
  const Tensor gate = PX_TRY(run_inner(op, {"Gelu", 20}, {float16s[1]}));
  op.set_output(0, PX_TRY(inner_binary(op, "Mul", float16s[0].tensor(), gate)));
  return {};
}

// Softmax of data + bias over all axes from `axis` on, seen as one. The bias has the softmax's part and batches in
// front: with is_inner_broadcast each serves a run of the data's rows, else all of it is repeated.
Status bias_softmax(Context& op) {
  const Tensor& x = op.input(0);
  const Tensor& bias = op.input(1);
  const Ints dims(x.shape());
  const int64_t axis = PX_TRY(OpCall::resolve_axis(op.integer("axis"), dims.size()));
  const int64_t rows = product(dims, 0, axis);
  const int64_t columns = product(dims, axis, dims.size());
  const int64_t batches = columns == 0 ? 0 : bias.element_count() / columns;
  if (columns > 0 && rows > 0 && (batches == 0 || bias.element_count() % columns != 0 || rows % batches != 0))
    return wrong_shape("the bias", bias.shape(),
                       "have the shape of data {} from axis {} on, with batches that divide its rows",
                       x.shape().to_string(), axis);
  if (x.element_count() == 0) {
    PX_TRY(op.make_output(0, x.dtype(), x.shape()));
    return {};
  }
  const bool inner = op.integer("is_inner_broadcast") != 0;
  const Shape seen = inner ? Shape{batches, rows / batches, columns} : Shape{rows / batches, batches, columns};
  const Shape added = inner ? Shape{batches, 1, columns} : Shape{1, batches, columns};
  const Tensor sums = PX_TRY(inner_binary(op, "Add", x.reshaped(seen), bias.reshaped(added)));
  const Tensor y = PX_TRY(run_inner(op, {"Softmax", 13, {int_attribute("axis", -1)}}, {sums}));
  op.set_output(0, y.reshaped(x.shape()));
  return {};
}

constexpr KernelRow<CompiledDevice> kContribBiasedRows[] = {
    contributed_row("BiasAdd", kFloats, PX_ON_GPU(bias_add_by_parts<Device>)),
    reads_on_host({3, 4}, contributed_row("BiasDropout", kFloats, PX_ON_GPU(bias_dropout_by_parts<Device>))),
    contributed_row("BiasSoftmax", kFloats, bias_softmax),
    contributed_row("BiasSplitGelu", kFloats, PX_ON_GPU(bias_split_gelu_by_parts<Device>)),
};

}  // namespace

template <>
Rows<CompiledDevice> contrib_biased_rows() {
  return kContribBiasedRows;
}

}  // namespace parallax::runtime
