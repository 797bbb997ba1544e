// SPDX-License-Identifier: Apache-2.0
// com.microsoft.GroupQueryAttention: groups of query heads that share keys and values, a cache of past ones, rotary
// positions, a causal window. Definition: ContribOperators.md, with full-length caches; what that leaves open is as in
// onnxruntime's CPU kernel: the first prompt is recognized by a sequence as long as total_sequence_length and takes
// nothing from the past; present has max(total_sequence_length, past length) rows, those after a sample's last being
// zeros; smooth_softmax is a head_sink of zeros.
#include <algorithm>
#include <cmath>

#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/growable.h"
#include "runtime/device/gpu/attention/flash_attention.h"
#include "runtime/ops/attention_heads.h"
#include "runtime/ops/contrib/cache.h"
#include "runtime/ops/contrib/group.h"
#include "runtime/ops/contrib/heads.h"
#include "runtime/ops/contrib_families.h"
#include "runtime/ops/contributed.h"

namespace parallax::runtime {
namespace {

using Context = ChainContext;

enum Input : int {
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
  Tensor q, k, v;  // the new ones, [batch, heads, sequence, size], float32
};

Result<GroupShape> group_shape(const OpCall& op) {
  GroupShape shape;
  shape.heads = op.integer("num_heads");
  shape.kv_heads = op.integer("kv_num_heads");
  constexpr int64_t kMostHeads = 1 << 20;
  if (shape.heads < 1 || shape.kv_heads < 1 || shape.heads > kMostHeads || shape.heads % shape.kv_heads != 0)
    return wrong_attribute("num_heads", shape.heads,
                           "be in [1, {}] and a multiple of 'kv_num_heads' ({}), which must be 1 or more", kMostHeads,
                           shape.kv_heads);
  const Ints query(op.input(kQuery).shape());
  const int64_t shares = op.has_input(kKey) ? shape.heads : shape.heads + 2 * shape.kv_heads;
  if (query.size() != 3 || query[2] % shares != 0 || (op.has_input(kKey) && !op.has_input(kValue)))
    return wrong_input(op, kQuery,
                       "be [batch,sequence,hidden] with a hidden size that splits into {} heads; with key comes value",
                       shares);
  shape.is_causal = op.integer("causal") != 0;
  shape.window = op.integer("local_window_size");
  shape.batch = query[0];
  shape.sequence = query[1];
  shape.size = query[2] / shares;
  if (op.has_input(kPastKey) != op.has_input(kPastValue))
    return wrong_input(op, kPastKey, "be given if and only if past_value is given");
  if (op.has_input(kPastKey) && op.input(kPastKey).shape().rank() == 4) shape.cached = op.input(kPastKey).shape()[2];
  shape.longest = PX_TRY(op.integer_of_input(kTotalLength));
  if (shape.longest < 1 || shape.longest > shape.cached + shape.sequence)
    return wrong_value("total_sequence_length", shape.longest, "be in [1, {}]: {} cached and {} new tokens",
                       shape.cached + shape.sequence, shape.cached, shape.sequence);
  shape.capacity = std::max({shape.longest, shape.cached, shape.sequence});
  const Ints lengths = PX_TRY(op.integers_of_input(kSeqlensK));
  if (lengths.size() != shape.batch)
    return wrong_input(op, kSeqlensK, "have {} elements, one length for each batch entry", shape.batch);
  for (int64_t length : lengths) {
    const int64_t total = length + 1;  // "equivalent to total_sequence_lengths - 1"
    const int64_t past = shape.sequence == shape.longest ? 0 : total - shape.sequence;
    if (total < 1 || total > shape.longest || past < 0 || past > shape.cached)
      return wrong_value("an entry of seqlens_k", length,
                         "be in [0, {}), total_sequence_length, and fit {} new and {} cached tokens", shape.longest,
                         shape.sequence, shape.cached);
    shape.locations.push_back({past, total});
  }
  return shape;
}

// `heads` heads of `x`, [batch, sequence, columns], from head `first` on, as float32.
Result<Tensor> read_heads(Context& op, const GroupShape& shape, const Tensor& x, int64_t first, int64_t heads) {
  const Tensor wide = PX_TRY(inner_cast(op, x, DType::float32));
  const Tensor slice = PX_TRY(columns(op, wide, first * shape.size, (first + heads) * shape.size));
  return split_heads(op, slice, heads);
}

// True where the queries are the numbers of their input.
bool are_queries_as_given(const OpCall& op) {
  return op.find_integer("do_rotary").value_or(0) == 0 && !op.has_input(kQNorm);
}

// The queries are left out where a GPU reads them as they are given.
Result<Tokens> read_tokens(Context& op, const GroupShape& shape) {
  const Tensor& query = op.input(kQuery);
  Tokens tokens;
  if (!GpuDevice<CompiledDevice> || !are_queries_as_given(op))
    tokens.q = PX_TRY(read_heads(op, shape, query, 0, shape.heads));
  if (!op.has_input(kKey)) {
    tokens.k = PX_TRY(read_heads(op, shape, query, shape.heads, shape.kv_heads));
    tokens.v = PX_TRY(read_heads(op, shape, query, shape.heads + shape.kv_heads, shape.kv_heads));
    return tokens;
  }
  const Ints wanted{shape.batch, shape.sequence, shape.kv_heads * shape.size};
  for (const auto& [input, target] : {std::pair{kKey, &tokens.k}, std::pair{kValue, &tokens.v}}) {
    if (!(Ints(op.input(input).shape()) == wanted))
      return wrong_input(op, static_cast<int64_t>(input), "have shape {}", dims_text(wanted));
    *target = PX_TRY(read_heads(op, shape, op.input(input), 0, shape.kv_heads));
  }
  return tokens;
}

Status normalize_heads(Context& op, Tokens& tokens) {
  if (op.has_input(kQNorm) != op.has_input(kKNorm))
    return wrong_input(op, kQNorm, "be given if and only if k_norm_weight is given");
  if (!op.has_input(kQNorm)) return {};
  const InnerOp norm{"RMSNormalization", 23, {float_attribute("epsilon", op.real("qk_norm_epsilon"))}};
  for (const auto& [input, target] : {std::pair{kQNorm, &tokens.q}, std::pair{kKNorm, &tokens.k}}) {
    const Tensor weight = PX_TRY(inner_cast(op, op.input(input), DType::float32));
    *target = PX_TRY(run_inner(op, norm, {*target, weight}));
  }
  return {};
}

Status rotate(Context& op, const GroupShape& shape, Tokens& tokens) {
  if (op.find_integer("do_rotary").value_or(0) == 0) return {};
  if (!op.has_input(kCosCache) || !op.has_input(kSinCache))
    return wrong_input(op, op.has_input(kCosCache) ? kSinCache : kCosCache, "be given where 'do_rotary' is set");
  const Ints cache(op.input(kCosCache).shape());
  if (cache.size() != 2) return wrong_input(op, kCosCache, "have rank 2");
  Ints rows;
  for (const CachePosition& location : shape.locations) {
    // The padding after a shorter prompt has no position; onnxruntime leaves it at 0.
    for (int64_t s = 0; s < shape.sequence; ++s)
      rows.push_back(location.past + s < location.total ? location.past + s : 0);
  }
  if (op.has_input(kPositionIds)) rows = all_integers(op.input(kPositionIds));
  if (rows.size() != shape.batch * shape.sequence)
    return wrong_value("the number of position_ids", rows.size(), "be {}, batch times sequence",
                       shape.batch * shape.sequence);
  const Tensor ids = Tensor::from<int64_t>(Shape{shape.batch, shape.sequence}, rows);
  const Tensor cosine = PX_TRY(inner_cast(op, op.input(kCosCache), DType::float32));
  const Tensor sine = PX_TRY(inner_cast(op, op.input(kSinCache), DType::float32));
  const InnerOp rotary{"RotaryEmbedding",
                       23,
                       {int_attribute("interleaved", op.find_integer("rotary_interleaved").value_or(0)),
                        int_attribute("rotary_embedding_dim", 2 * cache[1])}};
  tokens.q = PX_TRY(run_inner(op, rotary, {tokens.q, cosine, sine, ids}));
  tokens.k = PX_TRY(run_inner(op, rotary, {tokens.k, cosine, sine, ids}));
  return {};
}

// A bias of the scores, [batch, heads, sequence, longest] of float32; undefined: none.
Result<Tensor> score_bias(Context& op, const GroupShape& shape) {
  if (!op.has_input(kAttentionBias)) return Tensor();
  const Tensor wide = PX_TRY(inner_cast(op, op.input(kAttentionBias), DType::float32));
  const Ints full{shape.batch, shape.heads, shape.sequence, shape.longest};
  if (wide.shape().rank() != 4) return wrong_input(op, kAttentionBias, "have rank 4");
  const Tensor bias = PX_TRY(run_inner(op, {"Expand", 13}, {wide, Tensor::vector<int64_t>(full)}));
  if (!(Ints(bias.shape()) == full))
    return wrong_input(op, kAttentionBias, "broadcast to the scores, {}", dims_text(full));
  return bias;
}

// The score of a key without content that each head sees; undefined: none.
Result<Tensor> head_sinks(Context& op, const GroupShape& shape) {
  if (op.has_input(kHeadSink)) {
    if (op.input(kHeadSink).element_count() != shape.heads)
      return wrong_input(op, kHeadSink, "have {} elements, one for each head", shape.heads);
    return op.input(kHeadSink);
  }
  if (op.integer("smooth_softmax") != 1) return Tensor();
  const Tensor zeros = PX_TRY(Tensor::zeros(DType::float32, Shape{shape.heads}));
  return op.resident(zeros);
}

// The first `longest` rows of [batch, heads, capacity, size], and a row of zeros for the sink.
Result<Tensor> seen_rows(Context& op, const GroupShape& shape, const Tensor& cache, bool has_sink) {
  const auto one = [](int64_t value) { return Tensor::vector<int64_t>(std::span<const int64_t>(&value, 1)); };
  Tensor seen = cache;
  if (shape.capacity != shape.longest)
    seen = PX_TRY(run_inner(op, {"Slice", 13}, {cache, one(0), one(shape.longest), one(2)}));
  if (!has_sink) return seen;
  const Shape row = PX_TRY(shape_of({shape.batch, shape.kv_heads, 1, shape.size}));
  const Tensor zeros = PX_TRY(Tensor::zeros(DType::float32, row));
  return joined_rows(op, seen, zeros);
}

// The input and output of a cache, and the representation of its numbers.
struct CacheInput {
  int64_t past, scale, output;
  const char* type;
};

// True where the new rows of all samples directly follow the past and have its element type, so that they can be
// appended to it.
template <class Device>
bool is_appended(const OpContext<Device>& op, const GroupShape& shape, const CacheInput& input,
                 const CacheFormat& format) {
  if (!op.has_input(input.past) || !op.wants_output(input.output) || format.is_quantized()) return false;
  const Tensor& past = op.input(input.past);
  const bool has_sink = op.has_input(kHeadSink) || op.integer("smooth_softmax") == 1;
  if (!is_open(past) || growing_axis(past) != 2 || past.dtype() != DType::float32 || has_sink) return false;
  if (!(Ints(past.shape()) == Ints{shape.batch, shape.kv_heads, shape.cached, shape.size})) return false;
  return std::ranges::all_of(shape.locations, [&](const CachePosition& location) {
    return location.past == shape.cached && location.total == shape.cached + shape.sequence;
  });
}

// The cache with its new rows: as it is held, which its output is, or as float32 where it is quantized or the host's.
template <class Device>
Result<Tensor> extended_cache(OpContext<Device>& op, const GroupShape& shape, const CacheInput& input,
                              const Tensor& fresh) {
  const CacheRows rows{shape.batch, shape.kv_heads, shape.sequence, shape.size, shape.capacity, shape.locations};
  CacheFormat format =
      PX_TRY(CacheFormat::create(op, input.past, input.scale, op.text(input.type), shape.kv_heads, shape.size));
  if constexpr (GpuDevice<Device>) {
    const Tensor past = op.has_input(input.past) ? op.input(input.past) : Tensor();
    if (format.is_quantized()) {
      const QuantizedCache cache{format, past, op.input(input.scale)};
      return extended_quantized(op, cache, fresh, rows, op.wants_output(input.output) ? input.output : -1);
    }
    const Tensor held = PX_TRY(extended_numbers(op, past, fresh, rows, format.dtype()));
    if (op.wants_output(input.output)) op.set_output(input.output, held);
    return held;
  } else {
    if (is_appended(op, shape, input, format)) {
      const Tensor all = PX_TRY(append(op.queue(), op.input(input.past), shape.sequence,
                                       {fresh.view().data, row_major_strides(fresh.shape()), 0}));
      op.set_output(input.output, all);
      return all;
    }
    return format.extend(op, input.past, input.output, fresh, rows);
  }
}

// The bias of the scores as it is stored, with a stride of 0 where it is broadcast.
template <class Device>
Status describe_bias(OpContext<Device>& op, const GroupShape& shape, FlashAttention& attention, Tensor& kept) {
  if (!op.has_input(kAttentionBias)) return {};
  kept = op.input(kAttentionBias);
  const Ints dims(kept.shape()), wanted{shape.batch, shape.heads, shape.sequence, shape.longest};
  if (dims.size() != 4) return wrong_input(op, kAttentionBias, "have rank 4");
  Ints strides = row_major_strides(dims);
  for (int64_t axis = 0; axis < 4; ++axis) {
    if (dims[axis] != 1 && dims[axis] != wanted[axis])
      return wrong_input(op, kAttentionBias, "broadcast to the scores, {}", dims_text(wanted));
    if (dims[axis] == 1) strides[axis] = 0;
  }
  if (kept.dtype() != attention.dtype) kept = PX_TRY(inner_cast(op, kept, DType::float32));
  attention.added = kept.view().data;
  attention.added_dtype = kept.dtype();
  attention.added_locations = {Ints(shape.batch * shape.heads), strides[2], strides[3]};
  for (int64_t i = 0; i < shape.batch * shape.heads; ++i)
    attention.added_locations.offsets[i] = i / shape.heads * strides[0] + i % shape.heads * strides[1];
  return {};
}

// By our own kernel for GPUs, operands as they are stored. False where it does not compute them.
template <class Device>
Result<bool> attend_at_once(OpContext<Device>& op, const GroupShape& shape, const Tensor& queries, const Tensor& keys,
                            const Tensor& values) {
  const DType dtype = keys.dtype();
  if (op.wants_output(3) || values.dtype() != dtype) return false;
  if (dtype != DType::float32 && dtype != op.input(kQuery).dtype()) return false;
  FlashAttention attention;
  attention.samples = shape.batch;
  attention.heads = shape.heads;
  attention.dtype = dtype;
  AttentionProblem& problem = attention.problem;
  problem.queries = shape.sequence;
  problem.keys = shape.longest;
  problem.size = problem.value_size = shape.size;
  problem.scale = op.find_real("scale").value_or(0.0);
  if (problem.scale == 0.0) problem.scale = 1.0 / std::sqrt(static_cast<double>(shape.size));
  const int64_t row = shape.capacity * shape.size, hidden = shape.heads * shape.size;
  const HeadsView cached{shape.batch, shape.kv_heads, shape.capacity, shape.size, shape.kv_heads * row,
                         row,         shape.size};
  problem.v = problem.k = cached.locations(shape.heads);
  std::swap(problem.k.row, problem.k.column);
  const bool is_as_given = are_queries_as_given(op) && op.input(kQuery).dtype() == dtype;
  Tensor q =
      is_as_given || queries.defined() ? queries : PX_TRY(read_heads(op, shape, op.input(kQuery), 0, shape.heads));
  q = is_as_given ? op.input(kQuery) : PX_TRY(inner_cast(op, q, dtype));
  const HeadsView given = PX_TRY(heads_view(Shape{shape.batch, shape.sequence, hidden}, shape.heads, "query"));
  problem.y = given.locations(shape.heads);
  HeadsView own = is_as_given ? given : PX_TRY(heads_view(q.shape(), shape.heads, "query"));
  if (is_as_given) {  // keys and values may follow in each row
    own.row_stride = q.shape()[2];
    own.batch_stride = own.row_stride * shape.sequence;
  }
  problem.q = own.locations(shape.heads);
  attention.rule = {shape.longest, 0, shape.window > 0 ? shape.window - 1 : -1, -1, shape.is_causal};
  for (const CachePosition& location : shape.locations) {
    attention.positions.push_back(location.past);
    attention.ends.push_back(location.total);
  }
  attention.softcap = op.find_real("softcap").value_or(0.0);
  attention.hidden_is_zero = true;
  Tensor bias, sinks = PX_TRY(head_sinks(op, shape));
  PX_TRY(describe_bias(op, shape, attention, bias));
  if (!is_for_flash(attention)) return false;
  if (sinks.defined()) {
    sinks = PX_TRY(inner_cast(op, sinks, DType::float32));
    attention.sinks = reinterpret_cast<const float*>(sinks.view().data);
  }
  attention.q = q.view().data;
  attention.k = keys.view().data;
  attention.v = values.view().data;
  const Tensor y = PX_TRY(op.queue().allocate(dtype, Shape{shape.batch, shape.sequence, hidden}));
  attention.y = writable(y).data;
  if (!PX_TRY(flash_attention(op.queue(), attention))) return false;
  Tensor rounded = PX_TRY(inner_cast(op, y, op.input(kQuery).dtype()));
  op.set_output(0, std::move(rounded));
  return true;
}

Status group_query_attention(Context& op) {
  if (op.integer("sliding_window_cache") != 0)
    return unsupported("sliding_window_cache: the operator's page does not define it");
  const GroupShape shape = PX_TRY(group_shape(op));
  Tokens tokens = PX_TRY(read_tokens(op, shape));
  PX_TRY(normalize_heads(op, tokens));
  PX_TRY(rotate(op, shape, tokens));
  const Tensor sinks = PX_TRY(head_sinks(op, shape));
  Tensor keys = PX_TRY(extended_cache(op, shape, {kPastKey, kKScale, 1, "k_quant_type"}, tokens.k));
  Tensor values = PX_TRY(extended_cache(op, shape, {kPastValue, kVScale, 2, "v_quant_type"}, tokens.v));
  if constexpr (GpuDevice<CompiledDevice>) {
    if (PX_TRY(attend_at_once(op, shape, tokens.q, keys, values))) return {};
    if (!tokens.q.defined()) tokens.q = PX_TRY(read_heads(op, shape, op.input(kQuery), 0, shape.heads));
    keys = PX_TRY(inner_cast(op, keys, DType::float32));
    values = PX_TRY(inner_cast(op, values, DType::float32));
  }
  Heads heads;
  heads.q = tokens.q;
  heads.k = PX_TRY(seen_rows(op, shape, keys, sinks.defined()));
  heads.v = PX_TRY(seen_rows(op, shape, values, sinks.defined()));
  const Tensor bias = PX_TRY(score_bias(op, shape));
  heads.mask = PX_TRY(group_mask(op, shape, bias, sinks));
  heads.scale = op.find_real("scale").value_or(0.0);
  heads.softcap = op.find_real("softcap").value_or(0.0);
  const int64_t shown = op.wants_output(3) ? op.integer("qk_output") : 0;
  heads.shown = shown == 0 ? -1 : shown == 1 ? 2 : 3;
  const Attended attended = PX_TRY(attend(op, heads));
  const Tensor joined = PX_TRY(join_heads(op, attended.y));
  Tensor y = PX_TRY(inner_cast(op, joined, op.input(kQuery).dtype()));
  op.set_output(0, std::move(y));
  return shown == 0 ? Status{} : set_shown_scores(op, shape, attended.scores);
}

// On a GPU the row is chosen by the cache's type.
constexpr int64_t kTelling = GpuDevice<CompiledDevice> ? kPastKey : kQuery;
constexpr uint32_t kHeld =
    GpuDevice<CompiledDevice> ? kNarrowFloats | kBytes | dtype_bit(DType::float8e4m3fn) : kNarrowFloats;
constexpr KernelRow<CompiledDevice> kContribGroupQueryAttentionRows[] = {
    reads_on_host({kSeqlensK, kTotalLength, kPositionIds},
                  contributed_row("GroupQueryAttention", kHeld, group_query_attention, kTelling)),
};

}  // namespace

template <>
Rows<CompiledDevice> contrib_group_query_attention_rows() {
  return kContribGroupQueryAttentionRows;
}

}  // namespace parallax::runtime
