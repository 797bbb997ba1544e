// SPDX-License-Identifier: Apache-2.0
// RotaryEmbedding and Attention (operator sets 23 and later). Source: the specification's text and function bodies.
#include <cmath>

#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/copy.h"
#include "runtime/device/cpu/find.h"
#include "runtime/device/cpu/map.h"
#include "runtime/device/cpu/math.h"
#include "runtime/device/cpu/products/gemm.h"
#include "runtime/device/cpu/rows/rows.h"
#include "runtime/device/gpu/attention/flash_attention_kernel.h"
#include "runtime/device/gpu/element_of.h"
#include "runtime/ops/attention_at_once.h"
#include "runtime/ops/families.h"
#include "runtime/ops/host_rotation.h"
#include "runtime/ops/indices.h"
#include "runtime/ops/row_folds.h"

namespace parallax::runtime {
namespace {

// ---- RotaryEmbedding ----

struct OutsideCaches {
  int64_t positions;
  PX_HD bool operator()(int64_t position, int64_t) const { return position < 0 || position >= positions; }
};

// The row of a cache for (batch, position): through position_ids, or [batch, length, half] directly.
template <class Device>
struct RotaryRows {
  Elements<Device, const int64_t> positions;  // none without position_ids
  int64_t length = 0;
  PX_HD int64_t row(int64_t b, int64_t i) const { return positions ? positions[b * length + i] : b * length + i; }
};

template <class Device>
Result<RotaryRows<Device>> cache_rows(OpContext<Device>& op, const HeadsView& x, int64_t half) {
  RotaryRows<Device> rows{{}, x.length};
  const Shape& cosine = op.input(1).shape();
  if (!(cosine == op.input(2).shape()) || cosine.rank() < 2 || dim_of(cosine, rank_of(cosine) - 1) != half)
    return wrong_input(op, 1, "have the shape of sin_cache, {}, and a last axis of {}, half of the elements to rotate",
                       op.input(2).shape().to_string(), half);
  if (!op.has_input(3)) {
    if (cosine.element_count() != x.batch * x.length * half)
      return wrong_input(op, 1, "have {} rows, one for each batch entry and token of X, where position_ids are missing",
                         x.batch * x.length);
    return rows;
  }
  if (op.input(3).element_count() != x.batch * x.length)
    return wrong_input(op, 3, "have {} elements, one for each batch entry and token of X", x.batch * x.length);
  const int64_t positions = half == 0 ? 0 : cosine.element_count() / half;
  const WhenFound when_found = positions > 0 ? WhenFound::is_harmless : WhenFound::harms;
  const auto outside =
      PX_TRY(find_first<int64_t>(op.queue(), OutsideCaches{positions}, op.input(3).view(), when_found));
  if (outside >= 0) return wrong_entry(op, 3, outside, "be in [0, {}), the rows of the caches", positions);
  rows.positions = PX_TRY(table_of_checked(op, 3, positions));
  return rows;
}

// One element of the result; the elements after `rotated` stay as they are.
template <class Device, class C>
struct Rotated {
  Source in;
  HeadsView x;
  RotaryRows<Device> rows;
  Elements<Device, const C> cosine, sine;
  int64_t rotated;
  bool interleaved;

