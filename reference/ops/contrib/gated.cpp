// SPDX-License-Identifier: Apache-2.0
// com.microsoft's gates and the projections after them: GatedAdd, GatedRMSNorm, BranchwiseRMSNorm, ScaledSiLU,
// MatMulNBitsMlp, MatMulNBitsQkv.
#include <cmath>

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"
#include "reference/ops/contrib/shared.h"
#include "reference/ops/families.h"
#include "reference/ops/inner_op.h"
#include "reference/ops/map.h"

namespace parallax::reference {
namespace {

struct Function {
  double (*apply)(double);
};

double silu(double x) { return x * sigmoid(x); }
double relu(double x) { return std::max(x, 0.0); }

Result<Function> activation_of(const OpContext& op) {
  const std::string name = op.string_attribute("activation");
  if (name == "silu" || name == "swish") return Function{silu};
  if (name == "sigmoid") return Function{[](double x) { return sigmoid(x); }};
  if (name == "relu") return Function{relu};
  if (name == "gelu") return Function{[](double x) { return gelu_exact(x); }};
  return unsupported(
      fmt::format("attribute 'activation' is '{}'; relu, gelu, silu, swish and sigmoid have functions here", name));
}

// Runs of `size` elements divided by the root of their mean square.
void normalize_runs(std::span<double> x, int64_t size, double epsilon) {
  const auto count = static_cast<size_t>(size);
  for (size_t begin = 0; count > 0 && begin < x.size(); begin += count) {
    double squares = 0;
    for (double value : x.subspan(begin, count)) squares += value * value;
    const double root = std::sqrt(squares / static_cast<double>(size) + epsilon);
    for (double& value : x.subspan(begin, count)) value /= root;
  }
}

// The input of the projections: A, or A + skip, normalized where there is a norm_scale. `sum_output` takes A + skip.
Result<Tensor> projected_input(OpContext& op, size_t sum_output) {
  Tensor a = PX_TRY(widen(op.input(0)));
  if (op.has_input(1)) {
    a = PX_TRY(run_inner(op, {"Add", 13}, {a, op.value(1)}));
    PX_TRY(set_rounded(op, sum_output, op.input(0).dtype(), a));
  }
  if (!op.has_input(2)) return a;
  const InnerOp norm{"RMSNormalization", 23, {float_attribute("epsilon", op.float_attribute("epsilon"))}};
  return run_inner(op, norm, {a, op.value(2)});
}

// MatMulNBits of `a` with the weights, scales and bias at inputs first, first + 1, first + 2.
Result<Tensor> project(const OpContext& op, const Tensor& a, size_t first, int64_t columns) {
  InnerOp matmul{"MatMulNBits", 1, {int_attribute("N", columns)}, "com.microsoft"};
  for (const char* name : {"K", "bits", "block_size"}) {
    matmul.attributes.push_back(int_attribute(name, op.int_attribute(name)));
  }
  std::vector<Value> inputs{a, op.value(first), op.value(first + 1)};
  if (op.has_input(first + 2)) inputs.insert(inputs.end(), {Value(), Value(), op.value(first + 2)});
  return run_inner(op, matmul, std::move(inputs));
}

// ContribOperators.md, com.microsoft.GatedAdd: X + Y * gate, the product rounded before the sum, as the page has it.
Status op_contrib_gated_add(OpContext& op) {
  const Shape& shape = op.input(0).shape();
  PX_TRY(expect_shape(op, 1, shape));
  if (shape.rank() == 0) return wrong_input(op, 0, "have rank 1 or more");
  const Shape rows = PX_TRY(with_dim(shape, shape.rank() - 1, 1));
  PX_TRY(expect_shape(op, 2, rows));
  const DType carried = op.carried(op.input(0).dtype());
  const Numbers<double> x(op.input(0)), y(op.input(1));
  const std::vector<double> gate = PX_TRY(broadcast_input(op, 2, shape));
  std::vector<double> results;
  for (int64_t at = 0; at < x.size(); ++at) {
    results.push_back(x[at] + round_to_dtype(carried, y[at] * gate[static_cast<size_t>(at)]));
  }
  return op.set_output(0, op.input(0).dtype(), shape, std::span<const double>(results));
}

// com.microsoft.GatedRMSNorm: each run of C elements normalized and scaled, times the activated gate.
Status op_contrib_gated_rms_norm(OpContext& op) {
  const Shape& shape = op.input(0).shape();
  const Shape& scale = op.input(1).shape();
  PX_TRY(expect_shape(op, 2, shape));
  if (scale.rank() != 1 || scale[0] == 0 || shape.rank() == 0 || shape[shape.rank() - 1] % scale[0] != 0)
    return wrong_input(op, 0, "have a last axis of a multiple of the elements of scale, {} of rank 1",
                       scale.to_string());
  const Function activate = PX_TRY(activation_of(op));
  std::vector<double> x = PX_TRY(broadcast_input(op, 0, shape));
  normalize_runs(x, scale[0], op.float_attribute("epsilon"));
  const Numbers<double> scales(op.input(1)), gate(op.input(2));
  for (size_t at = 0; at < x.size(); ++at) {
    const auto position = static_cast<int64_t>(at);
    x[at] *= scales[position % scale[0]] * activate.apply(gate[position]);
  }
  return op.set_output(0, op.input(0).dtype(), shape, std::span<const double>(x));
}

// com.microsoft.BranchwiseRMSNorm: each branch (..., C, H), or of (..., C * H) with num_branches, by itself.
Status op_contrib_branchwise_rms_norm(OpContext& op) {
  const Shape& shape = op.input(0).shape();
  const int64_t branches = op.int_attribute("num_branches");
  if (shape.rank() == 0 || branches < 0 || (branches == 0 && shape.rank() < 2))
    return wrong_attribute("num_branches", branches, "be 0 or more, for X {} of rank 1 or more, 2 where it is 0",
                           shape.to_string());
  const int64_t last = shape[shape.rank() - 1];
  const int64_t count = branches > 0 ? branches : shape[shape.rank() - 2];
  if (branches > 0 && last % branches != 0)
    return wrong_attribute("num_branches", branches, "divide the last axis of X, {}", last);
  const int64_t size = branches > 0 ? last / branches : last;
  std::vector<double> x = PX_TRY(broadcast_input(op, 0, shape));
  normalize_runs(x, size, op.float_attribute("epsilon"));
  if (op.has_input(1)) {
    const Numbers<double> scales(op.input(1));
    if (scales.size() == 0 || (scales.size() != size && scales.size() != size * count))
      return wrong_input(op, 1, "have {} or {} elements: {} for each branch", size, size * count, size);
    for (size_t at = 0; at < x.size(); ++at) x[at] *= scales[static_cast<int64_t>(at) % scales.size()];
  }
  return op.set_output(0, op.input(0).dtype(), shape, std::span<const double>(x));
}

// com.microsoft.ScaledSiLU, with the roundings its page lists: of the scaled input, and of the sigmoid.
Status op_contrib_scaled_silu(OpContext& op) {
  const DType carried = op.carried(op.input(0).dtype());
  const double scale = op.has_input(1) ? PX_TRY(op.double_of_input(1)) : op.float_attribute("alpha");
  return map_floats(op, [&](double x) {
    const double z = round_to_dtype(carried, scale * x);
    return z * round_to_dtype(carried, sigmoid(z));
  });
}

// com.microsoft.MatMulNBitsMlp: activation(gate) * up, both projections of the same input.
Status op_contrib_matmul_nbits_mlp(OpContext& op) {
  const Function activate = PX_TRY(activation_of(op));
  const Tensor a = PX_TRY(projected_input(op, 1));
  const int64_t columns = op.int_attribute("N");
  Tensor gate = PX_TRY(project(op, a, 3, columns));
  const Tensor up = PX_TRY(project(op, a, 6, columns));
  const auto gates = gate.mutable_as<double>();
  for (size_t at = 0; at < gates.size(); ++at) gates[at] = activate.apply(gates[at]) * up.as<double>()[at];
  return set_rounded(op, 0, op.input(0).dtype(), gate);
}

// com.microsoft.MatMulNBitsQkv: three projections of the normalized input.
Status op_contrib_matmul_nbits_qkv(OpContext& op) {
  const Tensor a = PX_TRY(projected_input(op, 3));
  const int64_t narrow = op.int_attribute("Nkv");
  const int64_t columns[] = {op.int_attribute("Nq"), narrow, narrow};
  for (size_t part = 0; part < 3; ++part) {
    const Tensor projection = PX_TRY(project(op, a, 3 + 3 * part, columns[part]));
    PX_TRY(set_rounded(op, part, op.input(0).dtype(), projection));
  }
  return {};
}

constexpr OpRow kContribGatedRows[] = {
    {"BranchwiseRMSNorm", kMicrosoft, 1, 1, op_contrib_branchwise_rms_norm},
    {"GatedAdd", kMicrosoft, 1, 1, op_contrib_gated_add},
    {"GatedRMSNorm", kMicrosoft, 1, 1, op_contrib_gated_rms_norm},
    {"MatMulNBitsMlp", kMicrosoft, 1, 1, op_contrib_matmul_nbits_mlp},
    {"MatMulNBitsQkv", kMicrosoft, 1, 1, op_contrib_matmul_nbits_qkv},
    {"ScaledSiLU", kMicrosoft, 1, 1, op_contrib_scaled_silu},
};

}  // namespace

OpRows contrib_gated_rows() { return kContribGatedRows; }

}  // namespace parallax::reference
