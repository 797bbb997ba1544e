// SPDX-License-Identifier: Apache-2.0
// Attention and RotaryEmbedding of operator set 23 to 25.
#include <cmath>
#include <limits>

#include "inspector/model/rule_errors.h"
#include "reference/ops/families.h"
#include "reference/ops/map.h"
#include "reference/ops/matrix.h"
#include "reference/ops/move.h"

namespace parallax::reference {
namespace {

// A query, key or value as [batch, heads, sequence, size], whether it came with 4 axes or with heads joined to the last
// of 3.
struct Heads {
  std::vector<double> numbers;
  int64_t batch = 0, heads = 0, sequence = 0, size = 0;

  int64_t offset(int64_t b, int64_t h) const { return (b * heads + h) * sequence * size; }
  Matrix<double> matrix(int64_t b, int64_t h) const {
    return {std::span(numbers).subspan(static_cast<size_t>(offset(b, h))), sequence, size, size, 1};
  }
  Shape shape() const { return Shape{batch, heads, sequence, size}; }
};

Result<Heads> read_heads(const OpContext& op, size_t index, std::string_view heads_attribute) {
  const Tensor& tensor = op.input(index);
  const Shape& shape = tensor.shape();
  const Numbers<double> numbers(tensor);
  if (shape.rank() == 4) {
    return Heads{{numbers.span().begin(), numbers.span().end()}, shape[0], shape[1], shape[2], shape[3]};
  }
  const int64_t count = op.find_int(heads_attribute).value_or(0);
  if (shape.rank() != 3 || count <= 0 || shape[2] % count != 0)
    return wrong_input(op, index, "have rank 4, or rank 3 with a last axis that '{}' ({}) divides", heads_attribute,
                       count);
  Heads heads{std::vector<double>(static_cast<size_t>(numbers.size())), shape[0], count, shape[1], shape[2] / count};
  for (int64_t at = 0; at < numbers.size(); ++at) {
    const int64_t within = at % heads.size;
    const int64_t head = at / heads.size % count;
    const int64_t position = at / heads.size / count % heads.sequence;
    const int64_t batch = at / heads.size / count / heads.sequence;
    heads.numbers[static_cast<size_t>(heads.offset(batch, head) + position * heads.size + within)] = numbers[at];
  }
  return heads;
}

// The cached keys or values in front of the new ones.
Result<Heads> with_past(const OpContext& op, size_t index, Heads heads) {
  if (!op.has_input(index)) return heads;
  const Shape& shape = op.input(index).shape();
  if (shape.rank() != 4 || shape[0] != heads.batch || shape[1] != heads.heads || shape[3] != heads.size)
    return wrong_input(op, index, "be [{},{},past length,{}], to be joined with the new tokens", heads.batch,
                       heads.heads, heads.size);
  const Numbers<double> past(op.input(index));
  Heads joined{{}, heads.batch, heads.heads, shape[2] + heads.sequence, heads.size};
  const int64_t past_run = shape[2] * shape[3];
  const int64_t run = heads.sequence * heads.size;
  for (int64_t row = 0; row < heads.batch * heads.heads; ++row) {
    joined.numbers.insert(joined.numbers.end(), past.data() + row * past_run, past.data() + (row + 1) * past_run);
    joined.numbers.insert(joined.numbers.end(), heads.numbers.begin() + row * run,
                          heads.numbers.begin() + (row + 1) * run);
  }
  return joined;
}

// The bias that is added to each score [batch, heads, queries, keys]: the mask (0 or -inf for bool), broadcast; keys
// that a shorter mask does not reach, in the future of a causal query, outside its window, or beyond the sample's
// length, get -inf.
class ScoreBias {
 public:
  static Result<ScoreBias> create(const OpContext& op, const Shape& scores, int64_t past_length) {
    ScoreBias bias;
    bias.shape_ = scores;
    bias.past_ = past_length;
    bias.causal_ = op.int_attribute("is_causal") != 0;
    bias.left_ = op.find_int("left_window_size").value_or(-1);
    bias.right_ = op.find_int("right_window_size").value_or(-1);
    if (op.has_input(6)) {
      bias.lengths_ = to_int64s(op.input(6));
      if (static_cast<int64_t>(bias.lengths_.size()) != scores[0])
        return wrong_input(op, 6, "have {} elements, one length for each batch entry", scores[0]);
      for (int64_t length : bias.lengths_) {
        if (length < 0 || length > scores[3])
          return wrong_value("a length in nonpad_kv_seqlen", length, "be in [0, {}], the number of keys", scores[3]);
      }
    }
    if (op.has_input(3)) PX_TRY(bias.read_mask(op.input(3)));
    return bias;
  }

