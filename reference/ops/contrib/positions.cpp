// SPDX-License-Identifier: Apache-2.0
// com.microsoft's biases by position and other small helpers of language models: RelativePositionBias,
// GatedRelativePositionBias, NGramRepeatBlock, QEmbedLayerNormalization.
#include <algorithm>
#include <cmath>
#include <limits>

#include "inspector/model/rule_errors.h"
#include "reference/ops/contrib/quantized.h"
#include "reference/ops/contrib/shared.h"
#include "reference/ops/families.h"
#include "reference/ops/inner_op.h"
#include "reference/ops/map.h"

namespace parallax::reference {
namespace {

// T5's buckets (Raffel et al., "Exploring the Limits of Transfer Learning", section 2.1): one for each small distance,
// then logarithmically wider ones up to `farthest`; a half of them for keys after the query where `both` ways count.
int64_t bucket_of(int64_t distance, int64_t buckets, int64_t farthest, bool both) {
  int64_t first = 0;
  if (both) {
    buckets /= 2;
    first = distance > 0 ? buckets : 0;
    distance = std::abs(distance);
  } else {
    distance = std::max<int64_t>(0, -distance);
  }
  const int64_t exact = buckets / 2;
  if (distance < exact || exact == 0) return first + std::min(distance, std::max<int64_t>(0, buckets - 1));
  const double share = std::log(static_cast<double>(distance) / static_cast<double>(exact)) /
                       std::log(static_cast<double>(farthest) / static_cast<double>(exact));
  const auto step = static_cast<int64_t>(share * static_cast<double>(buckets - exact));
  return first + std::min(exact + step, buckets - 1);
}

// The real values of a quantized table or vector: the input indices of its numbers, its scale and its zero point.
Result<Value> real_input(const OpContext& op, size_t numbers, size_t scale, size_t zero_point) {
  if (!op.has_input(numbers)) return Value();
  if (!op.has_input(scale)) return wrong_input(op, scale, "be given as the scale of {}", input_name(op, numbers));
  if (op.input(scale).element_count() != 1) return wrong_input(op, scale, "be one number");
  return Value(PX_TRY(dequantize(op, {numbers, scale, zero_point})));
}

// ContribOperators.md, com.microsoft.RelativePositionBias: [1, heads, queries, keys] from the table, whose page says
// column-major: the buckets of a head are adjacent.
Status op_contrib_relative_position_bias(OpContext& op) {
  const Shape& table = op.input(0).shape();
  const int64_t queries = PX_TRY(op.int64_of_input(1));
  const int64_t keys = PX_TRY(op.int64_of_input(2));
  const int64_t farthest = op.int_attribute("max_distance");
  if (table.rank() != 2 || table[0] < 1 || queries < 0 || keys < 0 || farthest < 1)
    return wrong_input(op, 0,
                       "have rank 2 and rows, for lengths of 0 or more ({}, {}) and a 'max_distance' of 1 or more ({})",
                       queries, keys, farthest);
  const bool both = op.int_attribute("is_bidirectional") != 0;
  const std::vector<int64_t> dims{1, table[1], queries, keys};
  const Shape shape = PX_TRY(Shape::create(dims));
  Tensor output = PX_TRY(op.allocate(op.input(0).dtype(), shape));  // asks for the memory before it is used
  const Numbers<double> numbers(op.input(0));
  std::vector<double> row(static_cast<size_t>(keys));
  for (int64_t at = 0; keys > 0 && at < table[1] * queries; ++at) {
    const int64_t head = at / queries;
    for (int64_t key = 0; key < keys; ++key) {
      const int64_t bucket = bucket_of(key - at % queries, table[0], farthest, both);
      row[static_cast<size_t>(key)] = numbers[head * table[0] + bucket];
    }
    store<double>(output, at * keys, row);
  }
  return op.set_output(0, std::move(output));
}

// com.microsoft.GatedRelativePositionBias, as the page's lines of PyTorch have it.
Status op_contrib_gated_relative_position_bias(OpContext& op) {
  if (op.has_input(6)) return unsupported("token_offset is given; packed tokens have no function here");
  const Shape& query = op.input(0).shape();
  const Shape& weight = op.input(3).shape();
  const int64_t heads = op.int_attribute("num_heads");
  if (query.rank() != 3 || heads <= 0 || query[2] % heads != 0 || weight.rank() != 2 || weight[0] != query[2] / heads ||
      weight[1] % 2 != 0)
    return wrong_input(op, 0,
                       "be [batch,length,hidden] with a hidden size that 'num_heads' ({}) divides into the rows of "
                       "weight, {} with even columns",
                       heads, weight.to_string());
  const int64_t size = weight[0];
  const int64_t half = weight[1] / 2;
  PX_TRY(expect_shape(op, 1, Shape{query[2]}));
  PX_TRY(expect_shape(op, 4, Shape{weight[1]}));
  PX_TRY(expect_shape(op, 5, Shape{1, heads, 1, 1}));
  const Shape scores{query[0], heads, query[1], query[1]};
  const std::vector<double> positions = PX_TRY(broadcast_input(op, 2, scores));
  const Numbers<double> x(op.input(0)), bias(op.input(1)), w(op.input(3)), wb(op.input(4)), eco(op.input(5));
  std::vector<double> results;
  for (int64_t at = 0; at < query[0] * heads * query[1]; ++at) {
    const int64_t location = at % query[1];
    const int64_t head = at / query[1] % heads;
    const int64_t batch = at / query[1] / heads;
    double gates[2] = {0, 0};
    for (int64_t column = 0; column < weight[1]; ++column) {
      double sum = wb[column];
      for (int64_t k = 0; k < size; ++k) {
        const int64_t element = head * size + k;
        sum += (x[(batch * query[1] + location) * query[2] + element] + bias[element]) * w[k * weight[1] + column];
      }
      gates[column / half] += sum;
    }
    const double gate = sigmoid(gates[0]) * (sigmoid(gates[1]) * eco[head] - 1.0) + 2.0;
    for (int64_t key = 0; key < query[1]; ++key) {
      results.push_back(gate * positions[static_cast<size_t>(at * query[1] + key)]);
    }
  }
  return op.set_output(0, op.input(0).dtype(), scores, std::span<const double>(results));
}

// com.microsoft.NGramRepeatBlock: a token that would complete an n-gram the sequence already holds gets -inf.
Status op_contrib_ngram_repeat_block(OpContext& op) {
  const Shape& ids = op.input(0).shape();
  const Shape& scores = op.input(1).shape();
  const int64_t n = op.int_attribute("ngram_size");
  if (n < 1 || ids.rank() != 2 || scores.rank() != 2 || ids[0] != scores[0])
    return wrong_input(op, 0, "be [batch,length], scores, {}, be [batch,words], and 'ngram_size', {}, be 1 or more",
                       scores.to_string(), n);
  std::vector<double> results = PX_TRY(broadcast_input(op, 1, scores));
  const std::vector<int64_t> tokens = to_int64s(op.input(0));
  for (int64_t batch = 0; batch < ids[0]; ++batch) {
    const auto row = std::span(tokens).subspan(static_cast<size_t>(batch * ids[1]), static_cast<size_t>(ids[1]));
    const auto ending = static_cast<size_t>(n - 1);  // what the next token would be appended to
    for (size_t begin = 0; begin + ending < row.size(); ++begin) {
      if (!std::equal(row.end() - (n - 1), row.end(), row.begin() + static_cast<ptrdiff_t>(begin))) continue;
      const int64_t token = row[begin + ending];
      if (token < 0 || token >= scores[1])
        return wrong_value("a token of input_ids", token, "be in [0, {}), the words of scores", scores[1]);
      results[static_cast<size_t>(batch * scores[1] + token)] = -std::numeric_limits<double>::infinity();
    }
  }
  return op.set_output(0, op.input(1).dtype(), scores, std::span<const double>(results));
}

// com.microsoft.QEmbedLayerNormalization: EmbedLayerNormalization of the dequantized tables and factors.
Status op_contrib_q_embed_layer_normalization(OpContext& op) {
  std::vector<Value> inputs{op.value(0), op.value(1)};
  for (size_t part = 0; part < 5; ++part) inputs.push_back(PX_TRY(real_input(op, 2 + part, 8 + part, 13 + part)));
  if (op.has_input(7)) inputs.push_back(op.value(7));
  const InnerOp embed{
      "EmbedLayerNormalization", 1, {float_attribute("epsilon", op.float_attribute("epsilon"))}, "com.microsoft"};
  const std::vector<Value> made = PX_TRY(run_inner(op, embed, std::move(inputs), 2));
  PX_TRY(op.set_output(1, made[1]));
  return set_rounded(op, 0, DType::float32, made[0].tensor());
}

constexpr OpRow kContribPositionsRows[] = {
    {"GatedRelativePositionBias", kMicrosoft, 1, 1, op_contrib_gated_relative_position_bias},
    {"NGramRepeatBlock", kMicrosoft, 1, 1, op_contrib_ngram_repeat_block},
    {"QEmbedLayerNormalization", kMicrosoft, 1, 1, op_contrib_q_embed_layer_normalization},
    {"RelativePositionBias", kMicrosoft, 1, 1, op_contrib_relative_position_bias},
};

}  // namespace

OpRows contrib_positions_rows() { return kContribPositionsRows; }

}  // namespace parallax::reference