  PX_HD C operator()(int64_t element) const {
    const int64_t b = element / x.batch_stride;
    const int64_t i = element % x.batch_stride / x.row_stride % x.length;
    const int64_t at = element % x.size;
    const C own = element_of<Device, C>(in, element);
    if (at >= rotated) return own;
    const int64_t half = rotated / 2;
    const bool is_first = interleaved ? at % 2 == 0 : at < half;
    const int64_t distance = interleaved ? 1 : half;
    const C other = element_of<Device, C>(in, is_first ? element + distance : element - distance);
    const int64_t location = rows.row(b, i) * half + (interleaved ? at / 2 : at % half);
    return is_first ? own * cosine[location] - other * sine[location] : other * sine[location] + own * cosine[location];
  }
};

// Rotates one head after the other.
template <class C>
void rotate_heads(const Rotated<Cpu, C>& rotation, const MutableView& y) {
  const HeadsView& x = rotation.x;
  const C* const in = reinterpret_cast<const C*>(rotation.in.data);
  parallel_for(y.element_count() / x.size, x.size, [&](int64_t begin, int64_t end) {
    for (int64_t head = begin; head < end; ++head) {
      const int64_t element = head * x.size;
      const int64_t b = element / x.batch_stride, i = element % x.batch_stride / x.row_stride % x.length;
      const int64_t location = rotation.rows.row(b, i) * (rotation.rotated / 2);
      const HostRotation<C> one{rotation.rotated / 2, x.size, rotation.interleaved, rotation.cosine.data + location,
                                rotation.sine.data + location};
      one.run(in + element, reinterpret_cast<C*>(y.data) + element);
    }
  });
}

template <class Device>
Status rotary_embedding(OpContext<Device>& op) {
  const Tensor& input = op.input(0);
  const HeadsView x = PX_TRY(heads_view(input.shape(), op.find_integer("num_heads").value_or(0), "X"));
  const int64_t given = op.find_integer("rotary_embedding_dim").value_or(0);
  const int64_t rotated = given == 0 ? x.size : given;
  if (rotated < 0 || rotated > x.size || rotated % 2 != 0)
    return wrong_attribute("rotary_embedding_dim", rotated, "be even and at most {}, the size of a head", x.size);
  const RotaryRows<Device> rows = PX_TRY(cache_rows(op, x, rotated / 2));
  const bool interleaved = op.find_integer("interleaved").value_or(0) != 0;
  const MutableView y = PX_TRY(op.make_output(0, input.dtype(), input.shape()));
  return visit_arithmetic<Floats>(input.dtype(), [&](auto zero) -> Status {
    using C = decltype(zero);
    const auto cosine = PX_TRY(converted<C>(op.queue(), op.input(1).view(), op.is_constant(1)));
    const auto sine = PX_TRY(converted<C>(op.queue(), op.input(2).view(), op.is_constant(2)));
    if (input.element_count() == 0) return {};
    const Rotated<Device, C> element{
        source_of(input.view()), x, rows, {cosine.get()}, {sine.get()}, rotated, interleaved};
    if constexpr (std::is_same_v<Device, Cpu>) {
      if (input.dtype() == storage_of<C>()) return rotate_heads(element, y), Status{};
    }
    tabulate<C>(op.queue(), element, y);
    return {};
  });
}

// ---- Attention ----

template <class Device>
Result<AttentionShape<Device>> attention_shape(OpContext<Device>& op) {
  AttentionShape<Device> shape;
  const int64_t q_heads = op.find_integer("q_num_heads").value_or(0);
  const int64_t kv_heads = op.find_integer("kv_num_heads").value_or(0);
  shape.q = PX_TRY(heads_view(op.input(0).shape(), q_heads, "Q"));
  shape.k = PX_TRY(heads_view(op.input(1).shape(), kv_heads, "K"));
  shape.v = PX_TRY(heads_view(op.input(2).shape(), kv_heads, "V"));
  if (shape.q.batch != shape.k.batch || shape.k.batch != shape.v.batch || shape.k.heads != shape.v.heads ||
      shape.k.length != shape.v.length || shape.q.size != shape.k.size || shape.k.heads < 1 ||
      shape.q.heads % shape.k.heads != 0)
    return wrong_input(op, 1,
                       "fit Q {} and V {}: equal batch and head size as Q, length as V, heads that divide those of Q",
                       op.input(0).shape().to_string(), op.input(2).shape().to_string());
  if (op.has_input(4) != op.has_input(5)) return wrong_input(op, 4, "be given if and only if past_value is given");
  if (op.has_input(4)) {
    const Shape& past = op.input(4).shape();
    if (past.rank() != 4 || past[0] != shape.k.batch || past[1] != shape.k.heads || past[3] != shape.k.size)
      return wrong_input(op, 4, "be [{},{},past length,{}], to be joined with K", shape.k.batch, shape.k.heads,
                         shape.k.size);
    shape.past = past[2];
  }
  shape.keys = shape.past + shape.k.length;
  shape.is_causal = op.find_integer("is_causal").value_or(0) != 0;
  const int64_t widest = shape.keys + shape.q.length;  // beyond it a window hides nothing more
  shape.left_window = std::min(op.find_integer("left_window_size").value_or(-1), widest);
  shape.right_window = std::min(op.find_integer("right_window_size").value_or(-1), widest);
  if (op.has_input(6)) {
    if (op.input(6).element_count() != shape.q.batch)
      return wrong_input(op, 6, "have {} elements, one length for each batch entry", shape.q.batch);
    const auto lengths = PX_TRY(entries_within(op, 6, shape.keys));
    if (lengths.wrong.has_value())
      return wrong_value("a length in nonpad_kv_seqlen", *lengths.wrong, "be in [0, {}], the number of keys",
                         shape.keys);
    shape.valid_lengths = lengths.elements;
  }
  shape.scale = op.find_real("scale").value_or(1.0 / std::sqrt(static_cast<double>(shape.q.size)));
  shape.softcap = op.find_real("softcap").value_or(0.0);
  return shape;
}

// The additions to the scores of one (batch, head, query): the mask, and minus infinity on keys that it does not see.
template <class Device, class C>
struct Masked {
  Source mask;  // no data: none
  int64_t start, stride, mask_keys;
  int64_t first_key, end_key;
  C softcap;

