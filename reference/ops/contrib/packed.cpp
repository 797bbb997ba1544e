// SPDX-License-Identifier: Apache-2.0
// com.microsoft's attention over sequences without their padding: RemovePadding, RestorePadding, PackedAttention,
// PackedMultiHeadAttention.
#include <algorithm>

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"
#include "reference/ops/contrib/heads.h"
#include "reference/ops/contrib/shared.h"
#include "reference/ops/families.h"
#include "reference/ops/inner_op.h"
#include "reference/ops/map.h"
#include "reference/ops/move.h"

namespace parallax::reference {
namespace {

// Tokens of all sequences one after the other, [1, heads, tokens, size], and where each sequence begins and the last
// ends.
struct PackedTokens {
  HeadBlock queries, keys, values;
  std::vector<int64_t> begins;
};

Result<std::vector<int64_t>> read_begins(const OpContext& op, size_t index, int64_t tokens) {
  const std::vector<int64_t> begins = to_int64s(op.input(index));
  const bool ordered = std::is_sorted(begins.begin(), begins.end());
  if (begins.empty() || !ordered || begins.front() != 0 || begins.back() != tokens)
    return wrong_input(op, index, "rise from 0 to {}, the number of tokens", tokens);
  return begins;
}

HeadBlock slice_of(const HeadBlock& block, int64_t begin, int64_t end) {
  HeadBlock part{{}, 1, block.heads, end - begin, block.size};
  for (int64_t head = 0; head < block.heads; ++head) {
    const auto first = block.numbers.begin() + block.offset(0, head, begin);
    part.numbers.insert(part.numbers.end(), first, first + (end - begin) * block.size);
  }
  return part;
}

// Attention within each sequence; output 0 is [tokens, heads * size]. `token_offset` has shape [batch, sequence].
Status attend_packed(OpContext& op, const PackedTokens& in, size_t token_offset, size_t bias_input) {
  const Shape& offsets = op.input(token_offset).shape();
  const auto batch = static_cast<int64_t>(in.begins.size()) - 1;
  if (offsets.rank() != 2 || offsets[0] != batch)
    return wrong_input(op, token_offset, "be [{},length], one row for each sequence", batch);
  const Shape scores{batch, in.queries.heads, offsets[1], offsets[1]};
  const AttentionBias bias = PX_TRY(AttentionBias::create(op, bias_input, scores));
  std::vector<double> results;
  for (int64_t sample = 0; sample < batch; ++sample) {
    const int64_t begin = in.begins[static_cast<size_t>(sample)];
    const int64_t end = in.begins[static_cast<size_t>(sample) + 1];
    if (end - begin > offsets[1])
      return wrong_value(fmt::format("the length of sequence {}", sample), end - begin,
                         "be at most {}, the columns of token_offset", offsets[1]);
    Weighing how;
    how.scale = score_scale(op, in.queries.size);
    how.adjust = [&](int64_t, int64_t head, int64_t query, std::span<double> row) {
      bias.add(sample, head, query, row);
    };
    const Answer answer = PX_TRY(weigh(slice_of(in.queries, begin, end), slice_of(in.keys, begin, end),
                                       slice_of(in.values, begin, end), how, false));
    const std::vector<double> joined = join_heads(answer.values);
    results.insert(results.end(), joined.begin(), joined.end());
  }
  const Shape shape{in.values.sequence, in.values.heads * in.values.size};
  return op.set_output(0, op.input(0).dtype(), shape, std::span<const double>(results));
}

Result<HeadBlock> columns_of(std::span<const double> numbers, int64_t tokens, int64_t width, int64_t first,
                             int64_t hidden, int64_t heads) {
  if (heads <= 0 || hidden % heads != 0 || first + hidden > width)
    return wrong_value("the number of columns", hidden, "be one that {} heads divide, within the {} given", heads,
                       width);
  return split_heads(numbers, 1, tokens, width, first, heads, hidden / heads);
}

void add_bias(HeadBlock& block, std::span<const double> bias) {
  for (size_t at = 0; at < block.numbers.size(); ++at) {
    const auto position = static_cast<int64_t>(at);
    const int64_t head = position / (block.sequence * block.size);
    block.numbers[at] += bias[static_cast<size_t>(head * block.size + position % block.size)];
  }
}

// ContribOperators.md, com.microsoft.RemovePadding: the first sequence_token_count tokens of each sequence, and where
// they came from: the offsets of the tokens kept, then those of the padding.
Status op_contrib_remove_padding(OpContext& op) {
  const Tensor& input = op.input(0);
  const Shape& shape = input.shape();
  if (shape.rank() != 3) return wrong_input(op, 0, "have rank 3: [batch,length,hidden]");
  PX_TRY(expect_shape(op, 1, Shape{shape[0]}));
  std::vector<int64_t> kept, padding, cumulated{0};
  int64_t longest = 0;
  const std::vector<int64_t> counts = to_int64s(op.input(1));
  for (int64_t batch = 0; batch < shape[0]; ++batch) {
    const int64_t count = counts[static_cast<size_t>(batch)];
    if (count < 0 || count > shape[1])
      return wrong_value("an entry of sequence_token_count", count, "be in [0, {}], the length of a sequence",
                         shape[1]);
    for (int64_t location = 0; location < shape[1]; ++location) {
      (location < count ? kept : padding).push_back(batch * shape[1] + location);
    }
    cumulated.push_back(cumulated.back() + count);
    longest = std::max(longest, count);
  }
  Tensor output = PX_TRY(op.allocate(input.dtype(), Shape{static_cast<int64_t>(kept.size()), shape[2]}));
  gather_elements(input, output,
                  [&](int64_t at) { return kept[static_cast<size_t>(at / shape[2])] * shape[2] + at % shape[2]; });
  kept.insert(kept.end(), padding.begin(), padding.end());
  PX_TRY(op.set_output(0, std::move(output)));
  PX_TRY(op.set_output(1, DType::int32, Shape{shape[0], shape[1]}, std::span<const int64_t>(kept)));
  PX_TRY(op.set_output(2, DType::int32, Shape{shape[0] + 1}, std::span<const int64_t>(cumulated)));
  return op.set_output(3, DType::int32, Shape{1}, std::span<const int64_t>(&longest, 1));
}

// com.microsoft.RestorePadding: tokens back at their offsets, zeros between them.
Status op_contrib_restore_padding(OpContext& op) {
  const Shape& shape = op.input(0).shape();
  const Shape& offsets = op.input(1).shape();
  if (shape.rank() != 2 || offsets.rank() != 2 || shape[0] > offsets.element_count())
    return wrong_input(op, 0,
                       "be [tokens,hidden] with at most as many tokens as token_offset, {} of rank 2, has elements",
                       offsets.to_string());
  const std::vector<int64_t> dims{offsets[0], offsets[1], shape[1]};
  const Shape padded = PX_TRY(Shape::create(dims));
  const Numbers<double> numbers(op.input(0));
  std::vector<double> results(static_cast<size_t>(padded.element_count()), 0.0);
  const std::vector<int64_t> locations = to_int64s(op.input(1));
  for (int64_t token = 0; token < shape[0]; ++token) {
    const int64_t location = locations[static_cast<size_t>(token)];
    if (location < 0 || location >= offsets.element_count())
      return wrong_value("an entry of token_offset", location, "be in [0, {}), its elements", offsets.element_count());
    for (int64_t k = 0; k < shape[1]; ++k) {
      results[static_cast<size_t>(location * shape[1] + k)] = numbers[token * shape[1] + k];
    }
  }
  return op.set_output(0, op.input(0).dtype(), padded, std::span<const double>(results));
}

// com.microsoft.PackedAttention: Attention within each sequence of packed tokens.
Status op_contrib_packed_attention(OpContext& op) {
  const Shape& weights = op.input(1).shape();
  if (op.input(0).shape().rank() != 2 || weights.rank() != 2)
    return wrong_input(op, weights.rank() != 2 ? 1 : 0, "have rank 2");
  PX_TRY(expect_shape(op, 2, Shape{weights[1]}));
  Tensor projected = PX_TRY(run_inner(op, {"MatMul", 13}, {op.value(0), op.value(1)}));
  projected = PX_TRY(run_inner(op, {"Add", 13}, {projected, op.value(2)}));
  const int64_t tokens = projected.shape()[0];
  const int64_t width = projected.shape()[1];
  std::vector<int64_t> sizes = op.find_ints("qkv_hidden_sizes").value_or(std::vector<int64_t>{});
  if (sizes.empty()) sizes.assign(3, width / 3);
  const bool fits = sizes.size() == 3 &&
                    std::all_of(sizes.begin(), sizes.end(), [&](int64_t size) { return size > 0 && size <= width; }) &&
                    sizes[0] + sizes[1] + sizes[2] == width;
  if (!fits)
    return wrong_attribute("qkv_hidden_sizes", sizes,
                           "be three sizes of 1 or more whose sum is the columns of weights, {}", width);
  const int64_t heads = op.int_attribute("num_heads");
  const Numbers<double> numbers(projected);
  PackedTokens in;
  in.queries = PX_TRY(columns_of(numbers.span(), tokens, width, 0, sizes[0], heads));
  in.keys = PX_TRY(columns_of(numbers.span(), tokens, width, sizes[0], sizes[1], heads));
  in.values = PX_TRY(columns_of(numbers.span(), tokens, width, sizes[0] + sizes[1], sizes[2], heads));
  in.begins = PX_TRY(read_begins(op, 4, tokens));
  return attend_packed(op, in, 3, 5);
}

// com.microsoft.PackedMultiHeadAttention: queries, keys and values separate, or in one [tokens, heads, 3, size].
Status op_contrib_packed_multi_head_attention(OpContext& op) {
  const Shape& query = op.input(0).shape();
  const int64_t heads = op.int_attribute("num_heads");
  PackedTokens in;
  if (query.rank() == 4) {
    if (query[1] != heads || query[2] != 3) return wrong_input(op, 0, "be [tokens,{},3,size]", heads);
    const Tensor by_heads = PX_TRY(transpose(op, op.input(0), {0, 2, 1, 3}));  // [tokens, 3, heads, size]
    const Numbers<double> numbers(by_heads);
    const int64_t hidden = heads * query[3];
    in.queries = PX_TRY(columns_of(numbers.span(), query[0], 3 * hidden, 0, hidden, heads));
    in.keys = PX_TRY(columns_of(numbers.span(), query[0], 3 * hidden, hidden, hidden, heads));
    in.values = PX_TRY(columns_of(numbers.span(), query[0], 3 * hidden, 2 * hidden, hidden, heads));
  } else {
    const auto read = [&](size_t index) -> Result<HeadBlock> {
      if (!op.has_input(index) || op.input(index).shape().rank() != 2)
        return wrong_input(op, index, "have rank 2: [tokens,hidden]");
      const Shape& shape = op.input(index).shape();
      return columns_of(Numbers<double>(op.input(index)).span(), shape[0], shape[1], 0, shape[1], heads);
    };
    in.queries = PX_TRY(read(0));
    in.keys = PX_TRY(read(1));
    in.values = PX_TRY(read(2));
    if (in.keys.sequence != in.queries.sequence || in.values.sequence != in.queries.sequence)
      return wrong_input(op, in.keys.sequence != in.queries.sequence ? 1 : 2, "have {} tokens, as query has",
                         in.queries.sequence);
  }
  if (op.has_input(3)) {
    const int64_t hidden = in.queries.heads * in.queries.size;
    const int64_t values = in.values.heads * in.values.size;
    if (in.keys.size != in.queries.size)
      return wrong_value("the size of a head of keys", in.keys.size, "be that of queries, {}", in.queries.size);
    PX_TRY(expect_shape(op, 3, Shape{2 * hidden + values}));
    const Numbers<double> bias(op.input(3));
    add_bias(in.queries, bias.span());
    add_bias(in.keys, bias.span().subspan(static_cast<size_t>(hidden)));
    add_bias(in.values, bias.span().subspan(static_cast<size_t>(2 * hidden)));
  }
  in.begins = PX_TRY(read_begins(op, 5, in.queries.sequence));
  return attend_packed(op, in, 4, 6);
}

constexpr OpRow kContribPackedRows[] = {
    {"PackedAttention", kMicrosoft, 1, 1, op_contrib_packed_attention},
    {"PackedMultiHeadAttention", kMicrosoft, 1, 1, op_contrib_packed_multi_head_attention},
    {"RemovePadding", kMicrosoft, 1, 1, op_contrib_remove_padding},
    {"RestorePadding", kMicrosoft, 1, 1, op_contrib_restore_padding},
};

}  // namespace

OpRows contrib_packed_rows() { return kContribPackedRows; }

}  // namespace parallax::reference