  double at(int64_t batch, int64_t head, int64_t query, int64_t key) const {
    constexpr double kHidden = -std::numeric_limits<double>::infinity();
    // With lengths given, the queries are the last of each sample's keys; otherwise they follow the past.
    const int64_t location = query + (lengths_.empty() ? past_ : lengths_[static_cast<size_t>(batch)] - shape_[2]);
    if (causal_ && key > location) return kHidden;
    if (left_ >= 0 && location - key > left_) return kHidden;
    if (right_ >= 0 && key - location > right_) return kHidden;
    if (!lengths_.empty() && key >= lengths_[static_cast<size_t>(batch)]) return kHidden;
    if (mask_.empty()) return 0;
    const int64_t row = (batch * shape_[1] + head) * shape_[2] + query;
    return key < mask_keys_ ? mask_[static_cast<size_t>(row * mask_keys_ + key)] : kHidden;
  }

 private:
  Status read_mask(const Tensor& mask) {
    const Shape& given = mask.shape();
    if (given.rank() < 1 || given.rank() > 4) return wrong_shape("attn_mask", given, "have rank 1 to 4");
    const int64_t last = given[given.rank() - 1];
    mask_keys_ = last == 1 ? shape_[3] : last;
    mask_keys_ = std::min(mask_keys_, shape_[3] + 1);  // one too many is an error below, however many there are
    const Shape to = PX_TRY(make_shape({shape_[0], shape_[1], shape_[2], mask_keys_}));
    if (mask_keys_ > shape_[3] || !broadcasts_to(given, to))
      return wrong_shape("attn_mask", given, "broadcast to the scores, {}", shape_.to_string());
    mask_.resize(static_cast<size_t>(to.element_count()));
    BroadcastInput(mask, to).read<double>(0, mask_);
    if (mask.dtype() != DType::bool_) return {};
    for (double& value : mask_) value = value != 0.0 ? 0.0 : -std::numeric_limits<double>::infinity();
    return {};
  }

