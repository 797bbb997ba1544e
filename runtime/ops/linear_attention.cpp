// SPDX-License-Identifier: Apache-2.0
// LinearAttention and CausalConvWithState: the operators of recurrent language models, of ai.onnx 27 and, where what
// that lacks is at its default, of com.microsoft.
#include <cmath>

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/copy.h"
#include "runtime/device/cpu/map.h"
#include "runtime/device/cpu/math.h"
#include "runtime/device/cpu/products/gemm.h"
#include "runtime/device/cpu/tabulate.h"
#include "runtime/ops/families.h"

namespace parallax::runtime {
namespace {

Status expect_defaults(const OpCall& op, std::initializer_list<std::pair<std::string_view, int64_t>> defaults) {
  for (const auto& [name, value] : defaults) {
    if (op.find_integer(name).value_or(value) != value)
      return unsupported(
          fmt::format("attribute '{}' is {}; only {} has a kernel here", name, *op.find_integer(name), value));
  }
  return {};
}

// ---- LinearAttention: S <- exp(g) S; S <- S + beta k (v - S^T k)^T; y = scale q^T S, a step after the other ----

struct LinearShape {
  int64_t batch = 0, steps = 0, heads = 0, kv_heads = 0, key_size = 0, value_size = 0;
  bool gated = false;         // the state decays
  bool delta = false;         // what the state already answers to the key is taken away first
  bool decay_by_key = false;  // one g for each element of the key, else one for each head
  bool beta_by_head = false;  // one beta for each head, else one for all
  double scale = 1;
};

// Tells whether input `index` is [batch, steps, wide] (true) or [batch, steps, narrow] (false).
Result<bool> is_wide(const OpCall& op, const LinearShape& shape, int64_t index, int64_t wide, int64_t narrow) {
  const Ints dims(op.input(index).shape());
  if (dims == Ints{shape.batch, shape.steps, wide}) return true;
  if (dims == Ints{shape.batch, shape.steps, narrow}) return false;
  return wrong_input(op, index, "be [{},{},{} or {}]", shape.batch, shape.steps, wide, narrow);
}

Status read_rule(const OpCall& op, LinearShape& shape) {
  const std::string rule = op.text("update_rule");
  shape.gated = rule == "gated" || rule == "gated_delta";
  shape.delta = rule == "delta" || rule == "gated_delta";
  if (rule != "linear" && !shape.gated && !shape.delta)
    return wrong_attribute("update_rule", rule, "be linear, gated, delta or gated_delta");
  if ((shape.gated && !op.has_input(4)) || (shape.delta && !op.has_input(5)))
    return wrong_input(op, shape.gated && !op.has_input(4) ? 4 : 5, "be given for update_rule '{}'", rule);
  if (shape.gated) shape.decay_by_key = PX_TRY(is_wide(op, shape, 4, shape.kv_heads * shape.key_size, shape.kv_heads));
  if (shape.delta) shape.beta_by_head = PX_TRY(is_wide(op, shape, 5, shape.kv_heads, 1));
  return {};
}

Result<LinearShape> linear_shape(const OpCall& op) {
  const Ints q(op.input(0).shape()), k(op.input(1).shape()), v(op.input(2).shape());
  LinearShape shape;
  shape.heads = op.integer("q_num_heads");
  shape.kv_heads = op.integer("kv_num_heads");
  if (shape.kv_heads < 1 || shape.heads < shape.kv_heads || shape.heads % shape.kv_heads != 0)
    return wrong_attribute("q_num_heads", shape.heads, "be a multiple of 'kv_num_heads', {}, both 1 or more",
                           shape.kv_heads);
  if (q.size() != 3 || k.size() != 3 || v.size() != 3 || q[2] % shape.heads != 0 || v[2] % shape.kv_heads != 0)
    return wrong_input(op, 0, "be [batch,steps,heads * size], as key {} and value {}, for {} query and {} key heads",
                       op.input(1).shape().to_string(), op.input(2).shape().to_string(), shape.heads, shape.kv_heads);
  shape.batch = q[0];
  shape.steps = q[1];
  shape.key_size = q[2] / shape.heads;
  shape.value_size = v[2] / shape.kv_heads;
  if (!(k == Ints{q[0], q[1], shape.kv_heads * shape.key_size}) || v[0] != q[0] || v[1] != q[1])
    return wrong_input(op, 1, "be [{},{},{}], and value, {}, have its batch and steps", q[0], q[1],
                       shape.kv_heads * shape.key_size, op.input(2).shape().to_string());
  PX_TRY(read_rule(op, shape));
  const Ints state{shape.batch, shape.kv_heads, shape.key_size, shape.value_size};
  if (op.has_input(3) && !(Ints(op.input(3).shape()) == state))
    return wrong_input(op, 3, "have shape {}", dims_text(state));
  const double scale = op.find_real("scale").value_or(0.0);
  shape.scale = scale == 0 ? 1 / std::sqrt(static_cast<double>(shape.key_size)) : scale;
  return shape;
}

// One step: states are [batch, kv_heads, key_size, value_size], answers [batch, kv_heads, value_size].
template <class Device, class C>
struct LinearStep {
  LinearShape shape;
  Elements<Device, const C> query, key, value, decay, beta, state, answers;
  int64_t step = 0;

