// SPDX-License-Identifier: Apache-2.0
// com.microsoft's gates and the projections after them: GatedAdd, GatedRMSNorm, BranchwiseRMSNorm, ScaledSiLU,
// MatMulNBitsMlp, MatMulNBitsQkv, as chains of the operators of ai.onnx. Definitions: ContribOperators.md.
#include "inspector/model/rule_errors.h"
#include "runtime/ops/contrib_families.h"
#include "runtime/ops/contributed.h"
#include "runtime/ops/inner_op.h"

namespace parallax::runtime {
namespace {

using Context = ChainContext;

Status set_gated(Context& op, const Tensor& y) {
  op.set_output(0, PX_TRY(inner_cast(op, y, op.input(0).dtype())));
  return {};
}

// The function named by 'activation' of a gate.
Result<Tensor> activated_gate(Context& op, const Tensor& gate) {
  const std::string name = op.text("activation");
  if (name == "relu") return run_inner(op, {"Relu", 14}, {gate});
  if (name == "gelu") return run_inner(op, {"Gelu", 20}, {gate});
  if (name != "silu" && name != "swish" && name != "sigmoid")
    return wrong_attribute("activation", name, "be relu, gelu, silu, swish or sigmoid");
  const Tensor share = PX_TRY(run_inner(op, {"Sigmoid", 13}, {gate}));
  return name == "sigmoid" ? Result<Tensor>(share) : inner_binary(op, "Mul", gate, share);
}

// X + Y * gate, the gate one number a row.
Status gated_add(Context& op) {
  const Tensor gated = PX_TRY(inner_binary(op, "Mul", op.input(1), op.input(2)));
  Tensor y = PX_TRY(inner_binary(op, "Add", op.input(0), gated));
  if (!(y.shape() == op.input(0).shape()))
    return wrong_input(op, 1, "broadcast with the gate, {}, to the shape of X, {}", op.input(2).shape().to_string(),
                       op.input(0).shape().to_string());
  op.set_output(0, std::move(y));
  return {};
}

// z * sigmoid(z), z = scale * x.
Status scaled_silu(Context& op) {
  const double scale = op.has_input(1) ? PX_TRY(op.real_of_input(1)) : op.real("alpha");
  const Tensor factor = PX_TRY(inner_cast(op, Tensor::scalar<double>(scale), op.input(0).dtype()));
  const Tensor z = PX_TRY(inner_binary(op, "Mul", op.input(0), factor));
  const Tensor gate = PX_TRY(run_inner(op, {"Sigmoid", 13}, {z}));
  Tensor y = PX_TRY(inner_binary(op, "Mul", z, gate));
  op.set_output(0, std::move(y));
  return {};
}

// Each run of as many elements as the scale has, normalized and scaled, times the activated gate.
Status gated_rms_norm(Context& op) {
  const Shape& shape = op.input(0).shape();
  const int64_t size = op.input(1).element_count();
  if (!(op.input(2).shape() == shape) || op.input(1).shape().rank() != 1 || size == 0 || shape.rank() == 0 ||
      dim_of(shape, rank_of(shape) - 1) % size != 0)
    return wrong_input(op, 0, "have the shape of gate, {}, and a last axis of a multiple of scale, {}, of rank 1",
                       op.input(2).shape().to_string(), op.input(1).shape().to_string());
  const Tensor x = PX_TRY(inner_cast(op, op.input(0), DType::float32));
  const Tensor scale = PX_TRY(inner_cast(op, op.input(1), DType::float32));
  const Tensor gate = PX_TRY(inner_cast(op, op.input(2), DType::float32));
  const Tensor runs = x.reshaped(Shape{shape.element_count() / size, size});
  const InnerOp norm{"RMSNormalization", 23, {float_attribute("epsilon", op.real("epsilon"))}};
  const Tensor normal = PX_TRY(run_inner(op, norm, {runs, scale}));
  const Tensor open = PX_TRY(activated_gate(op, gate));
  return set_gated(op, PX_TRY(inner_binary(op, "Mul", normal.reshaped(shape), open)));
}

// Each branch of (..., branches, size), or of (..., branches * size) with num_branches, by itself.
Status branchwise_rms_norm(Context& op) {
  const Shape& shape = op.input(0).shape();
  const Ints dims(shape);
  const int64_t branches = op.integer("num_branches");
  if (dims.empty() || branches < 0 || (branches == 0 && dims.size() < 2) ||
      (branches > 0 && dims.back() % branches != 0))
    return wrong_attribute("num_branches", branches,
                           "be 0 or more and divide the last axis of X {}, which needs rank 2 where it is 0",
                           shape.to_string());
  const int64_t count = branches > 0 ? branches : dims[dims.size() - 2];
  const int64_t size = branches > 0 ? dims.back() / branches : dims.back();
  const int64_t given = op.has_input(1) ? op.input(1).element_count() : size;
  if (given == 0 || (given != size && given != size * count))
    return wrong_input(op, 1, "have {} or {} elements: {} for each branch", size, size * count, size);
  if (shape.element_count() == 0) return set_gated(op, op.input(0));
  const Tensor x = PX_TRY(inner_cast(op, op.input(0), DType::float32));
  const std::vector<float> ones(static_cast<size_t>(size), 1.0F);
  const InnerOp norm{"RMSNormalization", 23, {float_attribute("epsilon", op.real("epsilon"))}};
  const Tensor runs = x.reshaped(Shape{shape.element_count() / (size * count), count, size});
  Tensor y = PX_TRY(run_inner(op, norm, {runs, Tensor::vector<float>(ones)}));
  if (op.has_input(1)) {
    const Tensor scale = PX_TRY(inner_cast(op, op.input(1), DType::float32));
    y = PX_TRY(inner_binary(op, "Mul", y, scale.reshaped(Shape{given / size, size})));
  }
  return set_gated(op, y.reshaped(shape));
}

// ---- Quantized projections of one input ----

// The input of the projections: A, or A + skip, normalized where there is a norm_scale. `sum_output` takes A + skip.
Result<Tensor> projected_input(Context& op, int64_t sum_output) {
  Tensor a = PX_TRY(inner_cast(op, op.input(0), DType::float32));
  if (op.has_input(1)) {
    const Tensor skip = PX_TRY(inner_cast(op, op.input(1), DType::float32));
    a = PX_TRY(inner_binary(op, "Add", a, skip));
    if (op.wants_output(sum_output)) {
      Tensor sum = PX_TRY(inner_cast(op, a, op.input(0).dtype()));
      op.set_output(sum_output, std::move(sum));
    }
  }
  if (!op.has_input(2)) return a;
  const Tensor scale = PX_TRY(inner_cast(op, op.input(2), DType::float32));
  return run_inner(op, {"RMSNormalization", 23, {float_attribute("epsilon", op.real("epsilon"))}}, {a, scale});
}

// MatMulNBits of `a` with the weights, scales and bias at inputs first, first + 1, first + 2.
Result<Tensor> project(Context& op, const Tensor& a, int64_t first, int64_t columns) {
  InnerOp matmul{"MatMulNBits", 1, passed_on(op, {"K", "bits", "block_size"}), "com.microsoft"};
  matmul.attributes.push_back(int_attribute("N", columns));
  const Tensor scales = PX_TRY(inner_cast(op, op.input(first + 1), DType::float32));
  std::vector<Value> inputs{a, op.value(first), scales};
  if (op.has_input(first + 2)) {
    const Tensor bias = PX_TRY(inner_cast(op, op.input(first + 2), DType::float32));
    inputs.insert(inputs.end(), {Value(), Value(), bias});
  }
  return run_inner(op, matmul, inputs);
}

// activation(gate) * up
Status quantized_mlp(Context& op) {
  const Tensor a = PX_TRY(projected_input(op, 1));
  const int64_t columns = op.integer("N");
  const Tensor projected = PX_TRY(project(op, a, 3, columns));
  const Tensor gate = PX_TRY(activated_gate(op, projected));
  const Tensor up = PX_TRY(project(op, a, 6, columns));
  return set_gated(op, PX_TRY(inner_binary(op, "Mul", gate, up)));
}

Status quantized_qkv(Context& op) {
  const Tensor a = PX_TRY(projected_input(op, 3));
  const int64_t narrow = op.integer("Nkv");
  for (const int64_t part : {0, 1, 2}) {
    const Tensor projection = PX_TRY(project(op, a, 3 + 3 * part, part == 0 ? op.integer("Nq") : narrow));
    if (!op.wants_output(part)) continue;
    Tensor y = PX_TRY(inner_cast(op, projection, op.input(0).dtype()));
    op.set_output(part, std::move(y));
  }
  return {};
}

constexpr KernelRow<CompiledDevice> kContribGatedRows[] = {
    contributed_row("BranchwiseRMSNorm", kNarrowFloats, branchwise_rms_norm),
    contributed_row("GatedAdd", kFloats, gated_add),
    contributed_row("GatedRMSNorm", kNarrowFloats, gated_rms_norm),
    contributed_row("MatMulNBitsMlp", kNarrowFloats, quantized_mlp),
    contributed_row("MatMulNBitsQkv", kNarrowFloats, quantized_qkv),
    reads_on_host({1}, contributed_row("ScaledSiLU", kFloats, scaled_silu)),
};

}  // namespace

template <>
Rows<CompiledDevice> contrib_gated_rows() {
  return kContribGatedRows;
}

}  // namespace parallax::runtime