  Shape shape_;
  std::vector<double> mask_;
  int64_t mask_keys_ = 0;
  std::vector<int64_t> lengths_;
  int64_t past_ = 0, left_ = -1, right_ = -1;
  bool causal_ = false;
};

// In place. A row in which everything is hidden becomes zeros, not NaN: no key, no answer.
void softmax_row(std::span<double> row) {
  double highest = -std::numeric_limits<double>::infinity();
  for (double value : row) highest = std::isnan(value) ? value : std::max(highest, value);
  if (std::isinf(highest) && highest < 0) return std::fill(row.begin(), row.end(), 0.0);
  double sum = 0;
  for (double& value : row) sum += value = std::exp(value - highest);
  for (double& value : row) value /= sum;
}

// The optional fourth output is, by the attribute qk_matmul_output_mode, 0 the scaled product, 1 after softcap, 2 with
// the mask added, 3 after softmax. The specification's text of version 23 was corrected to this order without a new
// version.
struct ScoreStages {
  double scale;
  double softcap;
  int64_t shown;
};

void finish_scores(const ScoreStages& stages, const ScoreBias& bias, int64_t batch, int64_t head, int64_t query,
                   std::span<double> row, std::span<double> shown) {
  const auto show = [&](int64_t stage) {
    if (!shown.empty() && stages.shown == stage) std::copy(row.begin(), row.end(), shown.begin());
  };
  for (double& value : row) value *= stages.scale;
  show(0);
  for (double& value : row) {
    if (stages.softcap > 0) value = stages.softcap * std::tanh(value / stages.softcap);
  }
  show(1);
  for (size_t key = 0; key < row.size(); ++key) row[key] += bias.at(batch, head, query, static_cast<int64_t>(key));
  show(2);
  softmax_row(row);
  show(3);
}

Status set_attention_outputs(OpContext& op, const Heads& answer, const Heads& keys, const Heads& values) {
  const DType dtype = op.input(0).dtype();
  PX_TRY(op.set_output(1, dtype, keys.shape(), std::span<const double>(keys.numbers)));
  PX_TRY(op.set_output(2, op.input(2).dtype(), values.shape(), std::span<const double>(values.numbers)));
  if (op.input(0).shape().rank() == 4)
    return op.set_output(0, dtype, answer.shape(), std::span<const double>(answer.numbers));
  std::vector<double> joined(answer.numbers.size());
  for (int64_t at = 0; at < static_cast<int64_t>(joined.size()); ++at) {
    const int64_t within = at % answer.size;
    const int64_t head = at / answer.size % answer.heads;
    const int64_t position = at / answer.size / answer.heads % answer.sequence;
    const int64_t batch = at / answer.size / answer.heads / answer.sequence;
    joined[static_cast<size_t>(at)] =
        answer.numbers[static_cast<size_t>(answer.offset(batch, head) + position * answer.size + within)];
  }
  const Shape shape{answer.batch, answer.sequence, answer.heads * answer.size};
  return op.set_output(0, dtype, shape, std::span<const double>(joined));
}

// softmax(softcap(scale * Q K^T) + mask) V for each head; keys and values are shared by groups of query heads.
Status op_attention(OpContext& op) {
  const Heads queries = PX_TRY(read_heads(op, 0, "q_num_heads"));
  const Heads new_keys = PX_TRY(read_heads(op, 1, "kv_num_heads"));
  const Heads new_values = PX_TRY(read_heads(op, 2, "kv_num_heads"));
  const Heads keys = PX_TRY(with_past(op, 4, new_keys));
  const Heads values = PX_TRY(with_past(op, 5, new_values));
  const bool fits = keys.heads > 0 && queries.heads % keys.heads == 0 && values.heads == keys.heads &&
                    queries.size == keys.size && values.sequence == keys.sequence && queries.batch == keys.batch &&
                    values.batch == keys.batch;
  if (!fits)
    return wrong_shape("K with its past", keys.shape(),
                       "fit Q {} and V {}: Q's batch and head size, V's length, heads that divide those of Q",
                       queries.shape().to_string(), values.shape().to_string());
  const Shape score_shape = PX_TRY(make_shape({queries.batch, queries.heads, queries.sequence, keys.sequence}));
  PX_TRY(make_shape({queries.batch, queries.heads, queries.sequence, values.size}));
  const ScoreBias bias = PX_TRY(ScoreBias::create(op, score_shape, keys.sequence - new_keys.sequence));
  const ScoreStages stages{op.find_float("scale").value_or(1.0 / std::sqrt(static_cast<double>(queries.size))),
                           op.float_attribute("softcap"), op.int_attribute("qk_matmul_output_mode")};
  Heads answer{{}, queries.batch, queries.heads, queries.sequence, values.size};
  answer.numbers.resize(static_cast<size_t>(answer.shape().element_count()));
  std::vector<double> shown(op.wants_output(3) ? static_cast<size_t>(score_shape.element_count()) : 0);
  std::vector<double> scores(static_cast<size_t>(queries.sequence * keys.sequence));
  for (int64_t index = 0; index < queries.batch * queries.heads; ++index) {
    const int64_t batch = index / queries.heads;
    const int64_t head = index % queries.heads;
    const int64_t shared = head / (queries.heads / keys.heads);
    multiply(queries.matrix(batch, head), keys.matrix(batch, shared).transposed(), std::span(scores));
    for (int64_t query = 0; query < queries.sequence; ++query) {
      const auto row =
          std::span(scores).subspan(static_cast<size_t>(query * keys.sequence), static_cast<size_t>(keys.sequence));
      const auto target = static_cast<size_t>((index * queries.sequence + query) * keys.sequence);
      finish_scores(stages, bias, batch, head, query, row,
                    shown.empty() ? std::span<double>() : std::span(shown).subspan(target, row.size()));
    }
    const Matrix<double> weights{scores, queries.sequence, keys.sequence, keys.sequence, 1};
    multiply(weights, values.matrix(batch, shared),
             std::span(answer.numbers).subspan(static_cast<size_t>(answer.offset(batch, head))));
  }
  PX_TRY(set_attention_outputs(op, answer, keys, values));
  if (shown.empty()) return {};
  return op.set_output(3, op.input(0).dtype(), score_shape, std::span<const double>(shown));
}

struct RotaryLayout {
  int64_t batch, heads, sequence, size;
  bool heads_inside;  // [batch, sequence, heads * size] instead of [batch, heads, sequence, size]

