// SPDX-License-Identifier: Apache-2.0
// An operator as a part of another: operators of com.microsoft that are a chain of standard ones run those, on the
// device that the chain is compiled for.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "inspector/model/make_attribute.h"
#include "runtime/ops/op_context.h"

namespace parallax::runtime {

struct InnerOp {
  std::string_view op;
  int64_t version = 1;  // of the domain's operator set
  std::vector<Attribute> attributes = {};
  std::string_view domain = "ai.onnx";
  size_t output_count = 1;
};

using ChainContext = OpContext<CompiledDevice>;

// Input `index`, or an absent value.
Value value_or_none(const ChainContext& op, int64_t index);

// Attributes of the running node among `names`, for the inner one.
std::vector<Attribute> passed_on(const OpCall& op, std::initializer_list<std::string_view> names);

// All outputs. Inputs may be absent values. Errors: those of the inner operator, with its name in front.
Result<std::vector<Value>> run_inner_all(ChainContext& op, const InnerOp& inner, std::span<const Value> inputs);
// The first output, a tensor.
Result<Tensor> run_inner(ChainContext& op, const InnerOp& inner, std::span<const Value> inputs);
Result<Tensor> run_inner(ChainContext& op, const InnerOp& inner, std::initializer_list<Value> inputs);

// The integers of a tensor of any shape, in order; it must be on the host.
Ints all_integers(const Tensor& tensor);

// Chains in short.
Result<Tensor> inner_cast(ChainContext& op, const Tensor& tensor, DType to);
Result<Tensor> inner_transpose(ChainContext& op, const Tensor& tensor, std::vector<int64_t> order);
// Input `index` of a FusedMatMul; where attribute `flag` (transBatch) asks for it, its first axis becomes the last but
// one, which makes [S, B, H] into [B, S, H].
Result<Tensor> inner_batch_moved(ChainContext& op, int64_t index, std::string_view flag);
Result<Tensor> inner_binary(ChainContext& op, std::string_view name, const Tensor& a, const Tensor& b);

}  // namespace parallax::runtime
