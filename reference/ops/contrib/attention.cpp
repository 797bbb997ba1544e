// SPDX-License-Identifier: Apache-2.0
// com.microsoft's multi-head attentions: Attention, QAttention, MultiHeadAttention, DecoderMaskedMultiHeadAttention.
#include <limits>

#include "inspector/model/rule_errors.h"
#include "reference/ops/contrib/heads.h"
#include "reference/ops/contrib/shared.h"
#include "reference/ops/families.h"
#include "reference/ops/inner_op.h"
#include "reference/ops/map.h"

namespace parallax::reference {
namespace {

struct Projected {
  HeadBlock queries, keys, values;
};

// The scores' mask and bias: `mask` and `bias` are positions of inputs. Unidirectional queries, the last of all keys,
// see no later key.
struct MaskInputs {
  size_t mask;
  size_t bias;
};

Result<Answer> masked_attention(const OpContext& op, const Projected& in, int64_t past, MaskInputs inputs,
                                bool unidirectional, bool keep_scores) {
  const Shape scores{in.queries.batch, in.queries.heads, in.queries.sequence, in.keys.sequence};
  const PaddingMask mask = PX_TRY(PaddingMask::create(op, inputs.mask, scores, past));
  const AttentionBias bias = PX_TRY(AttentionBias::create(op, inputs.bias, scores));
  Weighing how;
  how.scale = score_scale(op, in.queries.size);
  how.adjust = [&](int64_t batch, int64_t head, int64_t query, std::span<double> row) {
    mask.add(batch, query, row);
    bias.add(batch, head, query, row);
    for (int64_t key = past + query + 1; unidirectional && key < in.keys.sequence; ++key) {
      row[static_cast<size_t>(key)] = -std::numeric_limits<double>::infinity();
    }
  };
  return weigh(in.queries, in.keys, in.values, how, keep_scores);
}

Status set_joined(OpContext& op, const HeadBlock& answer, DType dtype) {
  const Shape shape{answer.batch, answer.sequence, answer.heads * answer.size};
  return op.set_output(0, dtype, shape, std::span<const double>(join_heads(answer)));
}

Status set_block(OpContext& op, size_t index, DType dtype, const HeadBlock& block) {
  return op.set_output(index, dtype, block.shape(), std::span<const double>(block.numbers));
}

// ---- Attention: one projection for queries, keys and values ----

Result<std::vector<int64_t>> hidden_sizes(const OpContext& op, int64_t total, int64_t heads) {
  std::vector<int64_t> sizes = op.find_ints("qkv_hidden_sizes").value_or(std::vector<int64_t>{});
  if (sizes.empty()) sizes.assign(3, total / 3);
  const bool fits = heads > 0 && sizes.size() == 3 && sizes[0] > 0 && sizes[0] == sizes[1] && sizes[2] > 0 &&
                    sizes[0] <= total && sizes[2] <= total && 2 * sizes[0] + sizes[2] == total &&
                    sizes[0] % heads == 0 && sizes[2] % heads == 0;
  if (fits) return sizes;
  return wrong_attribute(
      "qkv_hidden_sizes", sizes,
      "be three sizes that {} heads divide, the first two equal, whose sum is {}, the projected columns", heads, total);
}

// `projected` is [batch, sequence, columns].
Result<Projected> split_projection(const OpContext& op, const Tensor& projected) {
  const int64_t heads = op.int_attribute("num_heads");
  const Shape& shape = projected.shape();
  const std::vector<int64_t> sizes = PX_TRY(hidden_sizes(op, shape[2], heads));
  const Numbers<double> numbers(projected);
  const auto part = [&](size_t index, int64_t first) {
    return split_heads(numbers.span(), shape[0], shape[1], shape[2], first, heads, sizes[index] / heads);
  };
  return Projected{PX_TRY(part(0, 0)), PX_TRY(part(1, sizes[0])), PX_TRY(part(2, sizes[0] + sizes[1]))};
}

// past and present are [2, batch, heads, sequence, size]: keys, then values.
Result<HeadBlock> half_of_past(const OpContext& op, size_t index, size_t half) {
  const Shape& shape = op.input(index).shape();
  if (shape.rank() != 5 || shape[0] != 2)
    return wrong_input(op, index, "have rank 5 and a first axis of 2, keys and values");
  const Numbers<double> numbers(op.input(index));
  const auto count = static_cast<size_t>(numbers.size() / 2);
  const auto part = numbers.span().subspan(half * count, count);
  return HeadBlock{{part.begin(), part.end()}, shape[1], shape[2], shape[3], shape[4]};
}

Status attend_projected(OpContext& op, const Tensor& projected, DType dtype, size_t past_input, MaskInputs inputs) {
  if (op.find_int("do_rotary").value_or(0) != 0) return unsupported("do_rotary: the page does not say how it turns");
  if (op.find_int("past_present_share_buffer").value_or(0) != 0) {
    return unsupported("past_present_share_buffer: past and present are never one buffer here");
  }
  Projected in = PX_TRY(split_projection(op, projected));
  const int64_t fresh = in.keys.sequence;
  if (op.has_input(past_input)) {
    const HeadBlock past_keys = PX_TRY(half_of_past(op, past_input, 0));
    const HeadBlock past_values = PX_TRY(half_of_past(op, past_input, 1));
    in.keys = PX_TRY(concatenate(past_keys, in.keys));
    in.values = PX_TRY(concatenate(past_values, in.values));
  }
  const bool unidirectional = op.int_attribute("unidirectional") != 0;
  const Answer answer = PX_TRY(masked_attention(op, in, in.keys.sequence - fresh, inputs, unidirectional, false));
  PX_TRY(set_joined(op, answer.values, dtype));
  if (!op.wants_output(1)) return {};
  if (in.keys.size != in.values.size)
    return wrong_value("the size of a head of keys", in.keys.size, "be that of values, {}, for output present",
                       in.values.size);
  std::vector<double> present = in.keys.numbers;
  present.insert(present.end(), in.values.numbers.begin(), in.values.numbers.end());
  const Shape shape{2, in.keys.batch, in.keys.heads, in.keys.sequence, in.keys.size};
  return op.set_output(1, dtype, shape, std::span<const double>(present));
}

Result<Tensor> project(const OpContext& op, const Tensor& input, const Tensor& weights, size_t bias) {
  if (input.shape().rank() != 3 || weights.shape().rank() != 2)
    return wrong_shape("input", input.shape(), "be [batch,sequence,hidden], and weights, {}, have rank 2",
                       weights.shape().to_string());
  Tensor projected = PX_TRY(run_inner(op, {"MatMul", 13}, {input, weights}));
  if (!op.has_input(bias)) return projected;
  PX_TRY(expect_shape(op, bias, Shape{weights.shape()[1]}));
  return run_inner(op, {"Add", 13}, {projected, op.value(bias)});
}

// (x - zero point) * scale, with one scale and zero point or one for each column.
Result<Tensor> dequantized(const OpContext& op, size_t x, size_t scale, size_t zero_point) {
  std::vector<Value> inputs{op.value(x), op.value(scale)};
  if (op.has_input(zero_point)) inputs.push_back(op.value(zero_point));
  return run_inner(op, {"DequantizeLinear", 13, {int_attribute("axis", -1)}}, std::move(inputs));
}

// ---- MultiHeadAttention: queries, keys and values come projected ----

// [batch, sequence, heads, parts, size]: queries, keys and values (or keys and values) of a token side by side.
Result<HeadBlock> packed_part(const OpContext& op, size_t index, int64_t parts, int64_t part) {
  const Shape& shape = op.input(index).shape();
  const int64_t heads = op.int_attribute("num_heads");
  if (shape.rank() != 5 || shape[2] != heads || shape[3] != parts)
    return wrong_input(op, index, "be [batch,sequence,{},{},size]", heads, parts);
  const Numbers<double> numbers(op.input(index));
  HeadBlock block = PX_TRY(HeadBlock::create(shape[0], heads, shape[1], shape[4]));
  for (int64_t at = 0; at < numbers.size(); ++at) {
    if (at / shape[4] % parts != part) continue;
    const int64_t token = at / shape[4] / parts / heads;
    block.at(token / shape[1], at / shape[4] / parts % heads, token % shape[1], at % shape[4]) = numbers[at];
  }
  return block;
}

Result<HeadBlock> read_tokens(const OpContext& op, size_t index) {
  const Shape& shape = op.input(index).shape();
  const int64_t heads = op.int_attribute("num_heads");
  if (shape.rank() == 4) return read_head_block(op, index);
  if (shape.rank() != 3 || heads <= 0 || shape[2] % heads != 0)
    return wrong_input(op, index, "be [batch,sequence,hidden], with a hidden size that splits into {} heads", heads);
  const Numbers<double> numbers(op.input(index));
  return split_heads(numbers.span(), shape[0], shape[1], shape[2], 0, heads, shape[2] / heads);
}

Status add_bias(HeadBlock& block, std::span<const double> bias, int64_t first) {
  for (size_t at = 0; at < block.numbers.size(); ++at) {
    const auto position = static_cast<int64_t>(at);
    const int64_t head = position / (block.sequence * block.size) % block.heads;
    block.numbers[at] += bias[static_cast<size_t>(first + head * block.size + position % block.size)];
  }
  return {};
}

Result<Projected> read_projected(const OpContext& op, size_t bias_input) {
  const bool packed = op.input(0).shape().rank() == 5;
  Projected in;
  in.queries = packed ? PX_TRY(packed_part(op, 0, 3, 0)) : PX_TRY(read_tokens(op, 0));
  if (packed) {
    if (op.has_input(1))
      return wrong_input(op, 1, "not be given where query is packed with keys and values, of rank 5");
    in.keys = PX_TRY(packed_part(op, 0, 3, 1));
    in.values = PX_TRY(packed_part(op, 0, 3, 2));
  } else if (!op.has_input(1)) {
    return wrong_input(op, 1, "be given unless query is packed, of rank 5");
  } else if (op.input(1).shape().rank() == 5) {
    in.keys = PX_TRY(packed_part(op, 1, 2, 0));
    in.values = PX_TRY(packed_part(op, 1, 2, 1));
  } else if (!op.has_input(2)) {
    return wrong_input(op, 2, "be given unless keys and values are packed");
  } else {
    in.keys = PX_TRY(read_tokens(op, 1));
    in.values = PX_TRY(read_tokens(op, 2));
  }
  if (!op.has_input(bias_input)) return in;
  const int64_t hidden = in.queries.heads * in.queries.size;
  PX_TRY(expect_shape(op, bias_input, Shape{2 * hidden + in.values.heads * in.values.size}));
  const Numbers<double> bias(op.input(bias_input));
  if (in.keys.heads * in.keys.size != hidden)
    return wrong_value("the hidden size of keys", in.keys.heads * in.keys.size, "be that of queries, {}", hidden);
  PX_TRY(add_bias(in.queries, bias.span(), 0));
  PX_TRY(add_bias(in.keys, bias.span(), hidden));
  PX_TRY(add_bias(in.values, bias.span(), 2 * hidden));
  return in;
}

// Inputs that MultiHeadAttention and its decoder form share; their input indices differ.
struct ProjectedInputs {
  size_t bias, past_key, past_value;
  MaskInputs mask;
};

Status attend(OpContext& op, const ProjectedInputs& inputs, bool unidirectional) {
  Projected in = PX_TRY(read_projected(op, inputs.bias));
  const int64_t fresh = in.keys.sequence;
  if (op.has_input(inputs.past_key) != op.has_input(inputs.past_value))
    return wrong_input(op, inputs.past_key, "be given if and only if past_value is given");
  if (op.has_input(inputs.past_key)) {
    const HeadBlock past_keys = PX_TRY(read_head_block(op, inputs.past_key));
    const HeadBlock past_values = PX_TRY(read_head_block(op, inputs.past_value));
    in.keys = PX_TRY(concatenate(past_keys, in.keys));
    in.values = PX_TRY(concatenate(past_values, in.values));
  }
  const DType dtype = op.input(0).dtype();
  const Answer answer =
      PX_TRY(masked_attention(op, in, in.keys.sequence - fresh, inputs.mask, unidirectional, op.wants_output(3)));
  PX_TRY(set_joined(op, answer.values, dtype));
  PX_TRY(set_block(op, 1, dtype, in.keys));
  PX_TRY(set_block(op, 2, dtype, in.values));
  if (!op.wants_output(3)) return {};
  const Shape scores{in.queries.batch, in.queries.heads, in.queries.sequence, in.keys.sequence};
  return op.set_output(3, dtype, scores, std::span<const double>(answer.scores));
}

// ContribOperators.md, com.microsoft.Attention. Masked keys get mask_filter_value (-10000) added to their score; keys
// after a unidirectional query are not seen at all, as in onnxruntime.
Status op_contrib_attention(OpContext& op) {
  const Tensor projected = PX_TRY(project(op, op.input(0), op.input(1), 2));
  return attend_projected(op, projected, op.input(0).dtype(), 4, {3, 5});
}

// com.microsoft.QAttention: Attention of the dequantized input and weights. Its zero points default to 0.
Status op_contrib_q_attention(OpContext& op) {
  constexpr size_t kNone = 99;  // QAttention has no attention_bias
  const Tensor input = PX_TRY(dequantized(op, 0, 3, 6));
  const Tensor weights = PX_TRY(dequantized(op, 1, 4, 7));
  return attend_projected(op, PX_TRY(project(op, input, weights, 2)), op.input(2).dtype(), 8, {5, kNone});
}

// com.microsoft.MultiHeadAttention. The page calls the fourth output "normalized Q * K"; onnxruntime gives the scaled
// products with mask and bias, before the softmax, and so it is here.
Status op_contrib_multi_head_attention(OpContext& op) {
  if (op.has_input(8) || op.has_input(9))
    return unsupported("cache_indirection or a shared past buffer is given; they have no function here");
  return attend(op, {3, 6, 7, {4, 5}}, op.int_attribute("unidirectional") != 0);
}

// com.microsoft.DecoderMaskedMultiHeadAttention without shared buffers and beams: one query a sequence.
Status op_contrib_decoder_masked_multi_head_attention(OpContext& op) {
  if (op.has_input(7) || op.has_input(8) || op.has_input(9) ||
      op.find_int("past_present_share_buffer").value_or(0) != 0) {
    return unsupported("cache_indirection or a shared past buffer is given; they have no function here");
  }
  return attend(op, {10, 5, 6, {3, 4}}, false);
}

constexpr OpRow kContribAttentionRows[] = {
    {"Attention", kMicrosoft, 1, 1, op_contrib_attention},
    {"DecoderMaskedMultiHeadAttention", kMicrosoft, 1, 1, op_contrib_decoder_masked_multi_head_attention},
    {"MultiHeadAttention", kMicrosoft, 1, 1, op_contrib_multi_head_attention},
    {"QAttention", kMicrosoft, 1, 1, op_contrib_q_attention},
};

}  // namespace

OpRows contrib_attention_rows() { return kContribAttentionRows; }

}  // namespace parallax::reference
