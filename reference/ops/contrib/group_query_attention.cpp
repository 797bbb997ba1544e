// SPDX-License-Identifier: Apache-2.0
// com.microsoft.GroupQueryAttention: heads of queries in groups that share keys and values, a cache of past ones,
// rotary positions, a causal window.
#include <cmath>
#include <limits>

#include "inspector/model/rule_errors.h"
#include "reference/ops/contrib/cache_format.h"
#include "reference/ops/contrib/heads.h"
#include "reference/ops/contrib/rotary.h"
#include "reference/ops/contrib/shared.h"
#include "reference/ops/families.h"
#include "reference/ops/map.h"

namespace parallax::reference {
namespace {

enum Input : size_t {
  kQuery,
  kKey,
  kValue,
  kPastKey,
  kPastValue,
  kSeqlensK,
  kTotalLength,
  kCosCache,
  kSinCache,
  kPositionIds,
  kAttentionBias,
  kHeadSink,
  kKScale,
  kVScale,
  kQNorm,
  kKNorm
};

struct Tokens {
  HeadBlock queries, keys, values;  // the new ones
};

// The range of a sample's new tokens in its sequence: it ends at `total` unless this is the first prompt, whose tokens
// begin at 0 and may be padded after `total`.
struct Location {
  int64_t past = 0;
  int64_t total = 0;
};

Result<Tokens> read_tokens(const OpContext& op, int64_t heads, int64_t kv_heads) {
  const Shape& query = op.input(kQuery).shape();
  const bool packed = !op.has_input(kKey);
  const int64_t shares = packed ? heads + 2 * kv_heads : heads;
  if (query.rank() != 3 || query[2] % shares != 0)
    return wrong_input(op, kQuery, "be [batch,sequence,hidden] with a hidden size that splits into {} heads", shares);
  const int64_t size = query[2] / shares;
  const Numbers<double> numbers(op.input(kQuery));
  const auto part = [&](int64_t first, int64_t count) {
    return split_heads(numbers.span(), query[0], query[1], query[2], first * size, count, size);
  };
  if (packed)
    return Tokens{PX_TRY(part(0, heads)), PX_TRY(part(heads, kv_heads)), PX_TRY(part(heads + kv_heads, kv_heads))};
  if (!op.has_input(kValue)) return wrong_input(op, kValue, "be given where key is given");
  PX_TRY(expect_shape(op, kKey, Shape{query[0], query[1], kv_heads * size}));
  PX_TRY(expect_shape(op, kValue, Shape{query[0], query[1], kv_heads * size}));
  const Numbers<double> keys(op.input(kKey)), values(op.input(kValue));
  const auto split = [&](const Numbers<double>& from) {
    return split_heads(from.span(), query[0], query[1], kv_heads * size, 0, kv_heads, size);
  };
  return Tokens{PX_TRY(part(0, heads)), PX_TRY(split(keys)), PX_TRY(split(values))};
}

Result<std::vector<Location>> read_locations(const OpContext& op, int64_t batch, int64_t sequence, int64_t longest,
                                             int64_t cached) {
  if (longest < 1 || longest > cached + sequence)
    return wrong_value("total_sequence_length", longest, "be in [1, {}]: {} cached and {} new tokens",
                       cached + sequence, cached, sequence);
  const std::vector<int64_t> lengths = to_int64s(op.input(kSeqlensK));
  if (static_cast<int64_t>(lengths.size()) != batch)
    return wrong_input(op, kSeqlensK, "have {} elements, one length for each batch entry", batch);
  std::vector<Location> locations;
  for (int64_t length : lengths) {
    const int64_t total = length + 1;  // "equivalent to total_sequence_lengths - 1"
    const int64_t past = sequence == longest ? 0 : total - sequence;
    if (total < 1 || total > longest || past < 0 || past > cached)
      return wrong_value("an entry of seqlens_k", length,
                         "be in [0, {}), total_sequence_length, and fit {} new and {} cached tokens", longest, sequence,
                         cached);
    locations.push_back({past, total});
  }
  return locations;
}

// The cache after the new tokens: for each sample its past rows, then its new ones, then zeros up to `capacity`.
Result<HeadBlock> extend_cache(const OpContext& op, size_t past_input, const CacheFormat& format,
                               const HeadBlock& fresh, const std::vector<Location>& locations, int64_t capacity) {
  HeadBlock cache = PX_TRY(HeadBlock::create(fresh.batch, fresh.heads, capacity, fresh.size));
  HeadBlock past;
  if (op.has_input(past_input)) {
    past = PX_TRY(format.read(op, past_input));
    if (past.batch != fresh.batch || past.heads != fresh.heads || past.size != fresh.size)
      return wrong_input(op, past_input, "be [{},{},length,{}], to be joined with the new tokens", fresh.batch,
                         fresh.heads, fresh.size);
  }
  for (int64_t b = 0; b < fresh.batch; ++b) {
    const int64_t kept = locations[static_cast<size_t>(b)].past;
    for (int64_t h = 0; h < fresh.heads; ++h) {
      for (int64_t k = 0; k < fresh.size; ++k) {
        for (int64_t s = 0; s < kept; ++s) cache.at(b, h, s, k) = past.at(b, h, s, k);
        for (int64_t s = 0; s < fresh.sequence; ++s) cache.at(b, h, kept + s, k) = fresh.at(b, h, s, k);
      }
    }
  }
  return cache;
}

// x / sqrt(mean(x^2) + epsilon) * weight for each head of each token.
Status normalize_heads(const OpContext& op, size_t weight, HeadBlock& block) {
  PX_TRY(expect_shape(op, weight, Shape{block.size}));
  const Numbers<double> weights(op.input(weight));
  const double epsilon = op.float_attribute("qk_norm_epsilon");
  const auto size = static_cast<size_t>(block.size);
  for (size_t begin = 0; size > 0 && begin < block.numbers.size(); begin += size) {
    double squares = 0;
    for (size_t k = 0; k < size; ++k) squares += block.numbers[begin + k] * block.numbers[begin + k];
    const double root = std::sqrt(squares / static_cast<double>(size) + epsilon);
    for (size_t k = 0; k < size; ++k) block.numbers[begin + k] *= weights[static_cast<int64_t>(k)] / root;
  }
  return {};
}

Status rotate(const OpContext& op, Tokens& tokens, const std::vector<Location>& locations) {
  if (!op.has_input(kCosCache) || !op.has_input(kSinCache))
    return wrong_input(op, op.has_input(kCosCache) ? kSinCache : kCosCache, "be given where 'do_rotary' is set");
  const bool interleaved = op.find_int("rotary_interleaved").value_or(0) != 0;
  const Rotation rotation = PX_TRY(Rotation::create(op, kCosCache, kSinCache, interleaved));
  const int64_t sequence = tokens.queries.sequence;
  std::vector<int64_t> rows;
  for (const Location& location : locations) {
    // The padding after a shorter prompt has no position; onnxruntime leaves it at 0.
    for (int64_t s = 0; s < sequence; ++s) rows.push_back(location.past + s < location.total ? location.past + s : 0);
  }
  if (op.has_input(kPositionIds)) {
    PX_TRY(expect_shape(op, kPositionIds, Shape{tokens.queries.batch, sequence}));
    rows = to_int64s(op.input(kPositionIds));
  }
  PX_TRY(rotation.apply(tokens.queries, rows));
  return rotation.apply(tokens.keys, rows);
}

Status refuse_what_is_left_open(const OpContext& op) {
  if (op.int_attribute("sliding_window_cache") != 0)
    return unsupported(
        "attribute 'sliding_window_cache' is set; only 0 has a function here, as the operator's page does not define "
        "it");
  if (op.has_input(kQNorm) != op.has_input(kKNorm))
    return wrong_input(op, kQNorm, "be given if and only if k_norm_weight is given");
  if (op.has_input(kPastKey) != op.has_input(kPastValue))
    return wrong_input(op, kPastKey, "be given if and only if past_value is given");
  return {};
}

// Which keys a query sees: those of its sample up to itself, within the window; all of the sample's if not causal.
Result<Weighing> plan_weighing(const OpContext& op, const std::vector<Location>& locations, const Shape& scores,
                               const AttentionBias& bias) {
  const bool causal = op.int_attribute("causal") != 0;
  const int64_t window = op.int_attribute("local_window_size");
  Weighing how;
  how.softcap = op.find_float("softcap").value_or(0.0);
  how.adjust = [=, &locations, &bias](int64_t batch, int64_t head, int64_t query, std::span<double> row) {
    const Location& location = locations[static_cast<size_t>(batch)];
    bias.add(batch, head, query, row.first(static_cast<size_t>(scores[3])));
    const int64_t own = location.past + query;
    const int64_t last = causal ? std::min(own, location.total - 1) : location.total - 1;
    const int64_t first = window > 0 ? own - window + 1 : 0;
    for (int64_t key = 0; key < static_cast<int64_t>(row.size()); ++key) {
      if (key < first || key > last) row[static_cast<size_t>(key)] = -std::numeric_limits<double>::infinity();
    }
  };
  if (op.has_input(kHeadSink)) {
    PX_TRY(expect_shape(op, kHeadSink, Shape{scores[1]}));
    const Numbers<double> sinks(op.input(kHeadSink));
    how.sinks.assign(sinks.span().begin(), sinks.span().end());
  } else if (op.int_attribute("smooth_softmax") == 1) {
    how.sinks.assign(static_cast<size_t>(scores[1]), 0.0);
  }
  return how;
}

// ContribOperators.md, com.microsoft.GroupQueryAttention, with full-length caches. As in onnxruntime's CPU kernel: the
// first prompt is recognized by sequence_length equal to total_sequence_length and takes nothing from the past; present
// has max(total_sequence_length, past length) rows, those after a sample's last being zeros; smooth_softmax is a
// head_sink of zeros.
Status op_contrib_group_query_attention(OpContext& op) {
  PX_TRY(refuse_what_is_left_open(op));
  const int64_t heads = op.int_attribute("num_heads");
  const int64_t kv_heads = op.int_attribute("kv_num_heads");
  constexpr int64_t kMostHeads = 1 << 20;
  if (heads <= 0 || kv_heads <= 0 || heads > kMostHeads || heads % kv_heads != 0)
    return as_invalid_model(wrong_attribute(
        "num_heads", heads, "be in [1, {}] and a multiple of 'kv_num_heads' ({}), which must be 1 or more", kMostHeads,
        kv_heads));
  Tokens tokens = PX_TRY(read_tokens(op, heads, kv_heads));
  const int64_t sequence = tokens.queries.sequence;
  const int64_t longest = PX_TRY(op.int64_of_input(kTotalLength));
  const int64_t cached =
      op.has_input(kPastKey) && op.input(kPastKey).shape().rank() == 4 ? op.input(kPastKey).shape()[2] : 0;
  const auto locations = PX_TRY(read_locations(op, tokens.queries.batch, sequence, longest, cached));
  if (op.has_input(kQNorm)) {
    PX_TRY(normalize_heads(op, kQNorm, tokens.queries));
    PX_TRY(normalize_heads(op, kKNorm, tokens.keys));
  }
  if (op.find_int("do_rotary").value_or(0) != 0) PX_TRY(rotate(op, tokens, locations));
  const int64_t capacity = std::max({longest, cached, sequence});
  const int64_t size = tokens.queries.size;
  const std::string key_type = op.string_attribute("k_quant_type");
  const std::string value_type = op.string_attribute("v_quant_type");
  const auto key_format = PX_TRY(CacheFormat::create(op, kPastKey, kKScale, key_type, kv_heads, size));
  const auto value_format = PX_TRY(CacheFormat::create(op, kPastValue, kVScale, value_type, kv_heads, size));
  key_format.to_cache(tokens.keys);
  value_format.to_cache(tokens.values);
  HeadBlock keys = PX_TRY(extend_cache(op, kPastKey, key_format, tokens.keys, locations, capacity));
  HeadBlock values = PX_TRY(extend_cache(op, kPastValue, value_format, tokens.values, locations, capacity));
  PX_TRY(key_format.set_output(op, 1, keys));
  PX_TRY(value_format.set_output(op, 2, values));
  key_format.from_cache(keys);
  value_format.from_cache(values);
  const Shape scores{tokens.queries.batch, heads, sequence, longest};
  const AttentionBias bias = PX_TRY(AttentionBias::create(op, kAttentionBias, scores));
  Weighing how = PX_TRY(plan_weighing(op, locations, scores, bias));
  how.scale = score_scale(op, tokens.queries.size);
  const int64_t shown = op.int_attribute("qk_output");
  Answer answer = PX_TRY(weigh(tokens.queries, keys, values, how, op.wants_output(3) && shown != 0));
  const DType dtype = op.input(kQuery).dtype();
  const Shape joined{answer.values.batch, sequence, heads * answer.values.size};
  PX_TRY(op.set_output(0, dtype, joined, std::span<const double>(join_heads(answer.values))));
  if (!op.wants_output(3) || shown == 0) return {};
  // Scores of keys that a query does not see are shown as 0, as onnxruntime does.
  for (double& score : answer.scores) score = std::isinf(score) && score < 0 ? 0.0 : score;
  const Shape full{tokens.queries.batch, heads, sequence, capacity};
  return op.set_output(3, dtype, full, std::span<const double>(shown == 1 ? answer.scores : answer.weights));
}

constexpr OpRow kContribGroupQueryAttentionRows[] = {
    {"GroupQueryAttention", kMicrosoft, 1, 1, op_contrib_group_query_attention},
};

}  // namespace

OpRows contrib_group_query_attention_rows() { return kContribGroupQueryAttentionRows; }

}  // namespace parallax::reference
