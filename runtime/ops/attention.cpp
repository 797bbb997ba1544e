// RotaryEmbedding and Attention (operator sets 23 and later). Source: the specification's text and function bodies.
#include <cmath>

#include <fmt/format.h>

#include "runtime/device/copy.h"
#include "runtime/device/gemm.h"
#include "runtime/device/map.h"
#include "runtime/device/math.h"
#include "runtime/device/rows.h"
#include "runtime/ops/families.h"

namespace parallax::runtime {
namespace {

// A tensor seen as [batch, heads, length, size], from rank 4 or from [batch, length, heads * size]; strides in
// elements.
struct HeadsView {
  int64_t batch = 0, heads = 0, length = 0, size = 0;
  int64_t batch_stride = 0, head_stride = 0, row_stride = 0;
  int64_t row(int64_t b, int64_t h, int64_t i) const { return b * batch_stride + h * head_stride + i * row_stride; }
};

Result<HeadsView> heads_view(const Shape& shape, int64_t heads, std::string_view name) {
  HeadsView view;
  if (shape.rank() == 4) {
    view = {shape[0], shape[1], shape[2], shape[3], shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3]};
    return view;
  }
  if (shape.rank() != 3 || heads < 1 || shape[2] % heads != 0) {
    return execution_error(fmt::format("{} {} has no {} heads", name, shape.to_string(), heads));
  }
  const int64_t size = shape[2] / heads;
  return HeadsView{shape[0], heads, shape[1], size, shape[1] * shape[2], size, shape[2]};
}

// ---- RotaryEmbedding ----

template <class C>
void rotate_row(const C* in, const C* cosine, const C* sine, int64_t rotated, int64_t size, bool interleaved, C* out) {
  const int64_t half = rotated / 2;
  for (int64_t i = 0; i < half; ++i) {
    const int64_t first = interleaved ? 2 * i : i;
    const int64_t second = interleaved ? 2 * i + 1 : i + half;
    const C x = in[first];
    const C y = in[second];
    out[first] = x * cosine[i] - y * sine[i];
    out[second] = x * sine[i] + y * cosine[i];
  }
  std::copy(in + rotated, in + size, out + rotated);
}

// The row of a cache for (batch, position): through position_ids, or [batch, length, half] directly.
struct CacheRows {
  Ints positions;  // empty without position_ids
  int64_t length = 0;
  int64_t row(int64_t b, int64_t i) const { return positions.empty() ? b * length + i : positions[b * length + i]; }
};

template <class Device>
Result<CacheRows> cache_rows(OpContext<Device>& op, const HeadsView& x, int64_t half) {
  CacheRows rows{{}, x.length};
  const Shape& cosine = op.input(1).shape();
  if (!(cosine == op.input(2).shape()) || cosine.rank() < 2 || dim_of(cosine, rank_of(cosine) - 1) != half) {
    return execution_error(fmt::format("the caches {} and {} do not fit half a rotation of {}", cosine.to_string(),
                                       op.input(2).shape().to_string(), half));
  }
  if (!op.has_input(3)) {
    if (cosine.element_count() != x.batch * x.length * half) return execution_error("the caches do not fit X");
    return rows;
  }
  const Tensor& ids = op.input(3);
  if (ids.element_count() != x.batch * x.length) return execution_error("position_ids do not fit X");
  rows.positions = Ints(ids.element_count());
  for (int64_t i = 0; i < ids.element_count(); ++i) {
    rows.positions[i] = load_element<int64_t>(ids.dtype(), ids.view().data, i);
    if (rows.positions[i] < 0 || rows.positions[i] >= cosine.element_count() / half) {
      return execution_error(fmt::format("position {} is outside the caches", rows.positions[i]));
    }
  }
  return rows;
}

template <class Device>
Status rotary_embedding(OpContext<Device>& op) {
  const Tensor& input = op.input(0);
  const HeadsView x = PX_TRY(heads_view(input.shape(), op.find_integer("num_heads").value_or(0), "X"));
  const int64_t given = op.find_integer("rotary_embedding_dim").value_or(0);
  const int64_t rotated = given == 0 ? x.size : given;
  if (rotated < 0 || rotated > x.size || rotated % 2 != 0)
    return execution_error(fmt::format("cannot rotate {} of {}", rotated, x.size));
  const CacheRows rows = PX_TRY(cache_rows(op, x, rotated / 2));
  const bool interleaved = op.find_integer("interleaved").value_or(0) != 0;
  const MutableView y = PX_TRY(op.make_output(0, input.dtype(), input.shape()));
  return visit_arithmetic<Floats>(input.dtype(), [&](auto zero) -> Status {
    using C = decltype(zero);
    const auto cosine = PX_TRY(converted<C>(op.queue(), op.input(1).view(), op.is_constant(1)));
    const auto sine = PX_TRY(converted<C>(op.queue(), op.input(2).view(), op.is_constant(2)));
    parallel_for(x.batch * x.length, x.heads * x.size * 2, [&](int64_t begin, int64_t end) {
      std::vector<C> in(static_cast<size_t>(x.size)), out(static_cast<size_t>(x.size));
      for (int64_t index = begin; index < end; ++index) {
        const int64_t b = index / x.length;
        const int64_t i = index % x.length;
        const int64_t cache = rows.row(b, i) * (rotated / 2);
        for (int64_t h = 0; h < x.heads; ++h) {
          load_block<C>(input.dtype(), input.view().data, x.row(b, h, i), 1, x.size, in.data());
          rotate_row(in.data(), cosine.get() + cache, sine.get() + cache, rotated, x.size, interleaved, out.data());
          store_block<C>(y.dtype, y.data, x.row(b, h, i), x.size, out.data());
        }
      }
    });
    return {};
  });
}

// ---- Attention ----

struct AttentionShape {
  HeadsView q, k, v;
  int64_t past = 0;
  int64_t keys = 0;  // past and present
  bool is_causal = false;
  double scale = 0;
  double softcap = 0;
};

template <class Device>
Result<AttentionShape> attention_shape(OpContext<Device>& op) {
  AttentionShape shape;
  const int64_t q_heads = op.find_integer("q_num_heads").value_or(0);
  const int64_t kv_heads = op.find_integer("kv_num_heads").value_or(0);
  shape.q = PX_TRY(heads_view(op.input(0).shape(), q_heads, "Q"));
  shape.k = PX_TRY(heads_view(op.input(1).shape(), kv_heads, "K"));
  shape.v = PX_TRY(heads_view(op.input(2).shape(), kv_heads, "V"));
  if (shape.q.batch != shape.k.batch || shape.k.batch != shape.v.batch || shape.k.heads != shape.v.heads ||
      shape.k.length != shape.v.length || shape.q.size != shape.k.size || shape.k.heads < 1 ||
      shape.q.heads % shape.k.heads != 0) {
    return execution_error("Q, K and V do not fit together");
  }
  if (op.has_input(4) != op.has_input(5)) return execution_error("past_key and past_value must come together");
  if (op.has_input(4)) {
    const Shape& past = op.input(4).shape();
    if (past.rank() != 4 || past[0] != shape.k.batch || past[1] != shape.k.heads || past[3] != shape.k.size) {
      return execution_error("past_key " + past.to_string() + " does not fit K");
    }
    shape.past = past[2];
  }
  shape.keys = shape.past + shape.k.length;
  shape.is_causal = op.find_integer("is_causal").value_or(0) != 0;
  shape.scale = op.find_real("scale").value_or(1.0 / std::sqrt(static_cast<double>(shape.q.size)));
  shape.softcap = op.find_real("softcap").value_or(0.0);
  return shape;
}

// past and present of K or V side by side, [batch, heads, keys, size], in the output that asks for it or in scratch
// memory.
template <class Device>
Result<MutableView> present_of(OpContext<Device>& op, const HeadsView& now, int64_t input, int64_t past_input,
                               int64_t output, int64_t keys) {
  const Tensor& current = op.input(input);
  const Shape shape{now.batch, now.heads, keys, now.size};
  const MutableView all = op.wants_output(output) ? PX_TRY(op.make_output(output, current.dtype(), shape))
                                                  : PX_TRY(op.scratch(current.dtype(), shape));
  const int64_t bytes = element_bytes(current.dtype());
  const Ints strides = row_major_strides(shape);
  const int64_t past = keys - now.length;
  if (past > 0) {
    const Shape& past_shape = op.input(past_input).shape();
    if (!(past_shape == Shape{now.batch, now.heads, past, now.size}))
      return execution_error("past_value does not fit V");
    copy_strided(op.queue(), bytes, past_shape, {all.data, strides, 0},
                 {op.input(past_input).view().data, row_major_strides(past_shape), 0});
  }
  copy_strided(op.queue(), bytes, {now.batch, now.heads, now.length, now.size}, {all.data, strides, past * now.size},
               {current.view().data, {now.batch_stride, now.head_stride, now.row_stride, 1}, 0});
  return all;
}

// What the scores of one (batch, head, query) get added: the mask, and minus infinity on keys after the query.
template <class C>
struct MaskRows {
  TensorView mask;  // undefined: none
  Ints strides{0, 0, 0, 0};
  int64_t mask_keys = 0;

