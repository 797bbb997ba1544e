// SPDX-License-Identifier: Apache-2.0
// A node made for one call, and the row that runs it.
#include "runtime/ops/inner_op.h"

#include "inspector/model/opset/opset_registry.h"
#include "runtime/ops/table.h"

namespace parallax::runtime {
namespace {

Node node_of(const InnerOp& inner, const std::string& outer_name) {
  Node node;
  node.op_type = std::string(inner.op);
  node.domain = inner.domain == "ai.onnx" ? "" : std::string(inner.domain);
  node.display_name = outer_name + "/" + node.op_type;
  node.opset_version = inner.version;
  node.attributes = inner.attributes;
  node.schema = OpsetRegistry::standard().find(inner.domain, inner.op, inner.version);
  PX_CHECK(node.schema != nullptr);
  for (size_t output = 0; output < inner.output_count; ++output) node.outputs.push_back(static_cast<ValueId>(output));
  return node;
}

// A weight stays one.
bool is_weight(const OpCall& op, const Value& input) {
  for (int64_t own = 0; own < op.input_count(); ++own) {
    if (input.is_tensor() && op.has_input(own) && op.value(own).is_tensor() && op.is_constant(own) &&
        op.input(own).view().data == input.tensor().view().data)
      return true;
  }
  return false;
}

// The input where the row reads it.
Result<Value> placed(ChainContext& op, const KernelRow<CompiledDevice>& row, size_t index, const Value& input) {
  if (!input.is_tensor()) return input;
  const bool on_host = index < 32 && ((row.host_inputs >> index) & 1U) != 0;
  return Value(PX_TRY(on_host ? op.on_host(input.tensor()) : op.resident(input.tensor())));
}

// Launches tell their errors to the queue.
template <class Device>
Status outcome([[maybe_unused]] Queue<Device>& queue, Status ran) {
  if constexpr (GpuDevice<Device>) {
    Status launched = queue.take_failure();
    if (ran.ok()) return launched;
  }
  return ran;
}

}  // namespace

Value value_or_none(const ChainContext& op, int64_t index) { return op.has_input(index) ? op.value(index) : Value(); }

Result<std::vector<Value>> run_inner_all(ChainContext& op, const InnerOp& inner, std::span<const Value> inputs) {
  Node node = node_of(inner, op.node().display_name);
  std::vector<DType> dtypes;
  for (const Value& input : inputs) {
    node.inputs.push_back(input.is_absent() ? kNoValue : static_cast<ValueId>(node.inputs.size()));
    dtypes.push_back(input.is_tensor() ? input.tensor().dtype() : DType::undefined);
  }
  const auto named = [&](Error error) {
    error.message = std::string(inner.op) + ": " + error.message;
    return error;
  };
  auto row = find_kernel<CompiledDevice>(node, dtypes);
  if (!row.ok()) return named(std::move(row).error());
  std::vector<Value> given;
  for (size_t index = 0; index < inputs.size(); ++index)
    given.push_back(PX_TRY(placed(op, **row, index, inputs[index])));
  std::vector<OpInput> operands;
  for (size_t index = 0; index < inputs.size(); ++index)
    operands.push_back({&given[index], is_weight(op, inputs[index]), false});
  ChainContext call(node, operands, op.seed(), op.queue());
  Status ran = outcome(op.queue(), (*row)->run(call));
  if (!ran.ok()) return named(std::move(ran).error());
  return call.take_outputs();
}

Result<Tensor> run_inner(ChainContext& op, const InnerOp& inner, std::span<const Value> inputs) {
  const std::vector<Value> outputs = PX_TRY(run_inner_all(op, inner, inputs));
  PX_CHECK(!outputs.empty() && outputs[0].is_tensor());
  return outputs[0].tensor();
}

Result<Tensor> run_inner(ChainContext& op, const InnerOp& inner, std::initializer_list<Value> inputs) {
  return run_inner(op, inner, std::span<const Value>(inputs.begin(), inputs.size()));
}

Result<Tensor> inner_cast(ChainContext& op, const Tensor& tensor, DType to) {
  if (tensor.dtype() == to) return tensor;
  return run_inner(op, {"Cast", 21, {int_attribute("to", static_cast<int64_t>(to))}}, {tensor});
}

Result<Tensor> inner_transpose(ChainContext& op, const Tensor& tensor, std::vector<int64_t> order) {
  return run_inner(op, {"Transpose", 13, {ints_attribute("perm", std::move(order))}}, {tensor});
}

Result<Tensor> inner_batch_moved(ChainContext& op, int64_t index, std::string_view flag) {
  const Tensor& tensor = op.input(index);
  const int64_t rank = rank_of(tensor.shape());
  if (op.find_integer(flag).value_or(0) == 0 || rank < 2) return tensor;
  std::vector<int64_t> order;
  for (int64_t axis = 1; axis + 1 < rank; ++axis) order.push_back(axis);
  order.insert(order.end(), {0, rank - 1});
  return inner_transpose(op, tensor, std::move(order));
}

Result<Tensor> inner_binary(ChainContext& op, std::string_view name, const Tensor& a, const Tensor& b) {
  return run_inner(op, {name, 14}, {a, b});
}

}  // namespace parallax::runtime
