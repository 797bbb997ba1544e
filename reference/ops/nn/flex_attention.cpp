// SPDX-License-Identifier: Apache-2.0
// FlexAttention of ai.onnx.preview: attention whose scores and probabilities pass through bodies of the node.
#include <cmath>
#include <limits>

#include "inspector/model/rule_errors.h"
#include "reference/ops/families.h"
#include "reference/ops/map.h"
#include "reference/ops/matrix.h"

namespace parallax::reference {
namespace {

struct FlexPlan {
  int64_t batch = 0, heads = 0, queries = 0, size = 0;
  int64_t kv_heads = 0, keys = 0, value_size = 0;
  double scale = 1;
  DType precision = DType::float32;  // of what the bodies see

  Shape score_shape() const { return Shape{batch, heads, queries, keys}; }
};

Result<FlexPlan> plan_flex(const OpContext& op) {
  const Shape& q = op.input(0).shape();
  const Shape& k = op.input(1).shape();
  const Shape& v = op.input(2).shape();
  const bool fits = q.rank() == 4 && k.rank() == 4 && v.rank() == 4 && q[0] == k[0] && q[0] == v[0] && k[1] == v[1] &&
                    k[2] == v[2] && q[3] == k[3] && k[1] > 0 && q[1] % k[1] == 0;
  if (!fits)
    return wrong_input(
        op, 1, "fit Q {} and V {}: rank 4, equal batch, Q's head size, V's length, heads that divide those of Q",
        q.to_string(), v.to_string());
  FlexPlan plan{q[0], q[1], q[2], q[3], k[1], k[2], v[3], 1, DType::float32};
  plan.scale = op.find_float("scale").value_or(1.0 / std::sqrt(static_cast<double>(plan.size)));
  if (op.input(0).dtype() == DType::float64) plan.precision = DType::float64;
  if (const auto number = op.find_int("softmax_precision")) {
    const auto dtype = dtype_from_number(*number);
    if (!dtype.has_value() || !is_floating(*dtype))
      return wrong_attribute("softmax_precision", *number, "be the number of a floating type");
    plan.precision = *dtype;
  }
  PX_TRY(make_shape({plan.batch, plan.heads, plan.queries, plan.keys}));
  PX_TRY(make_shape({plan.batch, plan.heads, plan.queries, plan.value_size}));
  return plan;
}

// Replaces the numbers by the results of the body; leaves them unchanged where the node has no such body.
Status modify(OpContext& op, const FlexPlan& plan, std::string_view attribute, int64_t index,
              std::vector<double>& numbers) {
  if (!op.has_attribute(attribute)) return {};
  Tensor given = PX_TRY(op.allocate(plan.precision, plan.score_shape()));
  store<double>(given, 0, std::span<const double>(numbers));
  std::vector<Value> arguments;
  arguments.emplace_back(std::move(given));
  const std::vector<Value> results = PX_TRY(op.run_body(attribute, Frame::Kind::body, index, std::move(arguments)));
  const bool one_tensor = results.size() == 1 && results[0].is_tensor() && is_floating(results[0].tensor().dtype()) &&
                          results[0].tensor().shape() == plan.score_shape();
  if (!one_tensor)
    return wrong_value(fmt::format("the result of '{}'", attribute),
                       results.size() == 1 ? to_string(type_of(results[0])) : fmt::format("{} values", results.size()),
                       "be one floating tensor of shape {}", plan.score_shape().to_string());
  load<double>(results[0].tensor(), 0, numbers);
  return {};
}

// As Softmax has it: a row of nothing but -inf gives NaN.
void softmax(std::span<double> row) {
  double highest = -std::numeric_limits<double>::infinity();
  for (double value : row) highest = std::isnan(value) ? value : std::max(highest, value);
  double sum = 0;
  for (double& value : row) sum += value = std::exp(value - highest);
  for (double& value : row) value /= sum;
}

Matrix<double> matrix_at(std::span<const double> numbers, int64_t index, int64_t rows, int64_t columns) {
  const auto size = static_cast<size_t>(rows * columns);
  return {numbers.subspan(static_cast<size_t>(index) * size, size), rows, columns, columns, 1};
}

// Y = prob_mod(Softmax(score_mod(Q K^T * scale))) V for each head; K and V are shared by groups of query heads. The
// bodies' frames are numbered 0 (score_mod) and 1 (prob_mod).
Status op_flex_attention(OpContext& op) {
  const FlexPlan plan = PX_TRY(plan_flex(op));
  const Numbers<double> q(op.input(0)), k(op.input(1)), v(op.input(2));
  const Shape shape{plan.batch, plan.heads, plan.queries, plan.value_size};
  std::vector<double> scores(static_cast<size_t>(plan.score_shape().element_count()));
  std::vector<double> results(static_cast<size_t>(shape.element_count()));
  const auto shared = [&](int64_t head) {
    return head / plan.heads * plan.kv_heads + head % plan.heads * plan.kv_heads / plan.heads;
  };
  const int64_t row_count = plan.batch * plan.heads;
  const auto score_size = static_cast<size_t>(plan.queries * plan.keys);
  const auto result_size = static_cast<size_t>(plan.queries * plan.value_size);
  for (int64_t head = 0; head < row_count; ++head) {
    multiply(matrix_at(q.span(), head, plan.queries, plan.size),
             matrix_at(k.span(), shared(head), plan.keys, plan.size).transposed(),
             std::span(scores).subspan(static_cast<size_t>(head) * score_size, score_size));
  }
  for (double& score : scores) score *= plan.scale;
  PX_TRY(modify(op, plan, "score_mod", 0, scores));
  for (int64_t row = 0; plan.keys > 0 && row < row_count * plan.queries; ++row)
    softmax(std::span(scores).subspan(static_cast<size_t>(row * plan.keys), static_cast<size_t>(plan.keys)));
  PX_TRY(modify(op, plan, "prob_mod", 1, scores));
  for (int64_t head = 0; head < row_count; ++head) {
    multiply(matrix_at(scores, head, plan.queries, plan.keys),
             matrix_at(v.span(), shared(head), plan.keys, plan.value_size),
             std::span(results).subspan(static_cast<size_t>(head) * result_size, result_size));
  }
  return op.set_output(0, op.input(0).dtype(), shape, std::span<const double>(results));
}

constexpr OpRow kFlexAttentionRows[] = {
    {"FlexAttention", kPreview, 1, 1, op_flex_attention},
};

}  // namespace

OpRows flex_attention_rows() { return kFlexAttentionRows; }

}  // namespace parallax::reference
