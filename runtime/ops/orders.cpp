// SPDX-License-Identifier: Apache-2.0
// Elementwise kernels run under the shape of the order their inputs have; others are given row-major inputs but for
// those they know. Growable inputs are copied for kernels that take no strides.
#include "runtime/ops/orders.h"

#include <algorithm>

#include "runtime/device/cpu/channels_last.h"
#include "runtime/device/cpu/growable.h"

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

// ---- Growable inputs ----

bool has_growable(const OpInput& input) { return input.value != nullptr && is_growable(*input.value); }

// The inputs that a kernel takes growable.
struct GrowableInputs {
  std::string_view domain, op;
  uint32_t inputs;  // a bit for each
  uint32_t dtypes;  // of theirs
};
constexpr GrowableInputs kGrowableInputs[] = {
    {"ai.onnx", "Shape", 0b1, kAnything},
    {"ai.onnx", "Size", 0b1, kAnything},
    {"ai.onnx", "Attention", 0b110000, kFloats},
    {"com.microsoft", "GroupQueryAttention", 0b11000, kAnything},
    {"parallax.fused", "Attention", 0b110, dtype_bit(DType::float32)},
};

bool takes_growable(const KernelRow<Cpu>& row, size_t index, DType dtype) {
  const auto* const found = std::ranges::find_if(
      kGrowableInputs, [&](const GrowableInputs& each) { return each.op == row.op && each.domain == row.domain; });
  return found != std::end(kGrowableInputs) && index < 32 && (found->inputs >> index & 1U) != 0 &&
         (found->dtypes & dtype_bit(dtype)) != 0;
}

bool are_joined(const Tensor& past, const OpInput& more) {
  if (!has_tensor(more) || more.value->tensor().dtype() != past.dtype()) return false;
  Ints dims(more.value->tensor().shape());
  const int64_t axis = growing_axis(past);
  if (dims.size() != rank_of(past.shape())) return false;
  dims[axis] = dim_of(past.shape(), axis);
  return dims == Ints(past.shape());
}

Status append_to_first(const Node& node, std::span<const OpInput> inputs, uint64_t seed, Queue<Cpu>& queue,
                       CallResult& result) {
  const Tensor& past = inputs[0].value->tensor();
  const Tensor more = PX_TRY(to_row_major(queue, inputs[1].value->tensor()));
  OpCall op(node, inputs, seed, &result);
  op.set_output(0, PX_TRY(append(queue, past, dim_of(more.shape(), growing_axis(past)),
                                 {more.view().data, element_strides(more), 0})));
  return {};
}

}  // namespace

Status call_in_any_order(const KernelRow<Cpu>& row, const Node& node, std::span<const OpInput> inputs, uint64_t seed,
                         Queue<Cpu>& queue, CallResult& result) {
  if (std::ranges::none_of(inputs, has_growable)) return call_with_channels(row, node, inputs, seed, queue, result);
  const bool is_appended = row.op == "Concat" && inputs.size() == 2 && has_growable(inputs[0]) &&
                           is_open(inputs[0].value->tensor()) && are_joined(inputs[0].value->tensor(), inputs[1]);
  if (is_appended) return append_to_first(node, inputs, seed, queue, result);
  std::vector<OpInput> operands(inputs.begin(), inputs.end());
  std::vector<Value> copied(inputs.size());
  for (size_t index = 0; index < inputs.size(); ++index) {
    if (!has_growable(inputs[index])) continue;
    const Tensor& growable = inputs[index].value->tensor();
    if (takes_growable(row, index, growable.dtype())) continue;
    copied[index] = PX_TRY(without_room(queue, growable));
    operands[index].value = &copied[index];
  }
  return call_with_channels(row, node, operands, seed, queue, result);
}

Result<MutableView> make_channels_last_output(OpContext<Cpu>& op, int64_t index, const Shape& shape, DType dtype) {
  const Tensor made = PX_TRY(op.queue().allocate(dtype, shape));
  op.set_output(index, Tensor::wrap(dtype, shape, made.storage(), kChannelsLast));
  return writable(made);
}

}  // namespace parallax::runtime