  PX_HD C operator()(C score, int64_t key) const {
    constexpr C kHidden = -std::numeric_limits<C>::infinity();
    if (key < first_key || key >= end_key) return kHidden;
    if (softcap > C(0)) score = softcap * math::tanh(score / softcap);
    if (mask.data != nullptr) {
      if (key >= mask_keys) return kHidden;  // a mask shorter than the keys hides the rest
      const int64_t at = start + key * stride;
      if (mask.dtype != DType::bool_) {
        score += element_of<Device, C>(mask, at);
      } else if (element_of<Device, uint8_t>(mask, at) == 0) {
        return kHidden;
      }
    }
    return score;
  }
};

template <class C>
struct ShiftedExponential {
  C shift;
  PX_HD C operator()(C x) const { return math::exp(x - shift); }
};
template <class C>
struct Normalized {
  C sum;
  PX_HD C operator()(C x) const { return x / sum; }
};

// The scores of one query for all keys, as numbers to be softened.
template <class Device, class C>
struct MaskedRow {
  ScoreMask mask;
  int64_t heads, queries, keys, past;
  Elements<Device, const int64_t> valid_lengths;
  int64_t left_window, right_window;
  bool is_causal;
  C softcap;

  // With lengths given, the queries are the last of each sample's keys; otherwise they follow the past.
  PX_HD Masked<Device, C> masked(int64_t row) const {
    const int64_t query = row % queries;
    const int64_t batch = row / queries / heads;
    const int64_t start = batch * mask.strides[0] + row / queries % heads * mask.strides[1] + query * mask.strides[2];
    const int64_t location = query + (valid_lengths ? valid_lengths[batch] - queries : past);
    const int64_t first = left_window >= 0 && location > left_window ? location - left_window : 0;
    int64_t end = keys;
    if (is_causal && location + 1 < end) end = location + 1;
    if (right_window >= 0 && location + right_window + 1 < end) end = location + right_window + 1;
    if (valid_lengths && valid_lengths[batch] < end) end = valid_lengths[batch];
    return {mask.data, start, mask.strides[3], mask.keys, first, end, softcap};
  }
  template <class Team>
  PX_HD void operator()(Team& team, int64_t row) const {
    team.emit(masked(row));
  }
};

// A row in which everything is hidden becomes zeros.
template <class Device, class C>
struct MaskedSoftmaxRow {
  MaskedRow<Device, C> scores;

