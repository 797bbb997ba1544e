// SPDX-License-Identifier: Apache-2.0
// A node built for the inner operator, and the look-up of its function in the table.
#include "reference/ops/inner_op.h"

#include <fmt/format.h>

#include "inspector/model/opset/opset_registry.h"
#include "reference/kernels/numbers.h"
#include "reference/ops/table.h"

namespace parallax::reference {

Result<std::vector<Value>> run_inner(const OpContext& op, const InnerOp& inner, std::vector<Value> inputs,
                                     size_t outputs) {
  Node node;
  node.op_type = inner.name;
  node.opset_version = inner.opset;
  node.schema = OpsetRegistry::standard().find(inner.domain, inner.name, inner.opset);
  node.outputs.assign(outputs, 0);
  node.attributes = inner.attributes;
  const OpRow* row = node.schema == nullptr ? nullptr : find_row(node);
  if (row == nullptr)
    return unsupported(
        fmt::format("the inner operator {} has no function at opset {} in the reference", inner.name, inner.opset));
  for (Value& input : inputs) input = PX_TRY(widen(input));
  node.inputs.assign(inputs.size(), 0);
  OpContext context(node, std::move(inputs), op.environment());
  PX_TRY_CONTEXT(inner.name, row->function(context));
  return context.take_outputs();
}

Result<Tensor> run_inner(const OpContext& op, const InnerOp& inner, std::vector<Value> inputs) {
  return PX_TRY(run_inner(op, inner, std::move(inputs), 1))[0].tensor();
}

Status set_rounded(OpContext& op, size_t index, DType declared, const Tensor& values) {
  if (op.carried(declared) == values.dtype()) return op.set_output(index, values);
  return op.set_output(index, declared, values.shape(), Numbers<double>(values).span());
}

Result<Tensor> transpose(const OpContext& op, const Tensor& tensor, const std::vector<int64_t>& perm) {
  return run_inner(op, {"Transpose", 13, {ints_attribute("perm", perm)}}, {tensor});
}

}  // namespace parallax::reference
