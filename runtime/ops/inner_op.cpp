// A node made for one call, and the row that runs it.
#include "runtime/ops/inner_op.h"

#include <algorithm>

#include "inspector/model/opset_registry.h"
#include "runtime/device/blocks.h"
#include "runtime/ops/table.h"

namespace parallax::runtime {
namespace {

template <class T>
Attribute attribute(std::string name, AttributeType type, T value) {
  Attribute made;
  made.name = std::move(name);
  made.type = type;
  made.value = std::move(value);
  return made;
}

}  // namespace

Attribute inner_int(std::string name, int64_t value) { return attribute(std::move(name), AttributeType::int_, value); }
Attribute inner_float(std::string name, double value) {
  return attribute(std::move(name), AttributeType::float_, static_cast<float>(value));
}
Attribute inner_ints(std::string name, std::vector<int64_t> values) {
  return attribute(std::move(name), AttributeType::ints, std::move(values));
}

std::vector<Attribute> passed_on(const OpCall& op, std::initializer_list<std::string_view> names) {
  std::vector<Attribute> attributes;
  for (std::string_view name : names) {
    if (const Attribute* found = find_attribute(op.node(), name)) attributes.push_back(*found);
  }
  return attributes;
}

Result<std::vector<Value>> run_inner_all(OpContext<Cpu>& op, const InnerOp& inner, std::span<const Value> inputs) {
  Node node;
  node.op_type = std::string(inner.op);
  node.domain = inner.domain == "ai.onnx" ? "" : std::string(inner.domain);
  node.display_name = op.node().display_name + "/" + node.op_type;
  node.opset_version = inner.version;
  node.attributes = inner.attributes;
  node.schema = OpsetRegistry::standard().find(inner.domain, inner.op, inner.version);
  PX_CHECK(node.schema != nullptr);
  std::vector<OpInput> operands;
  std::vector<DType> dtypes;
  for (const Value& input : inputs) {
    node.inputs.push_back(input.is_absent() ? kNoValue : static_cast<ValueId>(operands.size()));
    operands.push_back({&input, false, false});
    for (int64_t own = 0; own < op.input_count(); ++own) {  // a weight stays one
      if (input.is_tensor() && op.has_input(own) && op.value(own).is_tensor() && op.is_constant(own) &&
          op.input(own).view().data == input.tensor().view().data)
        operands.back().is_constant = true;
    }
    dtypes.push_back(input.is_tensor() ? input.tensor().dtype() : DType::undefined);
  }
  for (size_t output = 0; output < inner.output_count; ++output) node.outputs.push_back(static_cast<ValueId>(output));
  const auto named = [&](Error error) {
    error.message = std::string(inner.op) + ": " + error.message;
    return error;
  };
  auto row = find_kernel<Cpu>(node, dtypes);
  if (!row.ok()) return named(std::move(row).error());
  OpContext<Cpu> call(node, operands, op.seed(), op.queue());
  Status ran = (*row)->run(call);
  if (!ran.ok()) return named(std::move(ran).error());
  return call.take_outputs();
}

Result<Tensor> run_inner(OpContext<Cpu>& op, const InnerOp& inner, std::span<const Value> inputs) {
  const std::vector<Value> outputs = PX_TRY(run_inner_all(op, inner, inputs));
  PX_CHECK(!outputs.empty() && outputs[0].is_tensor());
  return outputs[0].tensor();
}

Result<Tensor> run_inner(OpContext<Cpu>& op, const InnerOp& inner, std::initializer_list<Value> inputs) {
  return run_inner(op, inner, std::span<const Value>(inputs.begin(), inputs.size()));
}

Ints all_integers(const Tensor& tensor) {
  std::vector<int64_t> values(static_cast<size_t>(tensor.element_count()));
  load_block<int64_t>(tensor.dtype(), tensor.view().data, 0, 1, tensor.element_count(), values.data());
  return values;
}

Result<Tensor> inner_cast(OpContext<Cpu>& op, const Tensor& tensor, DType to) {
  if (tensor.dtype() == to) return tensor;
  return run_inner(op, {"Cast", 21, {inner_int("to", static_cast<int64_t>(to))}}, {tensor});
}

Result<Tensor> inner_transpose(OpContext<Cpu>& op, const Tensor& tensor, std::vector<int64_t> order) {
  return run_inner(op, {"Transpose", 13, {inner_ints("perm", std::move(order))}}, {tensor});
}

Result<Tensor> inner_binary(OpContext<Cpu>& op, std::string_view name, const Tensor& a, const Tensor& b) {
  return run_inner(op, {name, 14}, {a, b});
}

}  // namespace parallax::runtime