  int64_t offset(int64_t b, int64_t h, int64_t s) const {
    return heads_inside ? ((b * sequence + s) * heads + h) * size : ((b * heads + h) * sequence + s) * size;
  }
};

Result<RotaryLayout> rotary_layout(const OpContext& op) {
  const Shape& shape = op.input(0).shape();
  if (shape.rank() == 4) return RotaryLayout{shape[0], shape[1], shape[2], shape[3], false};
  const int64_t heads = op.find_int("num_heads").value_or(0);
  if (shape.rank() != 3 || heads <= 0 || shape[2] % heads != 0)
    return wrong_input(op, 0, "have rank 4, or rank 3 with a last axis that 'num_heads' ({}) divides", heads);
  return RotaryLayout{shape[0], heads, shape[1], shape[2] / heads, true};
}

// The row of the caches that belongs to a token: by position_ids [batch, sequence], else the caches are [batch,
// sequence, half].
Result<std::vector<int64_t>> rotary_rows(const OpContext& op, const RotaryLayout& layout, int64_t half) {
  const Shape& cache = op.input(1).shape();
  const int64_t tokens = layout.batch * layout.sequence;
  const bool by_position = op.has_input(3);
  if (!(cache == op.input(2).shape()) || cache.rank() != (by_position ? 2U : 3U) || cache[cache.rank() - 1] != half)
    return wrong_input(
        op, 1, "have rank {}, a last axis of {}, half of the elements to rotate, and the shape of sin_cache, {}",
        by_position ? 2 : 3, half, op.input(2).shape().to_string());
  std::vector<int64_t> rows;
  if (by_position) rows = to_int64s(op.input(3));
  for (int64_t token = 0; !by_position && token < tokens; ++token) rows.push_back(token);
  const int64_t limit = by_position ? cache[0] : cache[0] * cache[1];
  if (static_cast<int64_t>(rows.size()) != tokens)
    return wrong_length("position_ids", rows.size(), "have {}, one for each token", tokens);
  for (int64_t row : rows) {
    if (row < 0 || row >= limit) return wrong_value("a position", row, "be in [0, {}), the rows of the caches", limit);
  }
  return rows;
}

// Pairs (x1, x2) of each head are rotated: (cos x1 - sin x2, sin x1 + cos x2). Pairs are neighbors when interleaved,
// else the halves of the first rotary_embedding_dim elements; the elements after them stay.
Status op_rotary_embedding(OpContext& op) {
  const RotaryLayout layout = PX_TRY(rotary_layout(op));
  const int64_t asked = op.int_attribute("rotary_embedding_dim");
  const int64_t rotated = asked == 0 ? layout.size : asked;
  if (rotated < 0 || rotated > layout.size || rotated % 2 != 0)
    return wrong_attribute("rotary_embedding_dim", rotated, "be even and at most {}, the size of a head", layout.size);
  const int64_t half = rotated / 2;
  const bool interleaved = op.int_attribute("interleaved") != 0;
  const std::vector<int64_t> rows = PX_TRY(rotary_rows(op, layout, half));
  const Numbers<double> x(op.input(0)), cosines(op.input(1)), sines(op.input(2));
  std::vector<double> results(x.span().begin(), x.span().end());
  for (int64_t batch = 0; batch < layout.batch; ++batch) {
    for (int64_t head = 0; head < layout.heads; ++head) {
      for (int64_t position = 0; position < layout.sequence; ++position) {
        const int64_t base = layout.offset(batch, head, position);
        const int64_t row = rows[static_cast<size_t>(batch * layout.sequence + position)];
        for (int64_t pair = 0; pair < half; ++pair) {
          const int64_t first = base + (interleaved ? 2 * pair : pair);
          const int64_t second = base + (interleaved ? 2 * pair + 1 : pair + half);
          const double cosine = cosines[row * half + pair];
          const double sine = sines[row * half + pair];
          results[static_cast<size_t>(first)] = cosine * x[first] - sine * x[second];
          results[static_cast<size_t>(second)] = sine * x[first] + cosine * x[second];
        }
      }
    }
  }
  return op.set_output(0, op.input(0).dtype(), op.input(0).shape(), std::span<const double>(results));
}

constexpr OpRow kAttentionRows[] = {
    {"Attention", kOnnx, 23, 25, op_attention},
    {"RotaryEmbedding", kOnnx, 23, 23, op_rotary_embedding},
};

}  // namespace

OpRows attention_rows() { return kAttentionRows; }

}  // namespace parallax::reference
