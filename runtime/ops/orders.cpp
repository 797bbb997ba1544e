// SPDX-License-Identifier: Apache-2.0
// Elementwise kernels run under the shape of the order their inputs have; others are given row-major inputs but for
// those they know. Growable inputs are copied for kernels that take no strides.
#include "runtime/ops/orders.h"

#include <algorithm>

#include "runtime/device/cpu/channels_last.h"
#include "runtime/ops/growable_inputs.h"

namespace parallax::runtime {
namespace {

bool has_tensor(const OpInput& input) { return input.value != nullptr && input.value->is_tensor(); }

// The rank of the channels-last inputs, 0 when there are none, -1 when they differ.
int64_t channels_last_rank(std::span<const OpInput> inputs) {
  int64_t rank = 0;
  for (const OpInput& input : inputs) {
    if (!has_tensor(input) || !is_channels_last(input.value->tensor())) continue;
    const int64_t own = rank_of(input.value->tensor().shape());
    if (rank != 0 && rank != own) return -1;
    rank = own;
  }
  return rank;
}

// The tensor as an operand of `rank` axes, the channels last; nothing where its elements are not stored so.
std::optional<Tensor> operand_channels_last(const Tensor& tensor, int64_t rank) {
  const int64_t missing = rank - rank_of(tensor.shape());
  if (missing < 0) return std::nullopt;
  if (missing == 0) return seen_channels_last(tensor);
  Ints dims(missing, 1);
  for (int64_t dim : tensor.shape()) dims.push_back(dim);
  const auto shape = shape_of(dims);
  return shape.ok() ? seen_channels_last(tensor.reshaped(*shape)) : std::nullopt;
}

// All inputs under shapes with the channels last; false when one cannot be seen so.
Result<bool> see_channels_last(int64_t rank, Queue<Cpu>& queue, std::span<const OpInput> inputs,
                               std::vector<Value>& seen, std::vector<OpInput>& operands) {
  for (size_t index = 0; index < inputs.size(); ++index) {
    if (!has_tensor(inputs[index])) continue;
    const Tensor& tensor = inputs[index].value->tensor();
    auto operand = operand_channels_last(tensor, rank);
    if (operand.has_value()) {
      operands[index].owners = is_channels_last(tensor) ? 2 : 0;  // the input itself, and this view of it
    } else if (rank_of(tensor.shape()) == rank) {
      const Tensor moved = PX_TRY(to_channels_last(queue, tensor));
      operand = seen_channels_last(moved);
    }
    if (!operand.has_value()) return false;
    seen[index] = *std::move(operand);
    operands[index].value = &seen[index];
  }
  return true;
}

Status call(const KernelRow<Cpu>& row, const Node& node, std::span<const OpInput> inputs, uint64_t seed,
            Queue<Cpu>& queue, CallResult& result) {
  OpContext<Cpu> op(node, inputs, seed, queue, &result);
  op.let_reorder();
  return row.run(op);
}

bool is_numpy_broadcast(const Node& node) {  // before version 7 attributes said how
  return find_attribute(node, "axis") == nullptr && find_attribute(node, "broadcast") == nullptr;
}

// The order of channels is settled here.
Status call_with_channels(const KernelRow<Cpu>& row, const Node& node, std::span<const OpInput> inputs, uint64_t seed,
                          Queue<Cpu>& queue, CallResult& result) {
  const int64_t rank = channels_last_rank(inputs);
  if (rank == 0) return call(row, node, inputs, seed, queue, result);
  std::vector<OpInput> operands(inputs.begin(), inputs.end());
  std::vector<Value> moved(inputs.size());
  if (row.order.is_elementwise && rank > 0 && is_numpy_broadcast(node) &&
      PX_TRY(see_channels_last(rank, queue, inputs, moved, operands))) {
    PX_TRY(call(row, node, operands, seed, queue, result));
    for (Value& output : result.outputs) {
      if (output.is_tensor()) output = marked_channels_last(output.tensor());
    }
    return {};
  }
  for (size_t index = 0; index < inputs.size(); ++index) {
    operands[index] = inputs[index];
    const bool is_taken = index < 32 && (row.order.channels_last_inputs >> index & 1U) != 0;
    if (!has_tensor(inputs[index]) || is_taken || !is_channels_last(*inputs[index].value)) continue;
    moved[index] = PX_TRY(to_row_major(queue, inputs[index].value->tensor()));
    operands[index].value = &moved[index];
  }
  return call(row, node, operands, seed, queue, result);
}

}  // namespace

Status call_in_any_order(const KernelRow<Cpu>& row, const Node& node, std::span<const OpInput> inputs, uint64_t seed,
                         Queue<Cpu>& queue, CallResult& result) {
  if (!has_growable(inputs)) return call_with_channels(row, node, inputs, seed, queue, result);
  if (appends_to_first(row.op, inputs)) {
    const Tensor more = PX_TRY(to_row_major(queue, inputs[1].value->tensor()));
    return append_to_first(node, inputs, more, seed, queue, result);
  }
  std::vector<OpInput> operands(inputs.begin(), inputs.end());
  std::vector<Value> copied(inputs.size());
  PX_TRY(copy_growable(row, queue, operands, copied));
  return call_with_channels(row, node, operands, seed, queue, result);
}

Result<MutableView> make_channels_last_output(OpContext<Cpu>& op, int64_t index, const Shape& shape, DType dtype) {
  const Tensor made = PX_TRY(op.queue().allocate(dtype, shape));
  op.set_output(index, Tensor::wrap(dtype, shape, made.storage(), kChannelsLast));
  return writable(made);
}

}  // namespace parallax::runtime