  void add(int64_t b, int64_t h, int64_t i, int64_t keys, C* scores) const {
    if (mask.dtype == DType::undefined) return;
    const int64_t start = b * strides[0] + h * strides[1] + i * strides[2];
    for (int64_t j = 0; j < keys; ++j) {
      const int64_t at = start + j * strides[3];
      if (j >= mask_keys) {
        scores[j] = -std::numeric_limits<C>::infinity();  // a mask shorter than the keys hides the rest
      } else if (mask.dtype == DType::bool_) {
        if (!data_as<bool>(mask)[at]) scores[j] = -std::numeric_limits<C>::infinity();
      } else {
        scores[j] += load_element<C>(mask.dtype, mask.data, at);
      }
    }
  }
};

template <class C, class Device>
Result<MaskRows<C>> mask_rows(OpContext<Device>& op, const AttentionShape& shape) {
  MaskRows<C> rows;
  if (!op.has_input(3)) return rows;
  const Tensor& mask = op.input(3);
  Ints dims(mask.shape());
  while (dims.size() < 4) dims.insert(0, 1);
  const Ints wanted{shape.q.batch, shape.q.heads, shape.q.length, shape.keys};
  const Ints strides = row_major_strides(dims);
  for (int64_t axis = 0; axis < 4; ++axis) {
    if (dims.size() != 4 || (dims[axis] != 1 && dims[axis] != wanted[axis] && axis != 3) || dims[axis] > wanted[axis]) {
      return execution_error("the mask " + mask.shape().to_string() + " does not fit the scores");
    }
    rows.strides[axis] = dims[axis] == 1 ? 0 : strides[axis];
  }
  rows.mask_keys = dims[3] == 1 ? shape.keys : dims[3];
  rows.mask = mask.view();
  return rows;
}

template <class C>
void softmax_in_place(C* scores, int64_t count) {
  C highest = -std::numeric_limits<C>::infinity();
  for (int64_t j = 0; j < count; ++j) highest = math::maximum(highest, scores[j]);
  vectorised(0, count, [=](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) scores[j] = math::exp(scores[j] - highest);
  });
  C sum = 0;
  for (int64_t j = 0; j < count; ++j) sum += scores[j];
  for (int64_t j = 0; j < count; ++j) scores[j] /= sum;
}

