// SPDX-License-Identifier: Apache-2.0
// The operators of recurrent language models since operator set 27: LinearAttention and CausalConvWithState. The state
// stays in double over the whole sequence; only what is given out is rounded.
#include <cmath>

#include "inspector/model/rule_errors.h"
#include "reference/ops/families.h"
#include "reference/ops/map.h"

namespace parallax::reference {
namespace {

struct LinearAttention {
  int64_t batch = 0, steps = 0, heads = 0, kv_heads = 0, key_size = 0, value_size = 0;
  bool gated = false;         // the state decays by exp(g)
  bool delta = false;         // what the state already answers to the key is taken away first
  bool decay_by_key = false;  // one g for each element of the key, else one for each head
  bool beta_by_head = false;  // one beta for each head, else one for all
  double scale = 1;

  Shape state_shape() const { return Shape{batch, kv_heads, key_size, value_size}; }
};

Status read_rule(const OpContext& op, LinearAttention& plan) {
  const std::string rule = op.string_attribute("update_rule");
  plan.gated = rule == "gated" || rule == "gated_delta";
  plan.delta = rule == "delta" || rule == "gated_delta";
  if (rule != "linear" && !plan.gated && !plan.delta)
    return wrong_attribute("update_rule", rule, "be linear, gated, delta or gated_delta");
  if (plan.gated && !op.has_input(4)) return wrong_input(op, 4, "be given for update_rule '{}'", rule);
  if (plan.delta && !op.has_input(5)) return wrong_input(op, 5, "be given for update_rule '{}'", rule);
  return {};
}

// Tells whether input `index` is [batch, steps, wide] (true) or [batch, steps, narrow] (false).
Result<bool> is_wide(const OpContext& op, const LinearAttention& plan, size_t index, int64_t wide, int64_t narrow) {
  const Shape& shape = op.input(index).shape();
  if (has_dims(shape, {plan.batch, plan.steps, wide})) return true;
  if (has_dims(shape, {plan.batch, plan.steps, narrow})) return false;
  return wrong_input(op, index, "be [{},{},{} or {}]", plan.batch, plan.steps, wide, narrow);
}

Result<LinearAttention> plan_linear_attention(const OpContext& op) {
  LinearAttention plan;
  const Shape& query = op.input(0).shape();
  const Shape& key = op.input(1).shape();
  const Shape& value = op.input(2).shape();
  plan.heads = op.int_attribute("q_num_heads");
  plan.kv_heads = op.int_attribute("kv_num_heads");
  if (plan.kv_heads < 1 || plan.heads < plan.kv_heads || plan.heads % plan.kv_heads != 0)
    return wrong_attribute("q_num_heads", plan.heads, "be a multiple of 'kv_num_heads', {}, both 1 or more",
                           plan.kv_heads);
  const bool packed = query.rank() == 3 && key.rank() == 3 && value.rank() == 3;
  if (!packed || query[2] % plan.heads != 0 || value[2] % plan.kv_heads != 0)
    return wrong_input(op, 0, "be [batch,steps,heads * size], as key {} and value {}, for {} query and {} key heads",
                       key.to_string(), value.to_string(), plan.heads, plan.kv_heads);
  plan.batch = query[0];
  plan.steps = query[1];
  plan.key_size = query[2] / plan.heads;
  plan.value_size = value[2] / plan.kv_heads;
  const bool one_key_size = key[2] % plan.kv_heads == 0 && key[2] / plan.kv_heads == plan.key_size;
  if (!one_key_size || key[0] != plan.batch || key[1] != plan.steps || value[0] != plan.batch || value[1] != plan.steps)
    return wrong_input(op, 1,
                       "have the batch and steps of query {} and value {}, and the head size of query for {} heads",
                       query.to_string(), value.to_string(), plan.kv_heads);
  PX_TRY(make_shape({plan.batch, plan.kv_heads, plan.key_size, plan.value_size}));
  PX_TRY(read_rule(op, plan));
  if (plan.gated) plan.decay_by_key = PX_TRY(is_wide(op, plan, 4, plan.kv_heads * plan.key_size, plan.kv_heads));
  if (plan.delta) plan.beta_by_head = PX_TRY(is_wide(op, plan, 5, plan.kv_heads, 1));
  if (op.has_input(3) && !(op.input(3).shape() == plan.state_shape()))
    return wrong_input(op, 3, "have shape {}", plan.state_shape().to_string());
  const double scale = op.float_attribute("scale");
  plan.scale = scale == 0 ? 1 / std::sqrt(static_cast<double>(plan.key_size)) : scale;
  return plan;
}

std::vector<double> numbers_or_zeros(const OpContext& op, size_t index, const Shape& shape) {
  std::vector<double> values(static_cast<size_t>(shape.element_count()), 0.0);
  if (op.has_input(index)) load<double>(op.input(index), 0, values);
  return values;
}

// All numbers of one call; the state of one head goes through the steps in `state` (key_size rows of value_size).
struct LinearInputs {
  Numbers<double> query, key, value;
  std::vector<double> decay, beta;
};

// S <- exp(g) S; S <- S + beta k (v - S^T k)^T, without the terms that the rule does not have (beta is then 1).
void update_state(const LinearAttention& plan, const LinearInputs& in, int64_t token, int64_t head,
                  std::span<double> state) {
  const double* key = in.key.data() + (token * plan.kv_heads + head) * plan.key_size;
  const double* value = in.value.data() + (token * plan.kv_heads + head) * plan.value_size;
  const auto at = [&](int64_t row, int64_t column) -> double& {
    return state[static_cast<size_t>(row * plan.value_size + column)];
  };
  for (int64_t row = 0; plan.gated && row < plan.key_size; ++row) {
    const int64_t which = token * plan.kv_heads + head;
    const auto location = static_cast<size_t>(plan.decay_by_key ? which * plan.key_size + row : which);
    for (int64_t column = 0; column < plan.value_size; ++column) at(row, column) *= std::exp(in.decay[location]);
  }
  const auto beta_index = static_cast<size_t>(plan.beta_by_head ? token * plan.kv_heads + head : token);
  const double beta = plan.delta ? in.beta[beta_index] : 1.0;
  for (int64_t column = 0; column < plan.value_size; ++column) {
    double answer = 0;
    for (int64_t row = 0; plan.delta && row < plan.key_size; ++row) answer += at(row, column) * key[row];
    for (int64_t row = 0; row < plan.key_size; ++row) at(row, column) += beta * key[row] * (value[column] - answer);
  }
}

// scale * q^T S for every query head that shares the state.
void answer_queries(const LinearAttention& plan, const LinearInputs& in, int64_t token, int64_t head,
                    std::span<const double> state, std::vector<double>& results) {
  const int64_t shared = plan.heads / plan.kv_heads;
  for (int64_t query_head = head * shared; query_head < (head + 1) * shared; ++query_head) {
    const double* query = in.query.data() + (token * plan.heads + query_head) * plan.key_size;
    for (int64_t column = 0; column < plan.value_size; ++column) {
      double sum = 0;
      for (int64_t row = 0; row < plan.key_size; ++row)
        sum += query[row] * state[static_cast<size_t>(row * plan.value_size + column)];
      results[static_cast<size_t>((token * plan.heads + query_head) * plan.value_size + column)] = plan.scale * sum;
    }
  }
}

// LinearAttention-27: the recurrence of its page, token by token; chunk_size is a hint that changes nothing.
Status op_linear_attention(OpContext& op) {
  const LinearAttention plan = PX_TRY(plan_linear_attention(op));
  const LinearInputs in{Numbers<double>(op.input(0)), Numbers<double>(op.input(1)), Numbers<double>(op.input(2)),
                        plan.gated ? numbers_or_zeros(op, 4, op.input(4).shape()) : std::vector<double>{},
                        plan.delta ? numbers_or_zeros(op, 5, op.input(5).shape()) : std::vector<double>{}};
  std::vector<double> states = numbers_or_zeros(op, 3, plan.state_shape());
  const Shape rows = PX_TRY(make_shape({plan.heads, plan.value_size}));
  const Shape shape = PX_TRY(make_shape({plan.batch, plan.steps, rows.element_count()}));
  std::vector<double> results(static_cast<size_t>(shape.element_count()));
  const int64_t state_size = plan.key_size * plan.value_size;
  parallel_for(plan.batch * plan.kv_heads, plan.steps * state_size * 4, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      const auto state =
          std::span(states).subspan(static_cast<size_t>(index * state_size), static_cast<size_t>(state_size));
      for (int64_t step = 0; step < plan.steps; ++step) {
        const int64_t token = index / plan.kv_heads * plan.steps + step;
        update_state(plan, in, token, index % plan.kv_heads, state);
        answer_queries(plan, in, token, index % plan.kv_heads, state, results);
      }
    }
  });
  PX_TRY(op.set_output(0, op.input(0).dtype(), shape, std::span<const double>(results)));
  // The state's type is its own (parameter S); without a past it is that of the query.
  const DType state_type = op.has_input(3) ? op.input(3).dtype() : op.input(0).dtype();
  return op.set_output(1, state_type, plan.state_shape(), std::span<const double>(states));
}

