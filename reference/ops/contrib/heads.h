// SPDX-License-Identifier: Apache-2.0
// Attention as com.microsoft's operators share it: queries, keys and values by head, and the weighing of values.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "reference/ops/matrix.h"
#include "reference/ops/op_context.h"

namespace parallax::reference {

// Numbers as [batch, heads, sequence, size].
struct HeadBlock {
  std::vector<double> numbers;
  int64_t batch = 0, heads = 0, sequence = 0, size = 0;

  // Zeros. Errors: the dimensions make no shape.
  static Result<HeadBlock> create(int64_t batch, int64_t heads, int64_t sequence, int64_t size);

  int64_t offset(int64_t b, int64_t h, int64_t s) const { return ((b * heads + h) * sequence + s) * size; }
  double& at(int64_t b, int64_t h, int64_t s, int64_t k) { return numbers[static_cast<size_t>(offset(b, h, s) + k)]; }
  double at(int64_t b, int64_t h, int64_t s, int64_t k) const {
    return numbers[static_cast<size_t>(offset(b, h, s) + k)];
  }
  Matrix<double> matrix(int64_t b, int64_t h) const {
    return {std::span(numbers).subspan(static_cast<size_t>(offset(b, h, 0))), sequence, size, size, 1};
  }
  Shape shape() const { return Shape{batch, heads, sequence, size}; }
};

// Part [first, first + heads * size) of the last axis of numbers [batch, sequence, width], split into heads.
Result<HeadBlock> split_heads(std::span<const double> numbers, int64_t batch, int64_t sequence, int64_t width,
                              int64_t first, int64_t heads, int64_t size);
// [batch, heads, sequence, size] as it stands. Errors: another rank.
Result<HeadBlock> read_head_block(const OpContext& op, size_t index);
// [batch, sequence, heads * size]
std::vector<double> join_heads(const HeadBlock& block);
// The sequences of `first`, then those of `second`. Errors: they differ in another dimension.
Result<HeadBlock> concatenate(const HeadBlock& first, const HeadBlock& second);

// The changes to the scaled products of one query with all keys before the softmax: biases are added, hidden keys
// become -infinity.
using ScoreRow = std::function<void(int64_t batch, int64_t head, int64_t query, std::span<double> scores)>;

struct Weighing {
  double scale = 1;
  double softcap = 0;  // 0: none
  ScoreRow adjust;
  // With `sinks` each head's softmax has one more score that takes its share and answers nothing.
  std::vector<double> sinks;
};

struct Answer {
  HeadBlock values;
  std::vector<double> scores;   // before the softmax, [batch, heads, queries, keys]; empty unless asked for
  std::vector<double> weights;  // after it
};

// softmax(adjust(softcap(scale * Q K^T))) V for each head; keys and values are shared by groups of query heads. A query
// that sees no key is answered by zeros. Errors: the blocks do not fit each other.
Result<Answer> weigh(const HeadBlock& queries, const HeadBlock& keys, const HeadBlock& values, const Weighing& how,
                     bool keep_scores);

// 1 / sqrt(size) where the attribute `scale` is absent or 0, as onnxruntime reads it.
double score_scale(const OpContext& op, int64_t size);

// The input attention_bias [batch or 1, heads or 1, queries, keys], to be added to scores.
class AttentionBias {
 public:
  static Result<AttentionBias> create(const OpContext& op, size_t index, const Shape& scores);
  void add(int64_t batch, int64_t head, int64_t query, std::span<double> row) const;

 private:
  std::vector<double> numbers_;  // empty: no bias
  Shape shape_;
};

// mask_index of Attention, key_padding_mask of MultiHeadAttention: what is added to the scores of keys that are masked
// out. Forms: [batch] lengths; [2 * batch] ends, then starts; [3 * batch + 2] lengths, then cumulative ones; [batch,
// keys]; [batch, queries, keys]; [batch, 1, longest, longest].
class PaddingMask {
 public:
  static Result<PaddingMask> create(const OpContext& op, size_t index, const Shape& scores, int64_t past);
  void add(int64_t batch, int64_t query, std::span<double> row) const;

 private:
  Status read(const Tensor& mask, int64_t past);

  std::vector<bool> visible_;  // [batch, queries, keys]; empty: no mask
  int64_t queries_ = 0, keys_ = 0, batch_ = 0;
  double filter_ = 0;
};

}  // namespace parallax::reference
