// SPDX-License-Identifier: Apache-2.0
// Splitting, joining and weighing heads; masks and biases of scores.
#include "reference/ops/contrib/heads.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "inspector/model/rule_errors.h"
#include "reference/ops/contrib/shared.h"
#include "reference/ops/map.h"

namespace parallax::reference {

Result<HeadBlock> HeadBlock::create(int64_t batch, int64_t heads, int64_t sequence, int64_t size) {
  const std::vector<int64_t> dims{batch, heads, sequence, size};
  const Shape shape = PX_TRY(Shape::create(dims));
  return HeadBlock{std::vector<double>(static_cast<size_t>(shape.element_count()), 0.0), batch, heads, sequence, size};
}

Result<HeadBlock> split_heads(std::span<const double> numbers, int64_t batch, int64_t sequence, int64_t width,
                              int64_t first, int64_t heads, int64_t size) {
  PX_CHECK(first + heads * size <= width);
  HeadBlock block = PX_TRY(HeadBlock::create(batch, heads, sequence, size));
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t s = 0; s < sequence; ++s) {
      const int64_t row = (b * sequence + s) * width + first;
      for (int64_t h = 0; h < heads; ++h) {
        for (int64_t k = 0; k < size; ++k) block.at(b, h, s, k) = numbers[static_cast<size_t>(row + h * size + k)];
      }
    }
  }
  return block;
}

Result<HeadBlock> read_head_block(const OpContext& op, size_t index) {
  const Shape& shape = op.input(index).shape();
  if (shape.rank() != 4) return wrong_input(op, index, "be [batch,heads,sequence,size]");
  const Numbers<double> numbers(op.input(index));
  return HeadBlock{{numbers.span().begin(), numbers.span().end()}, shape[0], shape[1], shape[2], shape[3]};
}

std::vector<double> join_heads(const HeadBlock& block) {
  std::vector<double> joined;
  joined.reserve(block.numbers.size());
  for (int64_t b = 0; b < block.batch; ++b) {
    for (int64_t s = 0; s < block.sequence; ++s) {
      for (int64_t h = 0; h < block.heads; ++h) {
        for (int64_t k = 0; k < block.size; ++k) joined.push_back(block.at(b, h, s, k));
      }
    }
  }
  return joined;
}

Result<HeadBlock> concatenate(const HeadBlock& first, const HeadBlock& second) {
  if (first.batch != second.batch || first.heads != second.heads || first.size != second.size)
    return wrong_shape("the past", first.shape(), "have the batch, heads and head size of the new tokens, {}",
                       second.shape().to_string());
  HeadBlock joined{{}, first.batch, first.heads, first.sequence + second.sequence, first.size};
  for (int64_t row = 0; row < first.batch * first.heads; ++row) {
    const auto append = [&](const HeadBlock& block) {
      const auto begin = block.numbers.begin() + row * block.sequence * block.size;
      joined.numbers.insert(joined.numbers.end(), begin, begin + block.sequence * block.size);
    };
    append(first);
    append(second);
  }
  return joined;
}

namespace {

// In place; `sink` is one more score, or -infinity for none. Nothing to see gives zeros.
void softmax_row(std::span<double> row, double sink) {
  double highest = sink;
  for (double value : row) highest = std::isnan(value) ? value : std::max(highest, value);
  if (std::isinf(highest) && highest < 0) return std::fill(row.begin(), row.end(), 0.0);
  double sum = std::exp(sink - highest);
  for (double& value : row) sum += value = std::exp(value - highest);
  for (double& value : row) value /= sum;
}

}  // namespace

Result<Answer> weigh(const HeadBlock& queries, const HeadBlock& keys, const HeadBlock& values, const Weighing& how,
                     bool keep_scores) {
  const bool fits = keys.heads > 0 && queries.heads % keys.heads == 0 && values.heads == keys.heads &&
                    queries.size == keys.size && values.sequence == keys.sequence && queries.batch == keys.batch &&
                    values.batch == keys.batch;
  if (!fits)
    return wrong_shape("the keys", keys.shape(),
                       "fit queries {} and values {}: batch and head size of the former, length of the latter",
                       queries.shape().to_string(), values.shape().to_string());
  const double none = -std::numeric_limits<double>::infinity();
  Answer answer{PX_TRY(HeadBlock::create(queries.batch, queries.heads, queries.sequence, values.size)), {}, {}};
  const auto width = static_cast<size_t>(keys.sequence);
  std::vector<double> scores(static_cast<size_t>(queries.sequence) * width);
  for (int64_t index = 0; index < queries.batch * queries.heads; ++index) {
    const int64_t batch = index / queries.heads;
    const int64_t head = index % queries.heads;
    const int64_t shared = head / (queries.heads / keys.heads);
    multiply(queries.matrix(batch, head), keys.matrix(batch, shared).transposed(), std::span(scores));
    for (int64_t query = 0; query < queries.sequence; ++query) {
      const auto row = std::span(scores).subspan(static_cast<size_t>(query) * width, width);
      for (double& score : row) {
        score *= how.scale;
        if (how.softcap > 0) score = how.softcap * std::tanh(score / how.softcap);
      }
      how.adjust(batch, head, query, row);
      if (keep_scores) answer.scores.insert(answer.scores.end(), row.begin(), row.end());
      softmax_row(row, how.sinks.empty() ? none : how.sinks[static_cast<size_t>(head)]);
      if (keep_scores) answer.weights.insert(answer.weights.end(), row.begin(), row.end());
    }
    const Matrix<double> weights{scores, queries.sequence, keys.sequence, keys.sequence, 1};
    multiply(weights, values.matrix(batch, shared),
             std::span(answer.values.numbers).subspan(static_cast<size_t>(answer.values.offset(batch, head, 0))));
  }
  return answer;
}

