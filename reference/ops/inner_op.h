// SPDX-License-Identifier: Apache-2.0
// Operators run inside another one: what a fused operator's page says it is made of. Floats pass between the
// parts as doubles, so that the whole rounds once.
#pragma once

#include <string>
#include <vector>

#include "inspector/model/make_attribute.h"
#include "reference/ops/op_context.h"

namespace parallax::reference {

struct InnerOp {
  std::string name;
  int64_t opset;  // the schema in force there is meant
  std::vector<Attribute> attributes = {};
  std::string domain = "ai.onnx";
};

// The first `outputs` outputs, or the first alone. Floating inputs are widened, so that a floating result is float64.
// Errors: those of the operator, and unsupported where the reference lacks it.
Result<std::vector<Value>> run_inner(const OpContext& op, const InnerOp& inner, std::vector<Value> inputs,
                                     size_t outputs);
Result<Tensor> run_inner(const OpContext& op, const InnerOp& inner, std::vector<Value> inputs);

// Output `index` from what the parts made: rounded once to the declared type where it is a float.
Status set_rounded(OpContext& op, size_t index, DType declared, const Tensor& values);

// The tensor with its axes in another order.
Result<Tensor> transpose(const OpContext& op, const Tensor& tensor, const std::vector<int64_t>& perm);

}  // namespace parallax::reference
