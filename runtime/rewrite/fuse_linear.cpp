// SPDX-License-Identifier: Apache-2.0
// Products of matrices with what stands before and after them: transposes and factors (com.microsoft FusedMatMul),
// DequantizeLinear of a weight, and bias, activation and residual (Linear; FusedGemm for Gemm).
#include <array>

#include "runtime/rewrite/epilogue.h"
#include "runtime/rewrite/fused_ops.h"
#include "runtime/rewrite/fuser.h"
#include "runtime/rewrite/patterns.h"

namespace parallax::runtime {
namespace {

// The transpose swaps the last two axes and leaves the others.
bool swaps_last_axes(const Fuser& fuser, const Node& transpose) {
  const auto order = ints_of(transpose, "perm");
  const auto dims = fuser.dims_of(fuser.input(transpose, 0));
  if (!order.has_value()) return dims.has_value() && dims->size() == 2;
  const size_t rank = order->size();
  if (rank < 2) return false;
  for (size_t axis = 0; axis + 2 < rank; ++axis) {
    if ((*order)[axis] != static_cast<int64_t>(axis)) return false;
  }
  return (*order)[rank - 2] == static_cast<int64_t>(rank) - 1 && (*order)[rank - 1] == static_cast<int64_t>(rank) - 2;
}

bool is_product(const Node& node) {
  return (is_standard(node) && node.op_type == "MatMul") ||
         (node.domain == kMicrosoft && node.op_type == "FusedMatMul");
}

// A MatMul as FusedMatMul, with what it has so far.
Node fused_matmul(const Fuser& fuser, const Node& node, size_t location, std::vector<ValueId> inputs,
                  std::vector<ValueId> outputs, int64_t flip, double factor) {
  Node made = fuser.make(kMicrosoft, "FusedMatMul", location, std::move(inputs), std::move(outputs));
  made.attributes = {float_attribute("alpha", float_of(node, "alpha", 1.0) * factor),
                     int_attribute("transA", int_of(node, "transA", 0) ^ (flip & 1)),
                     int_attribute("transB", int_of(node, "transB", 0) ^ (flip >> 1))};
  return made;
}

bool is_float(const Fuser& fuser, ValueId value) {
  const DType dtype = fuser.dtype_of(value);
  return dtype == DType::float32 || dtype == DType::float16 || dtype == DType::bfloat16 || dtype == DType::float64;
}

void fuse_transpose(Fuser& fuser, size_t position) {
  const Node* node = fuser.at(position);
  if (node == nullptr || !is_product(*node) || !is_float(fuser, node->outputs[0])) return;
  for (size_t side = 0; side < 2; ++side) {
    node = fuser.at(position);
    const size_t transpose = fuser.producer(fuser.input(*node, side), "Transpose");
    if (transpose == Fuser::kNowhere || !swaps_last_axes(fuser, *fuser.at(transpose))) continue;
    std::vector<ValueId> inputs{fuser.input(*node, 0), fuser.input(*node, 1)};
    inputs[side] = fuser.input(*fuser.at(transpose), 0);
    const std::array<size_t, 2> members{transpose, position};
    const int64_t flip = side == 0 ? 1 : 2;
    fuser.replace(members, position, fused_matmul(fuser, *node, position, inputs, node->outputs, flip, 1.0));
  }
}

// A product whose every element is then multiplied by one number.
void fuse_scale(Fuser& fuser, size_t position) {
  const Node* node = fuser.at(position);
  if (node == nullptr || !is_product(*node)) return;
  const ValueId product = node->outputs[0];
  const DType dtype = fuser.dtype_of(product);
  if (dtype != DType::float32 && dtype != DType::float64) return;  // float16 is rounded between the two
  const size_t after = fuser.only_reader(product);
  if (after == Fuser::kNowhere) return;
  double factor = 0;
  const Node* mul = fuser.at(after, "Mul");
  const Node* div = fuser.at(after, "Div");
  if (mul != nullptr) {
    const size_t other = fuser.input(*mul, 0) == product ? 1 : 0;
    factor = fuser.scalar(fuser.input(*mul, other)).value_or(0);
  } else if (div != nullptr && fuser.input(*div, 0) == product) {
    const double divisor = fuser.scalar(fuser.input(*div, 1)).value_or(0);
    factor = divisor == 0 ? 0 : 1 / divisor;
  }
  if (factor == 0) return;
  const Node& scaling = *fuser.at(after);
  const auto before_dims = fuser.dims_of(product);
  const auto after_dims = fuser.dims_of(scaling.outputs[0]);
  if (!before_dims.has_value() || !after_dims.has_value() || before_dims->size() != after_dims->size()) return;
  const std::array<size_t, 2> members{position, after};
  fuser.replace(
      members, after,
      fused_matmul(fuser, *node, after, {fuser.input(*node, 0), fuser.input(*node, 1)}, scaling.outputs, 0, factor));
}

// MatMul with a constant matrix, plus a constant vector as long as its columns.
void fuse_bias(Fuser& fuser, size_t position) {
  const Node* node = fuser.at(position, "MatMul");
  if (node == nullptr || !is_float(fuser, node->outputs[0])) return;
  const Tensor* matrix = fuser.edit().constant(fuser.input(*node, 1));
  const size_t after = fuser.only_reader(node->outputs[0]);
  const Node* add = after == Fuser::kNowhere ? nullptr : fuser.at(after, "Add");
  if (matrix == nullptr || matrix->shape().rank() != 2 || add == nullptr) return;
  const size_t other = fuser.input(*add, 0) == node->outputs[0] ? 1 : 0;
  const ValueId bias = fuser.input(*add, other);
  const Tensor* vector = fuser.edit().constant(bias);
  if (vector == nullptr || vector->shape().rank() != 1 || vector->shape()[0] != matrix->shape()[1]) return;
  const std::array<size_t, 2> members{position, after};
  fuser.replace(
      members, after,
      fuser.make(kFusedDomain, "Linear", after, {fuser.input(*node, 0), fuser.input(*node, 1), bias}, add->outputs));
}

// ---- DequantizeLinear of a weight ----
// Folded, the weight would take four or eight times the memory; left to the run, it would be made anew each time.

bool has_quantized_type(const Tensor& weight) {
  const DType dtype = weight.dtype();
  return dtype == DType::int8 || dtype == DType::uint8 || dtype == DType::int4 || dtype == DType::uint4;
}

// Scales of one number, of columns, or of blocks of rows.
bool has_scales_of_columns(const Node& node, const Tensor& weight, const Tensor& scale) {
  int64_t axis = int_of(node, "axis", 1);
  if (axis < 0) axis += 2;
  const int64_t block_size = int_of(node, "block_size", 0);
  if (block_size > 0) {
    const int64_t blocks = (weight.shape()[0] + block_size - 1) / block_size;
    return axis == 0 && scale.shape() == Shape{blocks, weight.shape()[1]};
  }
  return scale.element_count() == 1 || (axis == 1 && scale.shape() == Shape{weight.shape()[1]});
}

void fuse_dequantized(Fuser& fuser, size_t position) {
  const Node* node = fuser.at(position, "MatMul");
  if (node == nullptr || fuser.dtype_of(node->outputs[0]) != DType::float32) return;
  const size_t before = fuser.producer(fuser.input(*node, 1), "DequantizeLinear");
  if (before == Fuser::kNowhere) return;
  const Node& dequantize = *fuser.at(before);
  const ValueId zero_value = fuser.input(dequantize, 2);
  const Tensor* weight = fuser.edit().constant(fuser.input(dequantize, 0));
  const Tensor* scale = fuser.edit().constant(fuser.input(dequantize, 1));
  const Tensor* zero = fuser.edit().constant(zero_value);
  if (weight == nullptr || scale == nullptr || (zero_value != kNoValue && zero == nullptr)) return;
  if (weight->shape().rank() != 2 || !has_quantized_type(*weight) || scale->dtype() != DType::float32) return;
  if (!has_scales_of_columns(dequantize, *weight, *scale)) return;
  if (zero != nullptr && zero->element_count() != scale->element_count()) return;
  std::vector<ValueId> inputs{fuser.input(*node, 0), fuser.input(dequantize, 0), fuser.input(dequantize, 1)};
  if (zero_value != kNoValue) inputs.push_back(zero_value);
  Node made = fuser.make(kFusedDomain, "DequantizedMatMul", position, std::move(inputs), node->outputs);
  made.attributes = {int_attribute("block_size", int_of(dequantize, "block_size", 0))};
  const std::array<size_t, 2> members{before, position};
  fuser.replace(members, position, std::move(made));
}

// ---- Activation and residual ----

bool is_linear(const Node& node) { return node.domain == kFusedDomain && node.op_type == "Linear"; }

void fuse_linear_activation(Fuser& fuser, size_t position) {
  const Node* node = fuser.at(position);
  if (node == nullptr) return;
  const bool is_gemm = is_standard(*node) && node->op_type == "Gemm" && node->inputs.size() <= 3;
  if ((!is_linear(*node) && !is_gemm) || find_attribute(*node, "activation") != nullptr) return;
  const size_t after = fuser.only_reader(node->outputs[0]);
  const auto activation = activation_at(fuser, after);
  if (!activation.has_value() || fuser.input(*fuser.at(after), 0) != node->outputs[0] ||
      (is_linear(*node) && node->inputs.size() > 3))
    return;
  if (is_gemm && (!activation->is_published || node->opset_version < 7)) return;
  std::vector<ValueId> inputs;
  for (size_t index = 0; index < node->inputs.size(); ++index) inputs.push_back(fuser.input(*node, index));
  std::vector<ValueId> outputs = fuser.at(after)->outputs;
  if (!is_gemm) outputs.push_back(node->outputs[0]);  // still there for whoever observes it
  Node made = fuser.make(is_gemm ? kMicrosoft : kFusedDomain, is_gemm ? "FusedGemm" : "Linear", after,
                         std::move(inputs), std::move(outputs));
  made.attributes = node->attributes;
  made.attributes.push_back(string_attribute("activation", activation->name));
  if (is_gemm && activation->name == "LeakyRelu") {
    made.attributes.push_back(float_attribute("activation_alpha", static_cast<double>(activation->parameters[0])));
  } else if (!activation->parameters.empty()) {
    made.attributes.push_back(floats_attribute("activation_params", activation->parameters));
  }
  const std::array<size_t, 2> members{position, after};
  fuser.replace(members, after, std::move(made));
}

// A product that a Linear may be made of: all of it but for a residual.
bool multiplies_constant_matrix(const Fuser& fuser, const Node& node) {
  if (is_linear(node)) return find_attribute(node, "activation") == nullptr;
  const Tensor* matrix =
      is_standard(node) && node.op_type == "MatMul" ? fuser.edit().constant(fuser.input(node, 1)) : nullptr;
  return matrix != nullptr && matrix->shape().rank() == 2 && is_float(fuser, node.outputs[0]);
}

// `node` is at `position`: a Linear, or a MatMul that may become one.
void add_residual_to(Fuser& fuser, size_t position, const Node* node) {
  if (node->inputs.size() > 3) return;
  const ValueId product = node->outputs[0];
  const size_t after = fuser.only_reader(product);
  const Node* add = after == Fuser::kNowhere ? nullptr : fuser.at(after, "Add");
  if (add == nullptr) return;
  const ValueId other = fuser.input(*add, fuser.input(*add, 0) == product ? 1 : 0);
  const auto dims = fuser.dims_of(product);
  if (other == product || !dims.has_value() || dims != fuser.dims_of(other)) return;
  for (const Dim& dim : *dims) {
    if (!dim.is_known() && dim.name.empty()) return;
  }
  std::vector<ValueId> inputs{fuser.input(*node, 0), fuser.input(*node, 1), fuser.input(*node, 2), other};
  std::vector<ValueId> outputs = add->outputs;
  outputs.insert(outputs.end(), node->outputs.begin() + 1, node->outputs.end());
  Node made = fuser.make(kFusedDomain, "Linear", after, std::move(inputs), std::move(outputs));
  made.attributes = node->attributes;
  const std::array<size_t, 2> members{position, after};
  fuser.replace(members, after, std::move(made));
}

void fuse_residual(Fuser& fuser, size_t position) {
  const Node* node = fuser.at(position);
  if (node != nullptr && is_linear(*node)) add_residual_to(fuser, position, node);
}

// A library adds the residual to its sums: the product is stored once, with it. This comes before the norm takes the
// sum, which would be a pass of its own there.
void fuse_product_residual(Fuser& fuser, size_t position) {
  const Node* node = fuser.at(position);
  if (node != nullptr && multiplies_constant_matrix(fuser, *node)) add_residual_to(fuser, position, node);
}

}  // namespace

void fuse_matmul_transposes(GraphEdit& edit, const RewriteContext&) { fuse_each(edit, fuse_transpose); }
void fuse_matmul_scales(GraphEdit& edit, const RewriteContext&) { fuse_each(edit, fuse_scale); }
void fuse_matmul_biases(GraphEdit& edit, const RewriteContext&) { fuse_each(edit, fuse_bias); }
void fuse_linear_activations(GraphEdit& edit, const RewriteContext&) { fuse_each(edit, fuse_linear_activation); }
void fuse_product_residuals(GraphEdit& edit, const RewriteContext&) { fuse_each(edit, fuse_product_residual); }
void fuse_linear_residuals(GraphEdit& edit, const RewriteContext&) { fuse_each(edit, fuse_residual); }

void fuse_dequantized_products(GraphEdit& edit, const RewriteContext& /*context*/) {
  fuse_each(edit, fuse_dequantized);
}

}  // namespace parallax::runtime
