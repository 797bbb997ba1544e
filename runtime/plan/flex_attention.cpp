// SPDX-License-Identifier: Apache-2.0
// FlexAttention of ai.onnx.preview: attention whose scores and probabilities pass through bodies of the node, numbered
// 0 (score_mod) and 1 (prob_mod). The products are the host's; the bodies run on the device.
#include <cmath>

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"
#include "runtime/ops/inner_op.h"
#include "runtime/plan/stack.h"

namespace parallax::runtime {
namespace {

struct FlexCall {
  ControlCall& call;
  OpContext<Cpu>& host;
  DType precision = DType::float32;  // of what the bodies see
  Shape scores;
};

// Returns the results of the body, or the numbers themselves where the node has no such body.
Result<Tensor> modified(FlexCall& flex, std::string_view attribute, int64_t index, const Tensor& numbers) {
  if (body_of(flex.call.op, attribute) == nullptr) return numbers;
  const Tensor given = PX_TRY(inner_cast(flex.host, numbers, flex.precision));
  std::vector<Value> arguments{PX_TRY(flex.call.platform.to_device(given))};
  const std::vector<Value> results =
      PX_TRY(flex.call.run_body(attribute, Frame::Kind::body, index, std::move(arguments)));
  PX_TRY(expect_count(results.size(), 1, attribute));
  const Value made = PX_TRY(flex.call.platform.to_host(results[0]));
  if (!made.is_tensor() || !is_floating(made.tensor().dtype()) || !(made.tensor().shape() == flex.scores))
    return wrong_value(fmt::format("the result of '{}'", attribute), to_string(type_of(made)),
                       "be one floating tensor of shape {}", flex.scores.to_string());
  return inner_cast(flex.host, made.tensor(), numbers.dtype());
}

// Keys or values for each query head, of those that groups of them share.
Result<Tensor> for_all_heads(OpContext<Cpu>& host, const Tensor& x, int64_t heads) {
  const int64_t own = x.shape()[1];
  if (own == heads) return x;
  Ints shared;
  for (int64_t head = 0; head < heads; ++head) shared.push_back(head * own / heads);
  return run_inner(host, {"Gather", 13, {int_attribute("axis", 1)}}, {x, Tensor::vector<int64_t>(shared)});
}

Result<DType> precision_of(const OpCall& op) {
  const auto number = op.find_integer("softmax_precision");
  if (!number.has_value()) return op.input(0).dtype() == DType::float64 ? DType::float64 : DType::float32;
  const auto dtype = dtype_from_number(*number);
  if (!dtype.has_value() || !is_floating(*dtype) || bits_of(*dtype) < 16)
    return wrong_attribute("softmax_precision", *number, "be the number of a floating type of 16 bits or more");
  return *dtype;
}

}  // namespace

Status run_flex_attention(ControlCall& call) {
  OpCall& op = call.op;
  Tensor inputs[3];
  const DType dtype = op.input(0).dtype();
  const DType wide = dtype == DType::float64 ? DType::float64 : DType::float32;
  OpContext<Cpu> host(op.node(), {}, op.seed(), call.platform.host_queue());
  for (int64_t index = 0; index < 3; ++index) {
    const Value value = PX_TRY(call.platform.to_host(op.value(index)));
    inputs[index] = PX_TRY(inner_cast(host, value.tensor(), wide));
  }
  const Ints q(inputs[0].shape()), k(inputs[1].shape()), v(inputs[2].shape());
  const bool fits = q.size() == 4 && k.size() == 4 && v.size() == 4 && q[0] == k[0] && q[0] == v[0] && k[1] == v[1] &&
                    k[2] == v[2] && q[3] == k[3] && k[1] > 0 && q[1] % k[1] == 0;
  if (!fits)
    return wrong_input(
        op, 1, "fit Q {} and V {}: rank 4, equal batch, Q's head size, V's length, heads that divide those of Q",
        op.input(0).shape().to_string(), op.input(2).shape().to_string());
  FlexCall flex{call, host, PX_TRY(precision_of(op)), PX_TRY(shape_of({q[0], q[1], q[2], k[2]}))};
  const Tensor keys = PX_TRY(for_all_heads(host, inputs[1], q[1]));
  const Tensor values = PX_TRY(for_all_heads(host, inputs[2], q[1]));
  const Tensor permuted = PX_TRY(inner_transpose(host, keys, {0, 1, 3, 2}));
  const double scale = op.find_real("scale").value_or(1.0 / std::sqrt(static_cast<double>(q[3])));
  const Tensor factor = PX_TRY(inner_cast(host, Tensor::scalar<double>(scale), wide));
  Tensor scores = PX_TRY(run_inner(host, {"MatMul", 13}, {inputs[0], permuted}));
  scores = PX_TRY(inner_binary(host, "Mul", scores, factor));
  scores = PX_TRY(modified(flex, "score_mod", 0, scores));
  scores = PX_TRY(run_inner(host, {"Softmax", 13, {int_attribute("axis", -1)}}, {scores}));
  scores = PX_TRY(modified(flex, "prob_mod", 1, scores));
  const Tensor sums = PX_TRY(run_inner(host, {"MatMul", 13}, {scores, values}));
  const Tensor y = PX_TRY(inner_cast(host, sums, dtype));
  op.set_output(0, PX_TRY(call.platform.to_device(y)));
  return {};
}

}  // namespace parallax::runtime