double score_scale(const OpContext& op, int64_t size) {
  const double given = op.find_float("scale").value_or(0.0);
  return given != 0.0 ? given : 1.0 / std::sqrt(static_cast<double>(size));
}

Result<AttentionBias> AttentionBias::create(const OpContext& op, size_t index, const Shape& scores) {
  AttentionBias bias;
  if (!op.has_input(index)) return bias;
  const Shape& given = op.input(index).shape();
  if (given.rank() != 4 || !broadcasts_to(given, scores))
    return wrong_input(op, index, "have rank 4 and broadcast to the scores, {}", scores.to_string());
  bias.numbers_ = PX_TRY(broadcast_input(op, index, scores));
  bias.shape_ = scores;
  return bias;
}

void AttentionBias::add(int64_t batch, int64_t head, int64_t query, std::span<double> row) const {
  if (numbers_.empty()) return;
  const auto begin = static_cast<size_t>(((batch * shape_[1] + head) * shape_[2] + query) * shape_[3]);
  for (size_t key = 0; key < row.size(); ++key) row[key] += numbers_[begin + key];
}

Result<PaddingMask> PaddingMask::create(const OpContext& op, size_t index, const Shape& scores, int64_t past) {
  constexpr double kFilter = -10000.0;  // the default the pages name
  PaddingMask mask;
  mask.batch_ = scores[0];
  mask.queries_ = scores[2];
  mask.keys_ = scores[3];
  mask.filter_ = op.find_float("mask_filter_value").value_or(kFilter);
  if (op.has_input(index)) PX_TRY(mask.read(op.input(index), past));
  return mask;
}

Status PaddingMask::read(const Tensor& mask, int64_t past) {
  const std::vector<int64_t> numbers = to_int64s(mask);
  const Shape& shape = mask.shape();
  const auto at = [&](int64_t index) { return numbers[static_cast<size_t>(index)]; };
  std::function<bool(int64_t, int64_t, int64_t)> sees;
  const bool lengths = shape.rank() == 1 && (shape[0] == batch_ || shape[0] == 3 * batch_ + 2);
  if (lengths) {
    sees = [&](int64_t b, int64_t, int64_t k) { return k < at(b); };
  } else if (shape.rank() == 1 && shape[0] == 2 * batch_) {
    sees = [&](int64_t b, int64_t, int64_t k) { return k < at(b) && k >= at(batch_ + b); };
  } else if (shape == Shape{batch_, keys_}) {
    sees = [&](int64_t b, int64_t, int64_t k) { return at(b * keys_ + k) > 0; };
  } else if (shape == Shape{batch_, queries_, keys_}) {
    sees = [&](int64_t b, int64_t q, int64_t k) { return at((b * queries_ + q) * keys_ + k) > 0; };
  } else if (shape.rank() == 4 && shape[0] == batch_ && shape[1] == 1 && shape[2] >= past + queries_ &&
             shape[3] >= keys_) {
    sees = [&](int64_t b, int64_t q, int64_t k) { return at((b * shape[2] + past + q) * shape[3] + k) > 0; };
  } else {
    return wrong_shape("the mask", shape, "fit {} batch entries, {} queries and {} keys", batch_, queries_, keys_);
  }
  for (int64_t b = 0; b < batch_; ++b) {
    for (int64_t q = 0; q < queries_; ++q) {
      for (int64_t k = 0; k < keys_; ++k) visible_.push_back(sees(b, q, k));
    }
  }
  return {};
}

void PaddingMask::add(int64_t batch, int64_t query, std::span<double> row) const {
  if (visible_.empty()) return;
  const auto begin = static_cast<size_t>((batch * queries_ + query) * keys_);
  for (size_t key = 0; key < row.size(); ++key) row[key] += visible_[begin + key] ? 0.0 : filter_;
}

}  // namespace parallax::reference
