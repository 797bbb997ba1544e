// SPDX-License-Identifier: Apache-2.0
// com.microsoft's matrix products and convolutions with something fused to them: FusedMatMul, TransposeMatMul,
// FusedMatMulActivation, FusedGemm, GemmFastGelu, FusedConv, NhwcConv, NhwcFusedConv, ConvTransposeWithDynamicPads.
// Each is the operator of ai.onnx that its page names, in double, and rounds once at the end.
#include <fmt/format.h>

#include "inspector/model/rule_errors.h"
#include "reference/ops/contrib/shared.h"
#include "reference/ops/families.h"
#include "reference/ops/inner_op.h"
#include "reference/ops/map.h"

namespace parallax::reference {
namespace {

constexpr int64_t kOpset = 13;  // of the parts

// Attributes of this node that the inner operator has too.
std::vector<Attribute> passed_on(const OpContext& op, std::initializer_list<std::string_view> names) {
  std::vector<Attribute> attributes;
  for (std::string_view name : names) {
    if (const Attribute* attribute = find_attribute(op.node(), name)) attributes.push_back(*attribute);
  }
  return attributes;
}

std::vector<Attribute> convolution_attributes(const OpContext& op) {
  return passed_on(op, {"auto_pad", "dilations", "group", "kernel_shape", "output_padding", "pads", "strides"});
}

// The activation named by the attribute `activation`, an operator of ai.onnx; none where there is no such attribute.
// Its parameters come as activation_alpha, _beta, _gamma, _axis.
Result<Tensor> activate(const OpContext& op, Tensor x) {
  const std::string name = op.find_string("activation").value_or("");
  if (name.empty()) return x;
  InnerOp inner{name, kOpset};
  for (const char* parameter : {"alpha", "beta", "gamma"}) {
    const auto value = op.find_float(fmt::format("activation_{}", parameter));
    if (value.has_value()) inner.attributes.push_back(float_attribute(parameter, *value));
  }
  if (const auto axis = op.find_int("activation_axis")) inner.attributes.push_back(int_attribute("axis", *axis));
  return run_inner(op, inner, {std::move(x)});
}

// The activation of the convolutions, whose parameters are one list in the order of the operator's own attributes.
Result<Tensor> activate_convolution(const OpContext& op, Tensor x) {
  const std::string name = op.find_string("activation").value_or("");
  const auto parameters = op.find_floats("activation_params").value_or(std::vector<double>{});
  if (name.empty()) return x;
  const auto names =
      name == "Clip" ? std::vector<std::string>{"min", "max"} : std::vector<std::string>{"alpha", "beta"};
  if (parameters.size() > names.size())
    return invalid_model(
        fmt::format("attribute 'activation_params' has {} entries; it must have at most {}, the parameters of {}",
                    parameters.size(), names.size(), name));
  InnerOp inner{name, name == "Clip" ? 6 : kOpset};  // Clip-6 has its limits as attributes
  for (size_t index = 0; index < parameters.size(); ++index) {
    inner.attributes.push_back(float_attribute(names[index], parameters[index]));
  }
  return run_inner(op, inner, {std::move(x)});
}

// A matrix or batch of them as FusedMatMul sees it: with `batch` its first axis becomes the last but one, which makes
// [S, B, H] into [B, S, H]; then with `matrix` the last two are swapped. Vectors stay.
Result<Tensor> arranged(const OpContext& op, size_t index, bool matrix, bool batch) {
  const Tensor& tensor = op.input(index);
  const size_t rank = tensor.shape().rank();
  if (rank < 2 || (!matrix && !batch)) return tensor;
  std::vector<int64_t> perm;
  for (size_t axis = 0; axis < rank; ++axis) perm.push_back(static_cast<int64_t>(axis));
  if (batch) std::rotate(perm.begin(), perm.begin() + 1, perm.end() - 1);
  if (matrix) std::swap(perm[rank - 1], perm[rank - 2]);
  return transpose(op, tensor, perm);
}

Result<Tensor> fused_matmul(const OpContext& op) {
  const auto flag = [&](std::string_view name) { return op.find_int(name).value_or(0) != 0; };
  const Tensor a = PX_TRY(arranged(op, 0, flag("transA"), flag("transBatchA")));
  const Tensor b = PX_TRY(arranged(op, 1, flag("transB"), flag("transBatchB")));
  Tensor product = PX_TRY(run_inner(op, {"MatMul", kOpset}, {a, b}));
  const double alpha = op.float_attribute("alpha");
  for (double& value : product.mutable_as<double>()) value *= alpha;
  return product;
}

// X (channels last) convolved, the result channels last as well; Z is added before the activation.
Status nhwc_convolution(OpContext& op) {
  const size_t rank = op.input(0).shape().rank();
  if (rank < 3) return wrong_input(op, 0, "have rank 3 or more: [N,D1,...,C]");
  std::vector<Value> inputs{PX_TRY(transpose(op, op.input(0), channels_first(rank))), op.value(1)};
  if (op.has_input(2)) inputs.push_back(op.value(2));
  Tensor y = PX_TRY(run_inner(op, {"Conv", kOpset, convolution_attributes(op)}, std::move(inputs)));
  y = PX_TRY(transpose(op, y, channels_last(rank)));
  if (op.has_input(3)) y = PX_TRY(run_inner(op, {"Add", kOpset}, {y, op.value(3)}));
  return set_rounded(op, 0, op.input(0).dtype(), PX_TRY(activate_convolution(op, y)));
}

// ContribOperators.md, com.microsoft.FusedMatMul (and its older name TransposeMatMul): alpha * A' * B'.
Status op_contrib_fused_matmul(OpContext& op) {
  return set_rounded(op, 0, op.input(0).dtype(), PX_TRY(fused_matmul(op)));
}

// com.microsoft.FusedMatMulActivation
Status op_contrib_fused_matmul_activation(OpContext& op) {
  const Tensor product = PX_TRY(fused_matmul(op));
  return set_rounded(op, 0, op.input(0).dtype(), PX_TRY(activate(op, product)));
}

// com.microsoft.FusedGemm
Status op_contrib_fused_gemm(OpContext& op) {
  std::vector<Value> inputs{op.value(0), op.value(1)};
  if (op.has_input(2)) inputs.push_back(op.value(2));
  const InnerOp gemm{"Gemm", kOpset, passed_on(op, {"alpha", "beta", "transA", "transB"})};
  const Tensor y = PX_TRY(run_inner(op, gemm, std::move(inputs)));
  return set_rounded(op, 0, op.input(0).dtype(), PX_TRY(activate(op, y)));
}

// com.microsoft.GemmFastGelu: FastGelu(X * W + bias).
Status op_contrib_gemm_fast_gelu(OpContext& op) {
  Tensor y = PX_TRY(run_inner(op, {"MatMul", kOpset}, {op.value(0), op.value(1)}));
  if (op.has_input(2)) {
    PX_TRY(expect_shape(op, 2, Shape{y.shape().rank() == 0 ? 1 : y.shape()[y.shape().rank() - 1]}));
    y = PX_TRY(run_inner(op, {"Add", kOpset}, {y, op.value(2)}));
  }
  for (double& value : y.mutable_as<double>()) value = gelu_tanh(value);
  return set_rounded(op, 0, op.input(0).dtype(), y);
}

// com.microsoft.FusedConv: activation(Conv(X, W, B) + Z); the page does not name Z, onnxruntime adds it before the
// activation.
Status op_contrib_fused_conv(OpContext& op) {
  std::vector<Value> inputs{op.value(0), op.value(1)};
  if (op.has_input(2)) inputs.push_back(op.value(2));
  Tensor y = PX_TRY(run_inner(op, {"Conv", kOpset, convolution_attributes(op)}, std::move(inputs)));
  if (op.has_input(3)) {
    PX_TRY(expect_shape(op, 3, y.shape()));
    y = PX_TRY(run_inner(op, {"Add", kOpset}, {y, op.value(3)}));
  }
  return set_rounded(op, 0, op.input(0).dtype(), PX_TRY(activate_convolution(op, y)));
}

// com.microsoft.NhwcConv and NhwcFusedConv: X and Y are [N, D1, ..., C], W is [M, C / group, k1, ...] as for Conv (so
// the page, and the kernels).
Status op_contrib_nhwc_conv(OpContext& op) { return nhwc_convolution(op); }

// com.microsoft.ConvTransposeWithDynamicPads: ConvTranspose whose pads are an input.
Status op_contrib_conv_transpose_with_dynamic_pads(OpContext& op) {
  std::vector<Attribute> attributes = convolution_attributes(op);
  if (op.has_input(2)) attributes.push_back(ints_attribute("pads", PX_TRY(op.int64s_of_input(2))));
  std::vector<Value> inputs{op.value(0), op.value(1)};
  if (op.has_input(3)) inputs.push_back(op.value(3));
  const Tensor y = PX_TRY(run_inner(op, {"ConvTranspose", kOpset, std::move(attributes)}, std::move(inputs)));
  return set_rounded(op, 0, op.input(0).dtype(), y);
}

constexpr OpRow kContribFusedRows[] = {
    {"ConvTransposeWithDynamicPads", kMicrosoft, 1, 1, op_contrib_conv_transpose_with_dynamic_pads},
    {"FusedConv", kMicrosoft, 1, 1, op_contrib_fused_conv},
    {"FusedGemm", kMicrosoft, 1, 1, op_contrib_fused_gemm},
    {"FusedMatMul", kMicrosoft, 1, 1, op_contrib_fused_matmul},
    {"FusedMatMulActivation", kMicrosoft, 1, 1, op_contrib_fused_matmul_activation},
    {"GemmFastGelu", kMicrosoft, 1, 1, op_contrib_gemm_fast_gelu},
    {"NhwcConv", kMicrosoft, 1, 1, op_contrib_nhwc_conv},
    {"NhwcFusedConv", kMicrosoft, 1, 1, op_contrib_nhwc_conv},
    {"TransposeMatMul", kMicrosoft, 1, 1, op_contrib_fused_matmul},
};

}  // namespace

OpRows contrib_fused_rows() { return kContribFusedRows; }

}  // namespace parallax::reference
