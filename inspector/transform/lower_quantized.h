// SPDX-License-Identifier: Apache-2.0
// Lower: operators on quantized values (QLinearConv, QLinearMatMul, those of com.microsoft) as DequantizeLinear, the
// operator on floats and QuantizeLinear, which is how their pages define them; and products of integers whose result is
// multiplied by the scales of their factors as the product of the dequantized factors.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "inspector/base/result.h"
#include "inspector/model/ir.h"

namespace parallax::transform {

struct LoweredNode {
  std::string name;  // of the node in the given model
  std::string op_type;
  std::string reader, reader_op;  // another node that reads the stored values, where this one has their scale alone
};

// By display name: the nodes that were put in around an operator, and where they come from.
using NodeOrigins = std::map<std::string, LoweredNode, std::less<>>;

struct LoweredQuantized {
  std::shared_ptr<Model> model;
  NodeOrigins origins;
};

// The nodes that lower_quantized may replace, in bodies too.
size_t count_quantized_operators(const Model& model);

// All values and nodes keep their names; the operator on floats has the name of the node. Replaced is what means the
// same in the model's operator sets: a node with its channels last, or with scales of unknown number, stays as it is.
Result<LoweredQuantized> lower_quantized(const Model& model);

}  // namespace parallax::transform