  // Number of the token and head of matrix `matrix` in an input with an entry for each head.
  PX_HD int64_t entry(int64_t matrix) const {
    return (matrix / shape.kv_heads * shape.steps + step) * shape.kv_heads + matrix % shape.kv_heads;
  }
  PX_HD C key_at(int64_t matrix, int64_t row) const { return key[entry(matrix) * shape.key_size + row]; }
  PX_HD C decayed(int64_t matrix, int64_t row, int64_t column) const {
    const C old = state[(matrix * shape.key_size + row) * shape.value_size + column];
    if (!shape.gated) return old;
    return old * math::exp(decay[shape.decay_by_key ? entry(matrix) * shape.key_size + row : entry(matrix)]);
  }
};

// The response of the decayed state to the key.
template <class Device, class C>
struct StateAnswer {
  static constexpr int64_t kWork = 100;
  LinearStep<Device, C> at;
  PX_HD C operator()(int64_t element) const {
    const int64_t matrix = element / at.shape.value_size;
    C sum = 0;
    for (int64_t row = 0; row < at.shape.key_size; ++row)
      sum += at.decayed(matrix, row, element % at.shape.value_size) * at.key_at(matrix, row);
    return sum;
  }
};

// The state after the step, element by element over the one before.
template <class Device, class C>
struct NextState {
  static constexpr int64_t kWork = 20;
  LinearStep<Device, C> at;
  PX_HD C operator()(int64_t element) const {
    const int64_t column = element % at.shape.value_size;
    const int64_t row = element / at.shape.value_size % at.shape.key_size;
    const int64_t matrix = element / at.shape.value_size / at.shape.key_size;
    const int64_t entry = at.entry(matrix);
    C change = at.value[entry * at.shape.value_size + column];
    if (at.shape.delta) {
      change -= at.answers[matrix * at.shape.value_size + column];
      change *= at.beta[at.shape.beta_by_head ? entry : entry / at.shape.kv_heads];
    }
    return at.decayed(matrix, row, column) + at.key_at(matrix, row) * change;
  }
};

// Element of [batch, heads, value_size] of one step's result.
template <class Device, class C>
struct QueryAnswer {
  static constexpr int64_t kWork = 100;
  LinearStep<Device, C> at;
  PX_HD C operator()(int64_t element) const {
    const int64_t column = element % at.shape.value_size;
    const int64_t head = element / at.shape.value_size % at.shape.heads;
    const int64_t batch = element / at.shape.value_size / at.shape.heads;
    const int64_t matrix = batch * at.shape.kv_heads + head / (at.shape.heads / at.shape.kv_heads);
    const int64_t token = (batch * at.shape.steps + at.step) * at.shape.heads + head;
    C sum = 0;
    for (int64_t row = 0; row < at.shape.key_size; ++row)
      sum += at.query[token * at.shape.key_size + row] *
             at.state[(matrix * at.shape.key_size + row) * at.shape.value_size + column];
    return static_cast<C>(at.shape.scale) * sum;
  }
};

template <class C, class Device>
Status linear_steps(OpContext<Device>& op, LinearStep<Device, C> at, const MutableView& state, const MutableView& y) {
  const LinearShape& shape = at.shape;
  const int64_t answer_count = shape.batch * shape.kv_heads * shape.value_size;
  const Ints step_dims{shape.batch, shape.heads * shape.value_size};
  const MutableView answers = PX_TRY(op.scratch(storage_of<C>(), shape_of({answer_count})));
  const MutableView wide = PX_TRY(op.scratch(storage_of<C>(), shape_of(step_dims)));
  const bool direct = y.dtype == storage_of<C>();
  const MutableView rounded = direct ? wide : PX_TRY(op.scratch(y.dtype, wide.shape));
  at.state = {reinterpret_cast<const C*>(state.data)};
  at.answers = {reinterpret_cast<const C*>(answers.data)};
  for (at.step = 0; at.step < shape.steps; ++at.step) {
    if (shape.delta) tabulate<C>(op.queue(), StateAnswer<Device, C>{at}, answers);
    tabulate<C>(op.queue(), NextState<Device, C>{at}, state);
    tabulate<C>(op.queue(), QueryAnswer<Device, C>{at}, wide);
    if (!direct) map_as<C, C>(op.queue(), Same{}, rounded, std::array<TensorView, 1>{TensorView(wide)});
    copy_strided(op.queue(), element_bytes(y.dtype), step_dims,
                 {y.data, {shape.steps * step_dims[1], 1}, at.step * step_dims[1]},
                 {rounded.data, row_major_strides(step_dims), 0});
  }
  return {};
}

template <class C, class Device>
Status linear_attention_as(OpContext<Device>& op, const LinearShape& shape) {
  const DType dtype = op.input(0).dtype();
  const Ints out_dims{shape.batch, shape.steps, shape.heads * shape.value_size};
  const MutableView y = PX_TRY(op.make_output(0, dtype, shape_of(out_dims)));
  const Shape state_shape = PX_TRY(shape_of({shape.batch, shape.kv_heads, shape.key_size, shape.value_size}));
  const MutableView state = PX_TRY(op.scratch(storage_of<C>(), state_shape));
  if (op.has_input(3)) {
    map_as<C, C>(op.queue(), Same{}, state, std::array<TensorView, 1>{op.input(3).view()});
  } else {
    fill(op.queue(), state, nullptr);
  }
  std::shared_ptr<const C> values[6];
  for (const int64_t input : {0, 1, 2, 4, 5}) {
    const bool is_read = input < 3 || (input == 4 ? shape.gated : shape.delta);
    if (is_read) values[input] = PX_TRY(converted<C>(op.queue(), op.input(input).view(), op.is_constant(input)));
  }
  const LinearStep<Device, C> step{
      shape, {values[0].get()}, {values[1].get()}, {values[2].get()}, {values[4].get()}, {values[5].get()}, {}, {}};
  PX_TRY(linear_steps(op, step, state, y));
  if (!op.wants_output(1)) return {};
  // The state's type is its own; without a past it is that of the query.
  const MutableView present = PX_TRY(op.make_output(1, op.has_input(3) ? op.input(3).dtype() : dtype, state_shape));
  map_as<C, C>(op.queue(), Same{}, present, std::array<TensorView, 1>{TensorView(state)});
  return {};
}

template <class Device>
Status linear_attention(OpContext<Device>& op) {
  PX_TRY(expect_defaults(op, {{"state_window", 0}}));
  const LinearShape shape = PX_TRY(linear_shape(op));
  if (op.input(0).dtype() == DType::float64) return linear_attention_as<double>(op, shape);
  return linear_attention_as<float>(op, shape);
}

// ---- CausalConvWithState: the state and the input joined along time, a depthwise convolution without padding ----

template <class Device, class C>
struct JoinedSequence {
  Elements<Device, const C> state, x;  // no state: zeros
  int64_t past, length;
  PX_HD C at(int64_t line, int64_t location) const {
    if (location >= past) return x[line * length + location - past];
    return state ? state[line * past + location] : C(0);
  }
};

template <class Device, class C>
struct CausalSum {
  static constexpr int64_t kWork = 30;
  JoinedSequence<Device, C> sequence;
  Elements<Device, const C> weight, bias;
  int64_t channels;
  bool gated;  // silu
  PX_HD C operator()(int64_t element) const {
    const int64_t line = element / sequence.length;
    const int64_t channel = line % channels;
    C sum = bias ? bias[channel] : C(0);
    for (int64_t tap = 0; tap <= sequence.past; ++tap)
      sum += weight[channel * (sequence.past + 1) + tap] * sequence.at(line, element % sequence.length + tap);
    return gated ? math::times_sigmoid(sum, sum) : sum;
  }
};

template <class Device, class C>
struct SequenceEnd {
  JoinedSequence<Device, C> sequence;
  PX_HD C operator()(int64_t element) const {
    return sequence.at(element / sequence.past, sequence.length + element % sequence.past);
  }
};

template <class Device>
Status causal_conv(OpContext<Device>& op) {
  PX_TRY(expect_defaults(op, {{"ndim", 1}, {"channels_last", 0}, {"dilation", 1}, {"state_window", 0}}));
  const Tensor& x = op.input(0);
  const Ints dims(x.shape()), w(op.input(1).shape());
  const std::string activation = op.text("activation");
  if (activation != "none" && activation != "silu" && activation != "swish")
    return wrong_attribute("activation", activation, "be none, silu or swish");
  if (dims.size() != 3 || w.size() != 3 || w[0] != dims[1] || w[1] != 1 || w[2] < 1)
    return wrong_input(op, 1, "be [channels,1,taps] for an input [batch,channels,length], which is {}",
                       x.shape().to_string());
  const Shape state_shape = PX_TRY(shape_of({dims[0], dims[1], w[2] - 1}));
  if (op.has_input(3) && !(op.input(3).shape() == state_shape))
    return wrong_input(op, 3, "have shape {}", state_shape.to_string());
  if (op.has_input(2) && op.input(2).element_count() != dims[1])
    return wrong_input(op, 2, "have {} elements, one for each channel", dims[1]);
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), x.shape()));
  MutableView end;
  if (op.wants_output(1)) end = PX_TRY(op.make_output(1, x.dtype(), state_shape));
  return visit_arithmetic<Floats>(x.dtype(), [&](auto zero) -> Status {
    using C = decltype(zero);
    std::shared_ptr<const C> values[4];
    for (int64_t input = 0; input < 4; ++input) {
      if (op.has_input(input))
        values[input] = PX_TRY(converted<C>(op.queue(), op.input(input).view(), op.is_constant(input)));
    }
    const JoinedSequence<Device, C> sequence{{values[3].get()}, {values[0].get()}, w[2] - 1, dims[2]};
    const CausalSum<Device, C> sum{sequence, {values[1].get()}, {values[2].get()}, dims[1], activation != "none"};
    if (y.element_count() > 0) tabulate<C>(op.queue(), sum, y);
    if (end.data != nullptr && end.element_count() > 0) tabulate<C>(op.queue(), SequenceEnd<Device, C>{sequence}, end);
    return {};
  });
}

template <class Device>
constexpr KernelRow<Device> kLinearAttentionRows[] = {
    {"CausalConvWithState", kFloats, causal_conv<Device>},
    {"LinearAttention", kFloats, linear_attention<Device>},
    of_microsoft<Device>({"CausalConvWithState", kFloats, causal_conv<Device>}),
    of_microsoft<Device>({"LinearAttention", kFloats, linear_attention<Device>}),
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> linear_attention_rows() {
  return kLinearAttentionRows<CompiledDevice>;
}

}  // namespace parallax::runtime