  template <class Team>
  PX_HD void operator()(Team& team, int64_t row) const {
    // The scores are softened in place: where nothing is added they are emitted already.
    const Masked<Device, C> masked = scores.masked(row);
    if (masked.mask.data != nullptr || masked.first_key > 0 || masked.end_key < scores.keys || masked.softcap > C(0)) {
      team.emit(masked);
    }
    const C highest = team.fold_emitted(FoldMax{});
    const bool all_hidden = highest == -std::numeric_limits<C>::infinity();
    team.change_emitted(ShiftedExponential<C>{all_hidden ? C(0) : highest});
    const C sum = team.fold_emitted(DifferenceSum<C>{C(0)});
    team.change_emitted(Normalized<C>{all_hidden ? C(1) : sum});
  }
};

template <class Device>
Result<ScoreMask> score_mask(const OpContext<Device>& op, const AttentionShape<Device>& shape) {
  ScoreMask made;
  if (!op.has_input(3)) return made;
  const Tensor& mask = op.input(3);
  Ints dims(mask.shape());
  while (dims.size() < 4) dims.insert(0, 1);
  const Ints wanted{shape.q.batch, shape.q.heads, shape.q.length, shape.keys};
  const Ints strides = row_major_strides(dims);
  for (int64_t axis = 0; axis < 4; ++axis) {
    if (dims.size() != 4 || (dims[axis] != 1 && dims[axis] != wanted[axis] && axis != 3) || dims[axis] > wanted[axis])
      return wrong_input(op, 3, "broadcast to the scores, {}", dims_text(wanted));
    made.strides[axis] = dims[axis] == 1 ? 0 : strides[axis];
  }
  made.keys = dims[3] == 1 ? shape.keys : dims[3];
  made.data = source_of(mask.view());
  return made;
}

template <class C, class Device>
Result<MaskedRow<Device, C>> masked_row(OpContext<Device>& op, const AttentionShape<Device>& shape) {
  const ScoreMask mask = PX_TRY(score_mask(op, shape));
  MaskedRow<Device, C> row{mask,
                           shape.q.heads,
                           shape.q.length,
                           shape.keys,
                           shape.past,
                           shape.valid_lengths,
                           shape.left_window,
                           shape.right_window,
                           shape.is_causal,
                           static_cast<C>(shape.softcap)};
  return row;
}

// Output 0 from [batch, heads, length, size] of C: in its own type, the heads side by side where Q came so.
template <class C, class Device>
Status store_heads(OpContext<Device>& op, const MutableView& sums, const Ints& dims) {
  const DType dtype = op.input(0).dtype();
  MutableView rounded = sums;
  if (dtype != storage_of<C>()) {
    rounded = PX_TRY(op.scratch(dtype, sums.shape));
    map_as<C, C>(op.queue(), Same{}, rounded, std::array<TensorView, 1>{TensorView(sums)});
  }
  const bool flat = op.input(0).shape().rank() == 3;
  const Shape shape = flat ? Shape{dims[0], dims[2], dims[1] * dims[3]} : Shape{dims[0], dims[1], dims[2], dims[3]};
  const MutableView y = PX_TRY(op.make_output(0, dtype, shape));
  const HeadsView out = PX_TRY(heads_view(shape, dims[1], "Y"));
  copy_strided(op.queue(), element_bytes(dtype), dims,
               {y.data, {out.batch_stride, out.head_stride, out.row_stride, 1}, 0},
               {rounded.data, row_major_strides(dims), 0});
  return {};
}

// The optional fourth output: 0 the scaled product, 1 after softcap, 2 with the mask added, 3 after softmax (the
// specification's text of version 23 was corrected to this order without a new version).
template <class C, class Device>
Status store_scores(OpContext<Device>& op, MaskedRow<Device, C> row, const MutableView& scores, int64_t stage) {
  const MutableView out = PX_TRY(op.make_output(3, op.input(0).dtype(), scores.shape));
  if (stage == 0 || stage == 3) {
    map_as<C, C>(op.queue(), Same{}, out, std::array<TensorView, 1>{TensorView(scores)});
    return {};
  }
  if (stage == 1) {
    row.mask = {};
    row.valid_lengths = {};
    row.left_window = row.right_window = -1;
    row.is_causal = false;
  }
  const RowLayout rows{row.keys == 0 ? 0 : scores.element_count() / row.keys, row.keys, 1};
  scan_rows<C, C>(op.queue(), row, rows, out, TensorView(scores), 8);
  return {};
}

// Scores of all heads, their softmax, the weighted sum of values. Query heads share key heads in groups.
template <class C, class Device>
Status attend(OpContext<Device>& op, const AttentionShape<Device>& shape, const CachedRows& keys,
              const CachedRows& values) {
  const HeadsView& q = shape.q;
  const MutableView q_packed = PX_TRY(op.scratch(op.input(0).dtype(), Shape{q.batch, q.heads, q.length, q.size}));
  const Ints q_dims{q.batch, q.heads, q.length, q.size};
  copy_strided(op.queue(), element_bytes(q_packed.dtype), q_dims, {q_packed.data, row_major_strides(q_dims), 0},
               {op.input(0).view().data, {q.batch_stride, q.head_stride, q.row_stride, 1}, 0});
  const auto q_values = PX_TRY(converted<C>(op.queue(), TensorView(q_packed), false));
  const auto k_values = PX_TRY(converted<C>(op.queue(), TensorView(keys.view), false));
  const auto v_values = PX_TRY(converted<C>(op.queue(), TensorView(values.view), false));
  const MaskedRow<Device, C> row = PX_TRY(masked_row<C>(op, shape));
  GemmProblem scores_problem;
  scores_problem.m = q.heads / shape.k.heads * q.length;  // of heads that share keys
  scores_problem.n = shape.keys;
  scores_problem.k = q.size;
  scores_problem.transpose_b = true;
  scores_problem.alpha = shape.scale;
  const int64_t matrices = q.batch * shape.k.heads;
  scores_problem.a_offsets = Ints(matrices);
  scores_problem.b_offsets = Ints(matrices);
  GemmProblem sum_problem = scores_problem;
  sum_problem.n = shape.v.size;
  sum_problem.k = shape.keys;
  sum_problem.transpose_b = false;
  sum_problem.alpha = 1.0;
  for (int64_t i = 0; i < matrices; ++i) {
    scores_problem.a_offsets[i] = i * scores_problem.m * q.size;
    scores_problem.b_offsets[i] = i * keys.matrix;
    sum_problem.a_offsets[i] = i * scores_problem.m * shape.keys;
    sum_problem.b_offsets[i] = i * values.matrix;
  }
  const MutableView scores = PX_TRY(op.scratch(storage_of<C>(), Shape{q.batch, q.heads, q.length, shape.keys}));
  C* score_values = reinterpret_cast<C*>(scores.data);
  PX_TRY(gemm(op.queue(), scores_problem, q_values.get(), k_values.get(), score_values));
  const RowLayout rows{q.batch * q.heads * q.length, shape.keys, 1};
  const int64_t shown = op.wants_output(3) ? op.integer("qk_matmul_output_mode") : -1;
  if (shown >= 0 && shown < 3) PX_TRY(store_scores(op, row, scores, shown));
  const MaskedSoftmaxRow<Device, C> softmax{row};
  scan_rows<C, C>(op.queue(), softmax, rows, scores, TensorView(scores), 8);
  if (shown == 3) PX_TRY(store_scores(op, row, scores, shown));
  const Ints sum_dims{q.batch, q.heads, q.length, shape.v.size};
  const MutableView sums = PX_TRY(op.scratch(storage_of<C>(), shape_of(sum_dims)));
  PX_TRY(gemm(op.queue(), sum_problem, score_values, v_values.get(), reinterpret_cast<C*>(sums.data)));
  return store_heads<C>(op, sums, sum_dims);
}

template <class Device>
Result<bool> attend_in_place(OpContext<Device>& op, const AttentionShape<Device>& shape) {
  const Tensor& k = op.input(1);
  const Tensor& v = op.input(2);
  const bool is_joined = shape.past > 0 || op.wants_output(1) || op.wants_output(2);
  if (is_joined || is_growable(k) || is_growable(v)) return false;
  return attend_at_once(op, shape, PX_TRY(score_mask(op, shape)), k.view(), shape.k, v.view(), shape.v);
}

template <class Device>
Status attention(OpContext<Device>& op) {
  const AttentionShape<Device> shape = PX_TRY(attention_shape(op));
  if constexpr (GpuDevice<Device>) {
    if (PX_TRY(attend_in_place(op, shape))) return {};
  }
  const CachedRows keys = PX_TRY(present_of(op, shape.k, 1, 4, 1, shape.keys));
  const CachedRows values = PX_TRY(present_of(op, shape.v, 2, 5, 2, shape.keys));
  if constexpr (GpuDevice<Device>) {
    const ScoreMask mask = PX_TRY(score_mask(op, shape));
    if (PX_TRY(attend_at_once(op, shape, mask, keys.view, heads_of(keys), values.view, heads_of(values)))) return {};
  }
  if (op.input(0).dtype() == DType::float64) return attend<double>(op, shape, keys, values);
  return attend<float>(op, shape, keys, values);
}

template <class Device>
constexpr KernelRow<Device> kAttentionRows[] = {
    {"Attention", kFloats, attention<Device>},
    {"RotaryEmbedding", kFloats, rotary_embedding<Device>},
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> attention_rows() {
  return kAttentionRows<CompiledDevice>;
}

// The only instances of its kernels: others call them.
#ifdef PX_COMPILED_DEVICE
template Result<bool> flash_attention(Queue<CompiledDevice>& queue, const FlashAttention& attention);
#endif

}  // namespace parallax::runtime
