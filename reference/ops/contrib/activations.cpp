// SPDX-License-Identifier: Apache-2.0
// com.microsoft's activations, with what is fused in front of them: Gelu, BiasGelu, FastGelu, QuickGelu, BiasSplitGelu,
// and the sums and softmax with a bias: BiasAdd, BiasSoftmax, BiasDropout.
#include "inspector/model/rule_errors.h"
#include "reference/ops/contrib/shared.h"
#include "reference/ops/families.h"
#include "reference/ops/inner_op.h"
#include "reference/ops/map.h"

namespace parallax::reference {
namespace {

// y = f(x + bias), the bias being input 1 where it is given.
template <class F>
Status map_biased(OpContext& op, const F& f) {
  const DType dtype = op.input(0).dtype();
  if (!op.has_input(1)) return map_floats(op, f);
  const Shape& bias = op.input(1).shape();
  const Shape& x = op.input(0).shape();
  if (x.rank() == 0 || bias.rank() != 1 || bias[0] != x[x.rank() - 1])
    return wrong_input(op, 1, "have one element for each column of X, {}", x.to_string());
  return map_two<double>(op, op.input(0), op.input(1), dtype, [&](double value, double add) { return f(value + add); });
}

// ContribOperators.md, com.microsoft.Gelu: x * Phi(x) with the error function.
Status op_contrib_gelu(OpContext& op) { return map_floats(op, gelu_exact); }

// com.microsoft.BiasGelu: Gelu(A + B).
Status op_contrib_bias_gelu(OpContext& op) { return map_biased(op, gelu_exact); }

// com.microsoft.FastGelu: the tanh approximation of Gelu(X + bias).
Status op_contrib_fast_gelu(OpContext& op) { return map_biased(op, gelu_tanh); }

// com.microsoft.QuickGelu: x * sigmoid(alpha * x).
Status op_contrib_quick_gelu(OpContext& op) {
  const double alpha = op.float_attribute("alpha");
  return map_floats(op, [&](double x) { return x * sigmoid(alpha * x); });
}

// com.microsoft.BiasSplitGelu: X + bias cut in two along the last axis; the left part times Gelu of the right.
Status op_contrib_bias_split_gelu(OpContext& op) {
  const Shape& shape = op.input(0).shape();
  if (shape.rank() != 3 || shape[2] % 2 != 0) return wrong_input(op, 0, "be [N,S,D] with an even D");
  PX_TRY(expect_shape(op, 1, Shape{shape[2]}));
  const int64_t half = shape[2] / 2;
  const Numbers<double> x(op.input(0)), bias(op.input(1));
  std::vector<double> results;
  for (int64_t at = 0; half > 0 && at < x.size(); ++at) {
    const int64_t column = at % shape[2];
    if (column >= half) continue;
    results.push_back((x[at] + bias[column]) * gelu_exact(x[at + half] + bias[column + half]));
  }
  return op.set_output(0, op.input(0).dtype(), Shape{shape[0], shape[1], half}, std::span<const double>(results));
}

// com.microsoft.BiasAdd: X + bias + skip.
Status op_contrib_bias_add(OpContext& op) {
  const Shape& shape = op.input(0).shape();
  if (shape.rank() != 3) return wrong_input(op, 0, "have rank 3: [N,S,C]");
  PX_TRY(expect_shape(op, 1, Shape{shape[2]}));
  PX_TRY(expect_shape(op, 2, shape));
  const Numbers<double> x(op.input(0)), bias(op.input(1)), skip(op.input(2));
  std::vector<double> results;
  for (int64_t at = 0; at < x.size(); ++at) results.push_back(x[at] + bias[at % shape[2]] + skip[at]);
  return op.set_output(0, op.input(0).dtype(), shape, std::span<const double>(results));
}

// com.microsoft.BiasSoftmax: softmax of data + bias over all axes from `axis` on, seen as one. The bias has the shape
// of the softmax's part and is repeated in front of it: with is_inner_broadcast each of its batches over a run of the
// data's, else the whole over all.
Status op_contrib_bias_softmax(OpContext& op) {
  const Shape& shape = op.input(0).shape();
  const size_t axis = PX_TRY(normalize_axis(op.int_attribute("axis"), shape.rank()));
  const int64_t rows = count_of(shape, 0, axis);
  const int64_t columns = count_of(shape, axis, shape.rank());
  const Numbers<double> data(op.input(0)), bias(op.input(1));
  const int64_t batches = columns == 0 ? 0 : bias.size() / columns;
  if (columns > 0 && rows > 0 && (batches == 0 || bias.size() % columns != 0 || rows % batches != 0))
    return wrong_input(op, 1, "have the shape of data {} from axis {} on, with batches that divide its rows",
                       shape.to_string(), axis);
  const bool inner = op.int_attribute("is_inner_broadcast") != 0;
  std::vector<double> sums;
  for (int64_t at = 0; at < data.size(); ++at) {
    const int64_t row = at / columns;
    const int64_t batch = inner ? row / (rows / batches) : row % batches;
    sums.push_back(data[at] + bias[batch * columns + at % columns]);
  }
  Tensor flat = PX_TRY(Tensor::allocate(DType::float64, Shape{rows, columns}));
  store<double>(flat, 0, sums);
  const Tensor result = PX_TRY(run_inner(op, {"Softmax", 13, {int_attribute("axis", -1)}}, {flat}));
  return set_rounded(op, 0, op.input(0).dtype(), result.reshaped(shape));
}

// com.microsoft.BiasDropout in inference: data + bias + residual; the mask is all true.
Status op_contrib_bias_dropout(OpContext& op) {
  const Shape& shape = op.input(0).shape();
  if (op.has_input(4) && PX_TRY(op.int64_of_input(4)) != 0) {
    const double ratio = op.has_input(3) ? PX_TRY(op.double_of_input(3)) : 0.5;
    if (ratio != 0.0) return unsupported("training with a ratio above 0: its random numbers are onnxruntime's own");
  }
  std::vector<double> sums = PX_TRY(broadcast_input(op, 0, shape));
  for (size_t index : {size_t{1}, size_t{2}}) {
    if (!op.has_input(index)) continue;
    const std::vector<double> added = PX_TRY(broadcast_input(op, index, shape));
    for (size_t at = 0; at < sums.size(); ++at) sums[at] += added[at];
  }
  const std::vector<int64_t> mask(sums.size(), 1);
  PX_TRY(op.set_output(0, op.input(0).dtype(), shape, std::span<const double>(sums)));
  return op.set_output(1, DType::bool_, shape, std::span<const int64_t>(mask));
}

constexpr OpRow kContribActivationsRows[] = {
    {"BiasAdd", kMicrosoft, 1, 1, op_contrib_bias_add},
    {"BiasDropout", kMicrosoft, 1, 1, op_contrib_bias_dropout},
    {"BiasGelu", kMicrosoft, 1, 1, op_contrib_bias_gelu},
    {"BiasSoftmax", kMicrosoft, 1, 1, op_contrib_bias_softmax},
    {"BiasSplitGelu", kMicrosoft, 1, 1, op_contrib_bias_split_gelu},
    {"FastGelu", kMicrosoft, 1, 1, op_contrib_fast_gelu},
    {"Gelu", kMicrosoft, 1, 1, op_contrib_gelu},
    {"QuickGelu", kMicrosoft, 1, 1, op_contrib_quick_gelu},
};

}  // namespace

OpRows contrib_activations_rows() { return kContribActivationsRows; }

}  // namespace parallax::reference
