// SPDX-License-Identifier: Apache-2.0
// com.microsoft's operators over sequences without their padding: RemovePadding, RestorePadding, PackedAttention,
// PackedMultiHeadAttention. Definitions: ContribOperators.md.
#include <algorithm>

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"
#include "runtime/ops/contrib/heads.h"
#include "runtime/ops/contrib_families.h"
#include "runtime/ops/contributed.h"

namespace parallax::runtime {
namespace {

using Context = ChainContext;

// ---- Padding ----

Result<Tensor> rows_at(Context& op, const Tensor& table, const Ints& rows) {
  return run_inner(op, {"Gather", 13, {int_attribute("axis", 0)}}, {table, Tensor::vector<int64_t>(rows)});
}

void set_integers(Context& op, int64_t output, const Shape& shape, const Ints& values) {
  op.set_output(output, Tensor::from<int32_t>(shape, std::vector<int32_t>(values.begin(), values.end())));
}

// The first sequence_token_count tokens of each sequence, and where they came from: the offsets of the tokens kept,
// then those of the padding.
Status remove_padding(Context& op) {
  const Tensor& x = op.input(0);
  const Ints dims(x.shape());
  if (dims.size() != 3 || op.input(1).element_count() != dims[0])
    return wrong_input(op, 0,
                       "be [batch,length,hidden], and sequence_token_count, {}, have one element for each batch entry",
                       op.input(1).shape().to_string());
  const Ints counts = all_integers(op.input(1));
  Ints kept, padding, cumulated{0};
  int64_t longest = 0;
  for (int64_t batch = 0; batch < dims[0]; ++batch) {
    const int64_t count = counts[batch];
    if (count < 0 || count > dims[1])
      return wrong_value("an entry of sequence_token_count", count, "be in [0, {}], the length of a sequence", dims[1]);
    for (int64_t location = 0; location < dims[1]; ++location)
      (location < count ? kept : padding).push_back(batch * dims[1] + location);
    cumulated.push_back(cumulated.back() + count);
    longest = std::max(longest, count);
  }
  const Tensor tokens = PX_TRY(reshaped(x, {dims[0] * dims[1], dims[2]}));
  op.set_output(0, PX_TRY(rows_at(op, tokens, kept)));
  for (int64_t location : padding) kept.push_back(location);
  set_integers(op, 1, Shape{dims[0], dims[1]}, kept);
  set_integers(op, 2, Shape{dims[0] + 1}, cumulated);
  set_integers(op, 3, Shape{1}, Ints{longest});
  return {};
}

// Tokens back at their offsets, zeros between them.
Status restore_padding(Context& op) {
  const Tensor& x = op.input(0);
  const Ints dims(x.shape()), offsets(op.input(1).shape());
  if (dims.size() != 2 || offsets.size() != 2 || dims[0] > product(offsets))
    return wrong_input(op, 0,
                       "be [tokens,hidden] with at most as many tokens as token_offset, {} of rank 2, has elements",
                       op.input(1).shape().to_string());
  Ints source(product(offsets), dims[0]);  // a row of zeros after the tokens
  const Ints locations = all_integers(op.input(1));
  for (int64_t token = 0; token < dims[0]; ++token) {
    if (locations[token] < 0 || locations[token] >= source.size())
      return wrong_value("an entry of token_offset", locations[token], "be in [0, {}), its elements", source.size());
    source[locations[token]] = token;
  }
  const Tensor zeros = PX_TRY(Tensor::zeros(x.dtype(), Shape{1, dims[1]}));
  const Tensor table = PX_TRY(run_inner(op, {"Concat", 13, {int_attribute("axis", 0)}}, {x, zeros}));
  const Tensor rows = PX_TRY(rows_at(op, table, source));
  op.set_output(0, PX_TRY(reshaped(rows, {offsets[0], offsets[1], dims[1]})));
  return {};
}

// ---- Attention within each sequence of packed tokens ----

// Rows [begin, end) along `axis`.
Result<Tensor> rows_of(Context& op, const Tensor& x, int64_t axis, int64_t begin, int64_t end) {
  const auto one = [](int64_t value) { return Tensor::vector<int64_t>(std::span<const int64_t>(&value, 1)); };
  return run_inner(op, {"Slice", 13}, {x, one(begin), one(end), one(axis)});
}

Result<Ints> sequence_begins(const OpCall& op, int64_t input, int64_t tokens) {
  const Ints begins = PX_TRY(op.integers_of_input(input));
  if (begins.empty() || !std::is_sorted(begins.begin(), begins.end()) || begins[0] != 0 || begins.back() != tokens)
    return wrong_input(op, input, "rise from 0 to {}, the number of tokens", tokens);
  return begins;
}

// The bias of one sample, [1, heads, length, length], of one that broadcasts to [batch, heads, longest, longest].
Result<Tensor> bias_of(Context& op, const Tensor& bias, int64_t sample, int64_t length) {
  Tensor part = bias;
  const Ints dims(bias.shape());
  if (dims.size() != 4) return wrong_shape("attention_bias", bias.shape(), "have rank 4");
  if (dims[0] != 1) part = PX_TRY(rows_of(op, part, 0, sample, sample + 1));
  for (const int64_t axis : {2, 3}) {
    if (dims[axis] != 1) part = PX_TRY(rows_of(op, part, axis, 0, length));
  }
  return part;
}

// Heads hold all tokens, [1, heads, tokens, size]; output 0 is [tokens, heads * size]. token_offset is [batch,
// longest].
Status attend_packed(Context& op, const Heads& all, const Ints& begins, int64_t token_offset, int64_t bias_input) {
  const Ints offsets(op.input(token_offset).shape());
  const int64_t batch = begins.size() - 1;
  if (offsets.size() != 2 || offsets[0] != batch)
    return wrong_input(op, token_offset, "be [{},length], one row for each sequence", batch);
  std::vector<Value> parts;
  for (int64_t sample = 0; sample < batch; ++sample) {
    const int64_t begin = begins[sample], end = begins[sample + 1];
    if (end - begin > offsets[1])
      return wrong_value(fmt::format("the length of sequence {}", sample), end - begin,
                         "be at most {}, the columns of token_offset", offsets[1]);
    if (begin == end) continue;
    Heads heads = all;
    for (Tensor* each : {&heads.q, &heads.k, &heads.v}) *each = PX_TRY(rows_of(op, *each, 2, begin, end));
    if (op.has_input(bias_input)) heads.mask = PX_TRY(bias_of(op, op.input(bias_input), sample, end - begin));
    const Attended attended = PX_TRY(attend(op, heads));
    parts.emplace_back(PX_TRY(join_heads(op, attended.y)));
  }
  const int64_t tokens = all.v.shape()[2], width = all.v.shape()[1] * all.v.shape()[3];
  if (parts.empty()) {
    PX_TRY(op.make_output(0, op.input(0).dtype(), shape_of({tokens, width})));
    return {};
  }
  const Tensor joined = PX_TRY(run_inner(op, {"Concat", 13, {int_attribute("axis", 1)}}, parts));
  const Tensor flat = PX_TRY(reshaped(joined, {tokens, width}));
  Tensor y = PX_TRY(inner_cast(op, flat, op.input(0).dtype()));
  op.set_output(0, std::move(y));
  return {};
}

// Columns of [tokens, width] as [1, heads, tokens, size].
Result<Tensor> heads_of(Context& op, const Tensor& x, int64_t begin, int64_t width, int64_t heads) {
  const Tensor part = PX_TRY(columns(op, x, begin, begin + width));
  const Tensor seen = PX_TRY(reshaped(part, {1, x.shape()[0], width}));
  return split_heads(op, seen, heads);
}

Status packed_attention(Context& op) {
  const Ints dims(op.input(0).shape()), weights(op.input(1).shape());
  if (dims.size() != 2 || weights.size() != 2 || op.input(2).element_count() != weights[1])
    return wrong_input(
        op, 0, "be [tokens,hidden], weights, {}, have rank 2, and bias, {}, an element for each of their columns",
        op.input(1).shape().to_string(), op.input(2).shape().to_string());
  const Tensor x = PX_TRY(inner_cast(op, op.input(0), DType::float32));
  const Tensor w = PX_TRY(inner_cast(op, op.input(1), DType::float32));
  const Tensor b = PX_TRY(inner_cast(op, op.input(2), DType::float32));
  Tensor all = PX_TRY(run_inner(op, {"MatMul", 13}, {x, w}));
  all = PX_TRY(inner_binary(op, "Add", all, b));
  Ints widths = op.find_integers("qkv_hidden_sizes").value_or(Ints{});
  if (widths.empty()) widths = Ints(3, weights[1] / 3);
  if (widths.size() != 3 || *std::min_element(widths.begin(), widths.end()) < 1 ||
      *std::max_element(widths.begin(), widths.end()) > weights[1] || widths[0] + widths[1] + widths[2] != weights[1])
    return wrong_attribute("qkv_hidden_sizes", widths,
                           "be three sizes of 1 or more whose sum is the columns of weights, {}", weights[1]);
  const int64_t count = op.integer("num_heads");
  Heads heads;
  heads.scale = op.find_real("scale").value_or(0.0);
  heads.q = PX_TRY(heads_of(op, all, 0, widths[0], count));
  heads.k = PX_TRY(heads_of(op, all, widths[0], widths[1], count));
  heads.v = PX_TRY(heads_of(op, all, widths[0] + widths[1], widths[2], count));
  const Ints begins = PX_TRY(sequence_begins(op, 4, dims[0]));
  return attend_packed(op, heads, begins, 3, 5);
}

// Queries, keys and values separate, or in one [tokens, heads, 3, size].
Status packed_multi_head_attention(Context& op) {
  const int64_t count = op.integer("num_heads");
  const Ints dims(op.input(0).shape());
  Heads heads;
  heads.scale = op.find_real("scale").value_or(0.0);
  Tensor* parts[] = {&heads.q, &heads.k, &heads.v};
  if (dims.size() == 4) {
    const Tensor wide = PX_TRY(inner_cast(op, op.input(0), DType::float32));
    const Tensor seen = PX_TRY(reshaped(wide, {1, dims[0], dims[1], dims[2], dims[3]}));
    for (int64_t part = 0; part < 3; ++part) *parts[part] = PX_TRY(packed_part(op, seen, count, 3, part));
  } else {
    for (int64_t part = 0; part < 3; ++part) {
      if (!op.has_input(part) || op.input(part).shape().rank() != 2)
        return wrong_input(op, part, "have rank 2: [tokens,hidden]");
      const Tensor wide = PX_TRY(inner_cast(op, op.input(part), DType::float32));
      *parts[part] = PX_TRY(heads_of(op, wide, 0, wide.shape()[1], count));
    }
  }
  if (op.has_input(3)) {
    const Tensor bias = PX_TRY(inner_cast(op, op.input(3), DType::float32));
    int64_t begin = 0;
    for (Tensor* part : parts) {
      const int64_t width = part->shape()[1] * part->shape()[3];
      if (begin + width > bias.element_count())
        return wrong_input(op, 3, "have {} or more elements, one for each column of query, key and value",
                           begin + width);
      const Tensor own = PX_TRY(columns(op, bias, begin, begin + width));
      const Tensor by_head = PX_TRY(reshaped(own, {part->shape()[1], 1, part->shape()[3]}));
      *part = PX_TRY(inner_binary(op, "Add", *part, by_head));
      begin += width;
    }
  }
  const Ints begins = PX_TRY(sequence_begins(op, 5, heads.q.shape()[2]));
  return attend_packed(op, heads, begins, 4, 6);
}

constexpr KernelRow<CompiledDevice> kContribPackedRows[] = {
    reads_on_host({4}, contributed_row("PackedAttention", kNarrowFloats, packed_attention)),
    reads_on_host({5}, contributed_row("PackedMultiHeadAttention", kNarrowFloats, packed_multi_head_attention)),
    reads_on_host({1}, contributed_row("RemovePadding", kMovable, remove_padding)),
    reads_on_host({1}, contributed_row("RestorePadding", kMovable, restore_padding)),
};

}  // namespace

template <>
Rows<CompiledDevice> contrib_packed_rows() {
  return kContribPackedRows;
}

}  // namespace parallax::runtime
