// SPDX-License-Identifier: Apache-2.0
// Products and convolutions of com.microsoft whose parts run by themselves: NhwcConv, NhwcFusedConv,
// ConvTransposeWithDynamicPads; FusedConv, FusedGemm and FusedMatMulActivation where no kernel has all of them.
#include <algorithm>
#include <array>
#include <iterator>

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"
#include "runtime/ops/contrib_families.h"
#include "runtime/ops/contributed.h"
#include "runtime/ops/inner_op.h"
#include "runtime/ops/on_gpu.h"
#include "runtime/ops/pointwise/activation_attributes.h"

namespace parallax::runtime {
namespace {

using Context = ChainContext;

// ---- Activations: operators of ai.onnx, with the parameters they take, in order ----

struct InnerActivation {
  std::string_view name;
  int64_t version;
  std::array<const char*, 2> parameters = {};
};
constexpr InnerActivation kInnerActivations[] = {
    {"Celu", 12, {"alpha"}},
    {"Clip", 6, {"min", "max"}},
    {"Elu", 6, {"alpha"}},
    {"Gelu", 20},
    {"HardSigmoid", 6, {"alpha", "beta"}},
    {"HardSwish", 14},
    {"Hardmax", 13, {"axis"}},
    {"LeakyRelu", 16, {"alpha"}},
    {"LogSoftmax", 13, {"axis"}},
    {"Relu", 13},
    {"Selu", 6, {"alpha", "gamma"}},
    {"Sigmoid", 13},
    {"Softmax", 13, {"axis"}},
    {"Softplus", 1},
    {"Softsign", 1},
    {"Tanh", 13},
    {"ThresholdedRelu", 10, {"alpha"}},
};

// The operator named by 'activation'; null: none.
Result<const InnerActivation*> named_activation(const OpCall& op) {
  const std::string name = op.find_text("activation").value_or("");
  if (name.empty()) return static_cast<const InnerActivation*>(nullptr);
  const auto* found = std::find_if(std::begin(kInnerActivations), std::end(kInnerActivations),
                                   [&](const InnerActivation& each) { return each.name == name; });
  if (found == std::end(kInnerActivations))
    return wrong_attribute("activation", name,
                           "be the name of an elementwise activation, Softmax, LogSoftmax or Hardmax");
  return found;
}

// Parameters are one list for convolutions, attributes of their own for products.
Result<Tensor> activated_conv(Context& op, const Tensor& y) {
  const InnerActivation* activation = PX_TRY(named_activation(op));
  if (activation == nullptr) return y;
  InnerOp inner{activation->name, activation->version};
  const auto values = op.find_reals("activation_params").value_or(std::vector<float>{});
  for (size_t i = 0; i < values.size(); ++i) {
    const char* name = i < activation->parameters.size() ? activation->parameters.at(i) : nullptr;
    if (name == nullptr)
      return wrong_length("attribute 'activation_params'", values.size(), "have at most {}, the parameters of {}", i,
                          inner.op);
    if (std::string_view(name) == "axis") {
      inner.attributes.push_back(int_attribute(name, static_cast<int64_t>(values[i])));
    } else {
      inner.attributes.push_back(float_attribute(name, static_cast<double>(values[i])));
    }
  }
  return run_inner(op, inner, {y});
}

Result<Tensor> activated_product(Context& op, const Tensor& y) {
  const InnerActivation* activation = PX_TRY(named_activation(op));
  if (activation == nullptr) return y;
  InnerOp inner{activation->name, activation->version};
  for (const char* name : activation->parameters) {
    if (name == nullptr) continue;
    const std::string given = fmt::format("activation_{}", name);
    if (const auto axis = op.find_integer(given)) inner.attributes.push_back(int_attribute(name, *axis));
    if (const auto real = op.find_real(given)) inner.attributes.push_back(float_attribute(name, *real));
  }
  return run_inner(op, inner, {y});
}

// ---- Convolutions ----

Result<Tensor> convolved(Context& op, const Tensor& x) {
  std::vector<Value> inputs{x, op.value(1)};
  if (op.has_input(2)) inputs.push_back(op.value(2));
  const InnerOp inner{"Conv", 11, passed_on(op, {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"})};
  return run_inner(op, inner, inputs);
}

Status finish_conv(Context& op, Tensor y) {
  if (op.has_input(3)) {
    if (!(op.input(3).shape() == y.shape()))
      return wrong_input(op, 3, "have the shape of the result, {}", y.shape().to_string());
    y = PX_TRY(inner_binary(op, "Add", y, op.input(3)));
  }
  op.set_output(0, PX_TRY(activated_conv(op, y)));
  return {};
}

Status fused_conv_by_parts(Context& op) {
  if (op.input(1).dtype() != op.input(0).dtype())
    return wrong_input(op, 1, "have the element type of X, {}", name_of(op.input(0).dtype()));
  return finish_conv(op, PX_TRY(convolved(op, op.input(0))));
}

// X and Y are [N, D1, ..., C]; W as for Conv.
Status nhwc_conv(Context& op) {
  const int64_t rank = rank_of(op.input(0).shape());
  if (rank < 3) return wrong_input(op, 0, "have rank 3 or more: [N,D1,...,C]");
  std::vector<int64_t> first{0, rank - 1}, last{0};
  for (int64_t axis = 1; axis + 1 < rank; ++axis) first.push_back(axis);
  for (int64_t axis = 2; axis < rank; ++axis) last.push_back(axis);
  last.push_back(1);
  const Tensor x = PX_TRY(inner_transpose(op, op.input(0), first));
  const Tensor y = PX_TRY(convolved(op, x));
  return finish_conv(op, PX_TRY(inner_transpose(op, y, last)));
}

// ConvTranspose whose pads are input 2.
Status conv_transpose_with_pads(Context& op) {
  std::vector<Attribute> attributes =
      passed_on(op, {"auto_pad", "dilations", "group", "kernel_shape", "output_padding", "strides"});
  if (op.has_input(2)) {
    const Ints pads = PX_TRY(op.integers_of_input(2));
    attributes.push_back(ints_attribute("pads", {pads.begin(), pads.end()}));
  }
  std::vector<Value> inputs{op.value(0), op.value(1)};
  if (op.has_input(3)) inputs.push_back(op.value(3));
  op.set_output(0, PX_TRY(run_inner(op, {"ConvTranspose", 11, std::move(attributes)}, inputs)));
  return {};
}

// ---- Products ----

Status fused_gemm_by_parts(Context& op) {
  const InnerOp inner{"Gemm", 13, passed_on(op, {"alpha", "beta", "transA", "transB"})};
  std::vector<Value> inputs{op.value(0), op.value(1)};
  if (op.has_input(2)) inputs.push_back(op.value(2));
  const Tensor y = PX_TRY(run_inner(op, inner, inputs));
  op.set_output(0, PX_TRY(activated_product(op, y)));
  return {};
}

Status fused_matmul_by_parts(Context& op) {
  const InnerOp inner{"FusedMatMul", 1, passed_on(op, {"alpha", "transA", "transB", "transBatchA", "transBatchB"}),
                      "com.microsoft"};
  const Tensor y = PX_TRY(run_inner(op, inner, {op.value(0), op.value(1)}));
  op.set_output(0, PX_TRY(activated_product(op, y)));
  return {};
}

Status matmul_of_moved_batches(Context& op) {
  const Tensor a = PX_TRY(inner_batch_moved(op, 0, "transBatchA"));
  const Tensor b = PX_TRY(inner_batch_moved(op, 1, "transBatchB"));
  const InnerOp inner{"FusedMatMul", 1, passed_on(op, {"alpha", "transA", "transB"}), "com.microsoft"};
  const Tensor y = PX_TRY(run_inner(op, inner, {a, b}));
  op.set_output(0, PX_TRY(activated_product(op, y)));
  return {};
}

// The host's kernel moves batches itself.
bool moves_batches_by_parts(const Node& node) {
  if (!GpuDevice<CompiledDevice>) return false;
  for (const std::string_view name : {"transBatchA", "transBatchB"}) {
    const Attribute* attribute = find_attribute(node, name);
    const auto* flag = attribute == nullptr ? nullptr : std::get_if<int64_t>(&attribute->value);
    if (flag != nullptr && *flag != 0) return true;
  }
  return false;
}

// The host has a kernel for the activations that it knows.
bool runs_conv_by_parts(const Node& node) { return GpuDevice<CompiledDevice> || has_other_activation(node); }

constexpr KernelRow<CompiledDevice> kContribActivatedRows[] = {
    reads_on_host({2}, contributed_row("ConvTransposeWithDynamicPads", kFloats, conv_transpose_with_pads)),
    where<runs_conv_by_parts>(contributed_row("FusedConv", kFloats, fused_conv_by_parts)),
    contributed_row("FusedGemm", kInts, fused_gemm_by_parts),
    where<has_other_activation>(contributed_row("FusedGemm", kFloats, fused_gemm_by_parts)),
    where<moves_batches_by_parts>(contributed_row("FusedMatMul", kFloats, matmul_of_moved_batches)),
    where<moves_batches_by_parts>(contributed_row("FusedMatMulActivation", kFloats, matmul_of_moved_batches)),
    where<has_other_activation>(contributed_row("FusedMatMulActivation", kFloats, fused_matmul_by_parts)),
    contributed_row("NhwcConv", kFloats, nhwc_conv),
    contributed_row("NhwcFusedConv", kFloats, nhwc_conv),
    where<moves_batches_by_parts>(contributed_row("TransposeMatMul", kFloats, matmul_of_moved_batches)),
};

}  // namespace

template <>
Rows<CompiledDevice> contrib_activated_rows() {
  return kContribActivatedRows;
}

}  // namespace parallax::runtime
