// SPDX-License-Identifier: Apache-2.0
// com.microsoft's attention: Attention, QAttention, MultiHeadAttention, DecoderMaskedMultiHeadAttention,
// RotaryEmbedding. Heads are laid out, masks are written as numbers to be added, and the Attention of ai.onnx computes.
// Definitions: ContribOperators.md.
#include <cmath>

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"
#include "runtime/ops/contrib/heads.h"
#include "runtime/ops/contrib_families.h"
#include "runtime/ops/contributed.h"
#include "runtime/ops/pointwise/quantized_values.h"

namespace parallax::runtime {
namespace {

using Context = ChainContext;

Status refuse(const OpCall& op, std::initializer_list<int64_t> inputs, std::string_view what) {
  for (int64_t input : inputs) {
    if (op.has_input(input)) return unsupported(fmt::format("{}: the operator's page does not define it", what));
  }
  return {};
}

Status set_cast(Context& op, int64_t output, const Tensor& tensor, DType dtype) {
  if (!op.wants_output(output)) return {};
  Tensor cast = PX_TRY(inner_cast(op, tensor, dtype));
  op.set_output(output, std::move(cast));
  return {};
}

// The input indices of an operator's mask and bias, and of the keys before its own.
struct MaskInputs {
  int64_t mask, bias;
  int64_t past = 0;
};

Status add_masks(Context& op, const MaskInputs& inputs, Heads& heads) {
  const ScoreShape scores{heads.q.shape()[0], heads.q.shape()[2], heads.k.shape()[2], inputs.past};
  if (op.has_input(inputs.mask)) {
    const double filter = op.find_real("mask_filter_value").value_or(-10000);
    heads.mask = PX_TRY(added_mask(op, op.input(inputs.mask), scores, filter));
  }
  if (!op.has_input(inputs.bias)) return {};
  const Tensor bias = PX_TRY(inner_cast(op, op.input(inputs.bias), DType::float32));
  heads.mask = PX_TRY(both_masks(op, heads.mask, bias));
  return {};
}

// ---- MultiHeadAttention, and its form for a decoder's step ----

struct ProjectedInputs {
  int64_t bias, past_key, past_value;
  MaskInputs mask;
};

// Part of a bias over all heads, added to [batch, heads, length, size].
Status add_bias(Context& op, Tensor& x, const Tensor& bias, int64_t begin) {
  const Ints dims(x.shape());
  const Tensor part = PX_TRY(columns(op, bias, begin, begin + dims[1] * dims[3]));
  if (part.element_count() != dims[1] * dims[3])
    return wrong_value("the number of elements of the bias", part.element_count(), "be {}, heads times size",
                       dims[1] * dims[3]);
  const Tensor seen = PX_TRY(reshaped(part, {dims[1], 1, dims[3]}));
  const Tensor wide = PX_TRY(inner_cast(op, seen, x.dtype()));
  x = PX_TRY(inner_binary(op, "Add", x, wide));
  return {};
}

// One of the inputs by heads: [batch, length, hidden] or [batch, heads, length, size].
Result<Tensor> tokens_of(Context& op, int64_t input, int64_t count, DType dtype) {
  const Tensor x = PX_TRY(inner_cast(op, op.input(input), dtype));
  return x.shape().rank() == 4 ? Result<Tensor>(x) : split_heads(op, x, count);
}

// Q, K and V by heads, from whichever of the layouts the inputs have.
Result<Heads> projected_heads(Context& op, const ProjectedInputs& inputs) {
  const int64_t count = op.integer("num_heads");
  const DType dtype = head_type(op.input(0).dtype());
  const bool all_packed = op.input(0).shape().rank() == 5;
  if (!all_packed && !op.has_input(1)) return wrong_input(op, 1, "be given unless query is packed, of rank 5");
  const bool kv_packed = !all_packed && op.input(1).shape().rank() == 5;
  Heads heads;
  if (all_packed || kv_packed) {
    const int64_t parts = all_packed ? 3 : 2;
    const Tensor packed = PX_TRY(inner_cast(op, op.input(all_packed ? 0 : 1), dtype));
    heads.q = all_packed ? PX_TRY(packed_part(op, packed, count, 3, 0)) : PX_TRY(tokens_of(op, 0, count, dtype));
    heads.k = PX_TRY(packed_part(op, packed, count, parts, parts - 2));
    heads.v = PX_TRY(packed_part(op, packed, count, parts, parts - 1));
  } else {
    if (!op.has_input(2)) return wrong_input(op, 2, "be given unless keys and values are packed");
    heads.q = PX_TRY(tokens_of(op, 0, count, dtype));
    heads.k = PX_TRY(tokens_of(op, 1, count, dtype));
    heads.v = PX_TRY(tokens_of(op, 2, count, dtype));
  }
  if (!op.has_input(inputs.bias)) return heads;
  const int64_t hidden = heads.q.shape()[1] * heads.q.shape()[3];
  PX_TRY(add_bias(op, heads.q, op.input(inputs.bias), 0));
  PX_TRY(add_bias(op, heads.k, op.input(inputs.bias), hidden));
  PX_TRY(add_bias(op, heads.v, op.input(inputs.bias), 2 * hidden));
  return heads;
}

// The fourth output is the scaled products with mask and bias, before the softmax, as onnxruntime gives it.
Status attend_projected(Context& op, const ProjectedInputs& inputs, bool causal) {
  Heads heads = PX_TRY(projected_heads(op, inputs));
  heads.scale = op.find_real("scale").value_or(0.0);
  heads.causal = causal;
  heads.shown = op.wants_output(3) ? 2 : -1;
  MaskInputs mask = inputs.mask;
  if (op.has_input(inputs.past_key) != op.has_input(inputs.past_value))
    return wrong_input(op, inputs.past_key, "be given if and only if past_value is given");
  if (op.has_input(inputs.past_key)) {
    const Tensor past_k = PX_TRY(inner_cast(op, op.input(inputs.past_key), heads.k.dtype()));
    const Tensor past_v = PX_TRY(inner_cast(op, op.input(inputs.past_value), heads.v.dtype()));
    if (past_k.shape().rank() != 4) return wrong_input(op, inputs.past_key, "have rank 4");
    mask.past = heads.past = past_k.shape()[2];
    heads.k = PX_TRY(joined_rows(op, past_k, heads.k));
    heads.v = PX_TRY(joined_rows(op, past_v, heads.v));
  }
  PX_TRY(add_masks(op, mask, heads));
  const Attended attended = PX_TRY(attend(op, heads));
  const DType dtype = op.input(0).dtype();
  const Tensor joined = PX_TRY(join_heads(op, attended.y));
  PX_TRY(set_cast(op, 0, joined, dtype));
  PX_TRY(set_cast(op, 1, heads.k, dtype));
  PX_TRY(set_cast(op, 2, heads.v, dtype));
  return set_cast(op, 3, attended.scores, dtype);
}

Status multi_head_attention(Context& op) {
  PX_TRY(refuse(op, {8, 9}, "a shared buffer of the past"));
  return attend_projected(op, {3, 6, 7, {4, 5}}, op.integer("unidirectional") != 0);
}

Status decoder_masked_attention(Context& op) {
  PX_TRY(refuse(op, {7, 8, 9}, "a shared buffer of the past"));
  if (op.find_integer("past_present_share_buffer").value_or(0) != 0)
    return unsupported("past_present_share_buffer: past and present are never one buffer here");
  return attend_projected(op, {10, 5, 6, {3, 4}}, false);
}

// ---- Attention and QAttention: the projections belong to them ----

struct ProjectionInputs {
  int64_t bias, past;
  MaskInputs mask;
  DType dtype;  // of the outputs
};

// One half of [2, batch, heads, length, size].
Result<Tensor> half_of_past(Context& op, int64_t input, int64_t half, DType dtype) {
  const Ints dims(op.input(input).shape());
  if (dims.size() != 5 || dims[0] != 2)
    return wrong_input(op, input, "have rank 5 and a first axis of 2, keys and values");
  const Tensor wide = PX_TRY(inner_cast(op, op.input(input), dtype));
  const Tensor index = Tensor::scalar<int64_t>(half);
  return run_inner(op, {"Gather", 13, {int_attribute("axis", 0)}}, {wide, index});
}

Status attend_projection(Context& op, const Tensor& input, const Tensor& weights, const ProjectionInputs& inputs) {
  if (op.find_integer("do_rotary").value_or(0) != 0)
    return unsupported("do_rotary: the operator's page does not say how it turns");
  if (op.find_integer("past_present_share_buffer").value_or(0) != 0)
    return unsupported("past_present_share_buffer: past and present are never one buffer here");
  const int64_t count = op.integer("num_heads");
  const Ints dims(input.shape()), weight_dims(weights.shape());
  if (dims.size() != 3 || weight_dims.size() != 2 || count < 1)
    return execution_error(fmt::format(
        "input is {}, weights {} and num_heads {}; they must be [batch,length,hidden], [hidden,columns] and 1 or more",
        input.shape().to_string(), weights.shape().to_string(), count));
  Ints widths = op.find_integers("qkv_hidden_sizes").value_or(Ints{});
  if (widths.empty()) widths = Ints(3, weight_dims[1] / 3);
  if (widths.size() != 3 || widths[0] != widths[1] || widths[0] < 1 || widths[2] < 1 || widths[0] > weight_dims[1] ||
      2 * widths[0] + widths[2] != weight_dims[1])
    return wrong_attribute("qkv_hidden_sizes", widths,
                           "be three sizes of 1 or more, the first two equal, whose sum is the columns of weights, {}",
                           weight_dims[1]);
  Tensor all = PX_TRY(run_inner(op, {"MatMul", 13}, {input, weights}));
  if (op.has_input(inputs.bias)) {
    const Tensor bias = PX_TRY(inner_cast(op, op.input(inputs.bias), all.dtype()));
    all = PX_TRY(inner_binary(op, "Add", all, bias));
  }
  Heads heads;
  Tensor* parts[] = {&heads.q, &heads.k, &heads.v};
  int64_t begin = 0;
  for (int64_t part = 0; part < 3; ++part) {
    const Tensor slice = PX_TRY(columns(op, all, begin, begin + widths[part]));
    *parts[part] = PX_TRY(split_heads(op, slice, count));
    begin += widths[part];
  }
  heads.scale = op.find_real("scale").value_or(0.0);
  heads.causal = op.integer("unidirectional") != 0;
  MaskInputs mask = inputs.mask;
  if (op.has_input(inputs.past)) {
    const Tensor past_k = PX_TRY(half_of_past(op, inputs.past, 0, all.dtype()));
    const Tensor past_v = PX_TRY(half_of_past(op, inputs.past, 1, all.dtype()));
    mask.past = heads.past = past_k.shape()[2];
    heads.k = PX_TRY(joined_rows(op, past_k, heads.k));
    heads.v = PX_TRY(joined_rows(op, past_v, heads.v));
  }
  PX_TRY(add_masks(op, mask, heads));
  const Attended attended = PX_TRY(attend(op, heads));
  const Tensor joined = PX_TRY(join_heads(op, attended.y));
  PX_TRY(set_cast(op, 0, joined, inputs.dtype));
  if (!op.wants_output(1)) return {};
  const Ints key_dims(heads.k.shape());
  const Ints stacked{1, key_dims[0], key_dims[1], key_dims[2], key_dims[3]};
  if (!(heads.v.shape() == heads.k.shape()))
    return wrong_shape("the values", heads.v.shape(), "have the shape of the keys, {}, for output present",
                       heads.k.shape().to_string());
  const Tensor k = PX_TRY(reshaped(heads.k, stacked));
  const Tensor v = PX_TRY(reshaped(heads.v, stacked));
  const Tensor present = PX_TRY(run_inner(op, {"Concat", 13, {int_attribute("axis", 0)}}, {k, v}));
  return set_cast(op, 1, present, inputs.dtype);
}

// Float16 is multiplied as it is, with sums in float32; the rest is computed in float32.
Status attention(Context& op) {
  const DType dtype = op.input(0).dtype();
  const Tensor input = PX_TRY(inner_cast(op, op.input(0), head_type(dtype)));
  const Tensor weights = PX_TRY(inner_cast(op, op.input(1), head_type(dtype)));
  return attend_projection(op, input, weights, {2, 4, {3, 5}, dtype});
}

// Attention of the dequantized input and weights.
Status quantized_attention(Context& op) {
  const Tensor input = PX_TRY(real_values(op, {0, 3, 6}));
  const Tensor weights = PX_TRY(real_values(op, {1, 4, 7}));
  constexpr int64_t kNone = 99;  // it has no attention bias
  return attend_projection(op, input, weights, {2, 8, {5, kNone}, op.input(2).dtype()});
}

// ---- RotaryEmbedding: one position is that of the first token ----

Status rotary_embedding(Context& op) {
  const Tensor& x = op.input(0);
  const Ints dims(x.shape());
  if (op.find_real("scale").value_or(1.0) != 1.0)
    return unsupported(
        fmt::format("attribute 'scale' is {}; only 1 has a kernel here, as the operator's page does not define another",
                    *op.find_real("scale")));
  if (dims.size() != 3 && dims.size() != 4) return wrong_input(op, 0, "have rank 3 or 4");
  const Ints caches(op.input(2).shape());
  if (caches.size() != 2 || !(op.input(3).shape() == op.input(2).shape()))
    return wrong_input(op, 2, "have rank 2 and the shape of sin_cache, {}", op.input(3).shape().to_string());
  const int64_t batch = dims[0], length = dims[dims.size() == 4 ? 2 : 1], rotated = 2 * caches[1];
  const int64_t asked = op.find_integer("rotary_embedding_dim").value_or(0);
  if (asked != 0 && asked != rotated)
    return wrong_attribute("rotary_embedding_dim", asked, "be 0 or {}, twice the columns of the caches", rotated);
  Ints positions = all_integers(op.input(1));
  if (positions.size() == 1 && op.input(1).shape().rank() == 1) {
    const int64_t first = positions[0];
    if (first < 0 || first > caches[0])
      return wrong_value("the first position", first, "be in [0, {}], the rows of the caches", caches[0]);
    positions = Ints(batch * length);
    for (int64_t i = 0; i < batch * length; ++i) positions[i] = first + i % length;
  }
  if (positions.size() != batch * length)
    return wrong_input(op, 1, "have 1 or {} elements, one for each token", batch * length);
  int64_t heads = op.find_integer("num_heads").value_or(0);
  if (heads == 0 && dims.size() == 3 && rotated > 0) heads = dims[2] / rotated;
  InnerOp inner{"RotaryEmbedding",
                23,
                {int_attribute("interleaved", op.find_integer("interleaved").value_or(0)),
                 int_attribute("rotary_embedding_dim", rotated)}};
  if (dims.size() == 3) inner.attributes.push_back(int_attribute("num_heads", heads));
  const Tensor ids = Tensor::from<int64_t>(Shape{batch, length}, positions);
  Tensor y = PX_TRY(run_inner(op, inner, {op.value(0), op.value(2), op.value(3), ids}));
  op.set_output(0, std::move(y));
  return {};
}

constexpr KernelRow<CompiledDevice> kContribAttentionRows[] = {
    contributed_row("Attention", kNarrowFloats, attention),
    contributed_row("DecoderMaskedMultiHeadAttention", kNarrowFloats, decoder_masked_attention),
    contributed_row("MultiHeadAttention", kNarrowFloats, multi_head_attention),
    contributed_row("QAttention", kBytes, quantized_attention),
    reads_on_host({1}, contributed_row("RotaryEmbedding", kNarrowFloats, rotary_embedding)),
};

}  // namespace

template <>
Rows<CompiledDevice> contrib_attention_rows() {
  return kContribAttentionRows;
}

}  // namespace parallax::runtime