// Scores of all heads, their softmax, the weighted sum of values. Query heads share key heads in groups.
template <class C, class Device>
Status attend(OpContext<Device>& op, const AttentionShape& shape, const MutableView& keys, const MutableView& values) {
  const HeadsView& q = shape.q;
  const MutableView q_packed = PX_TRY(op.scratch(op.input(0).dtype(), Shape{q.batch, q.heads, q.length, q.size}));
  const Ints q_dims{q.batch, q.heads, q.length, q.size};
  copy_strided(op.queue(), element_bytes(q_packed.dtype), q_dims, {q_packed.data, row_major_strides(q_dims), 0},
               {op.input(0).view().data, {q.batch_stride, q.head_stride, q.row_stride, 1}, 0});
  const auto q_values = PX_TRY(converted<C>(op.queue(), TensorView(q_packed), false));
  const auto k_values = PX_TRY(converted<C>(op.queue(), TensorView(keys), false));
  const auto v_values = PX_TRY(converted<C>(op.queue(), TensorView(values), false));
  const MaskRows<C> mask = PX_TRY((mask_rows<C>(op, shape)));
  GemmProblem scores_problem;
  scores_problem.m = q.length;
  scores_problem.n = shape.keys;
  scores_problem.k = q.size;
  scores_problem.transpose_b = true;
  scores_problem.alpha = shape.scale;
  scores_problem.a_offsets = Ints(q.batch * q.heads);
  scores_problem.b_offsets = Ints(q.batch * q.heads);
  GemmProblem sum_problem = scores_problem;
  sum_problem.n = shape.v.size;
  sum_problem.k = shape.keys;
  sum_problem.transpose_b = false;
  sum_problem.alpha = 1.0;
  const int64_t group = q.heads / shape.k.heads;
  for (int64_t i = 0; i < q.batch * q.heads; ++i) {
    const int64_t kv = i / q.heads * shape.k.heads + i % q.heads / group;
    scores_problem.a_offsets[i] = i * q.length * q.size;
    scores_problem.b_offsets[i] = kv * shape.keys * shape.k.size;
    sum_problem.a_offsets[i] = i * q.length * shape.keys;
    sum_problem.b_offsets[i] = kv * shape.keys * shape.v.size;
  }
  const MutableView scores = PX_TRY(op.scratch(storage_of<C>(), Shape{q.batch, q.heads, q.length, shape.keys}));
  C* score_values = reinterpret_cast<C*>(scores.data);
  PX_TRY(gemm(op.queue(), scores_problem, q_values.get(), k_values.get(), score_values));
  parallel_for(q.batch * q.heads * q.length, shape.keys * 4, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      C* line = score_values + row * shape.keys;
      const int64_t i = row % q.length;
      if (shape.softcap > 0) {
        const C cap = static_cast<C>(shape.softcap);
        for (int64_t j = 0; j < shape.keys; ++j) line[j] = cap * math::tanh(line[j] / cap);
      }
      mask.add(row / q.length / q.heads, row / q.length % q.heads, i, shape.keys, line);
      for (int64_t j = i + shape.past + 1; shape.is_causal && j < shape.keys; ++j)
        line[j] = -std::numeric_limits<C>::infinity();
      softmax_in_place(line, shape.keys);
    }
  });
  const MutableView sums = PX_TRY(op.scratch(storage_of<C>(), Shape{q.batch, q.heads, q.length, shape.v.size}));
  PX_TRY(gemm(op.queue(), sum_problem, score_values, v_values.get(), reinterpret_cast<C*>(sums.data)));
  const bool flat = op.input(0).shape().rank() == 3;
  const Shape out_shape =
      flat ? Shape{q.batch, q.length, q.heads * shape.v.size} : Shape{q.batch, q.heads, q.length, shape.v.size};
  const MutableView y = PX_TRY(op.make_output(0, op.input(0).dtype(), out_shape));
  const HeadsView out = PX_TRY(heads_view(out_shape, q.heads, "Y"));
  for (int64_t row = 0; row < q.batch * q.heads * q.length; ++row) {
    const int64_t at = out.row(row / q.length / q.heads, row / q.length % q.heads, row % q.length);
    store_block<C>(y.dtype, y.data, at, shape.v.size, reinterpret_cast<const C*>(sums.data) + row * shape.v.size);
  }
  return {};
}

template <class Device>
Status attention(OpContext<Device>& op) {
  if (op.wants_output(3))
    return unsupported("output qk_matmul_output has no kernel here; --fallback=reference runs it");
  if (op.has_input(6)) return unsupported("nonpad_kv_seqlen has no kernel here; --fallback=reference runs it");
  const AttentionShape shape = PX_TRY(attention_shape(op));
  const MutableView keys = PX_TRY(present_of(op, shape.k, 1, 4, 1, shape.keys));
  const MutableView values = PX_TRY(present_of(op, shape.v, 2, 5, 2, shape.keys));
  if (op.input(0).dtype() == DType::float64) return attend<double>(op, shape, keys, values);
  return attend<float>(op, shape, keys, values);
}

template <class Device>
constexpr KernelRow<Device> kRows[] = {
    {"Attention", kFloats, attention<Device>},
    {"RotaryEmbedding", kFloats, rotary_embedding<Device>},
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> attention_rows() {
  return kRows<CompiledDevice>;
}

}  // namespace parallax::runtime