// CausalConvWithState-27: past_state (or zeros) and the input joined along time, then a depthwise convolution without
// padding. The new state is the end of the joined sequence.
Status op_causal_conv_with_state(OpContext& op) {
  const Shape& shape = op.input(0).shape();
  const Shape& weight_shape = op.input(1).shape();
  const std::string activation = op.string_attribute("activation");
  if (activation != "none" && activation != "silu" && activation != "swish")
    return wrong_attribute("activation", activation, "be none, silu or swish");
  if (shape.rank() != 3 || weight_shape.rank() != 3 || weight_shape[0] != shape[1] || weight_shape[1] != 1 ||
      weight_shape[2] < 1)
    return wrong_input(op, 1, "be [channels,1,taps] for an input [batch,channels,length], which is {}",
                       shape.to_string());
  const int64_t length = shape[2];
  const int64_t kernel = weight_shape[2];
  const int64_t past = kernel - 1;
  const Shape state_shape = PX_TRY(make_shape({shape[0], shape[1], past}));
  if (op.has_input(3) && !(op.input(3).shape() == state_shape))
    return wrong_input(op, 3, "have shape {}", state_shape.to_string());
  if (op.has_input(2) && !(op.input(2).shape() == Shape{shape[1]}))
    return wrong_input(op, 2, "have {} elements, one for each channel", shape[1]);
  const Numbers<double> x(op.input(0));
  const Numbers<double> weight(op.input(1));
  const std::vector<double> bias = numbers_or_zeros(op, 2, Shape{shape[1]});
  std::vector<double> state = numbers_or_zeros(op, 3, state_shape);
  std::vector<double> results(static_cast<size_t>(shape.element_count()));
  for (int64_t line = 0; line < shape[0] * shape[1]; ++line) {
    const int64_t channel = line % shape[1];
    std::vector<double> joined(state.begin() + line * past, state.begin() + (line + 1) * past);
    joined.insert(joined.end(), x.data() + line * length, x.data() + (line + 1) * length);
    for (int64_t location = 0; location < length; ++location) {
      double sum = bias[static_cast<size_t>(channel)];
      for (int64_t tap = 0; tap < kernel; ++tap)
        sum += weight[channel * kernel + tap] * joined[static_cast<size_t>(location + tap)];
      results[static_cast<size_t>(line * length + location)] = activation == "none" ? sum : sum / (1 + std::exp(-sum));
    }
    std::copy(joined.end() - past, joined.end(), state.begin() + line * past);
  }
  PX_TRY(op.set_output(0, op.input(0).dtype(), shape, std::span<const double>(results)));
  return op.set_output(1, op.input(0).dtype(), state_shape, std::span<const double>(state));
}

constexpr OpRow kLinearAttentionRows[] = {
    {"CausalConvWithState", kOnnx, 27, 27, op_causal_conv_with_state},
    {"LinearAttention", kOnnx, 27, 27, op_linear_attention},
};

}  // namespace

OpRows linear_attention_rows() { return kLinearAttentionRows; }

}  // namespace parallax::reference
