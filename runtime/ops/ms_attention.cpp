// com.microsoft's attention: MultiHeadAttention, Attention, RotaryEmbedding. Heads are laid out,
// masks are written as numbers to be added, and the Attention of ai.onnx computes. Definitions: ContribOperators.md.
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "runtime/device/blocks.h"
#include "runtime/ops/contributed.h"
#include "runtime/ops/inner_op.h"
#include "runtime/ops/microsoft_families.h"

namespace parallax::runtime {
namespace {

using Context = OpContext<Cpu>;

Result<Tensor> reshaped(const Tensor& tensor, const Ints& dims) {
  const Shape shape = PX_TRY(shape_of(dims));
  if (shape.element_count() != tensor.element_count())
    return execution_error("a tensor of shape " + tensor.shape().to_string() + " does not fit " + shape.to_string());
  return tensor.reshaped(shape);
}

// [batch, length, heads * size] as [batch, heads, length, size], and back.
Result<Tensor> split_heads(Context& op, const Tensor& x, int64_t heads) {
  const Ints dims(x.shape());
  if (dims.size() != 3 || heads < 1 || dims[2] % heads != 0)
    return execution_error(fmt::format("{} has no {} heads", x.shape().to_string(), heads));
  const Tensor seen = PX_TRY(reshaped(x, {dims[0], dims[1], heads, dims[2] / heads}));
  return inner_transpose(op, seen, {0, 2, 1, 3});
}
Result<Tensor> join_heads(Context& op, const Tensor& x) {
  const Ints dims(x.shape());
  const Tensor moved = PX_TRY(inner_transpose(op, x, {0, 2, 1, 3}));
  return reshaped(moved, {dims[0], dims[2], dims[1] * dims[3]});
}

// Columns [begin, end) of the last axis.
Result<Tensor> columns(Context& op, const Tensor& x, int64_t begin, int64_t end) {
  const auto one = [](int64_t value) { return Tensor::vector<int64_t>(std::span<const int64_t>(&value, 1)); };
  return run_inner(op, {"Slice", 13}, {x, one(begin), one(end), one(-1)});
}

Result<Tensor> plus_bias(Context& op, const Tensor& x, const Tensor* bias, int64_t begin, int64_t count) {
  if (bias == nullptr) return x;
  const Tensor part = PX_TRY(columns(op, *bias, begin, begin + count));
  return inner_binary(op, "Add", x, part);
}

// ---- Masks as numbers to be added, [batch, 1, queries or 1, keys] ----

// 0 where key j may be seen; the filter value elsewhere. The mask has a length for each batch, a number for each key,
// or one for each query and key.
Result<Tensor> added_mask(Context& op, const Tensor& mask, int64_t batch, int64_t queries, int64_t keys,
                          double filter) {
  const Ints dims(mask.shape());
  const bool by_length = dims.size() == 1 && dims[0] == batch;
  const bool by_key = dims.size() == 2 && dims[0] == batch && dims[1] == keys;
  const bool by_query = dims.size() == 3 && dims[0] == batch && dims[1] == queries && dims[2] == keys;
  if (!by_length && !by_key && !by_query)
    return unsupported("a mask of shape " + mask.shape().to_string() +
                       " has no kernel here; --fallback=reference runs it");
  const int64_t rows = by_query ? queries : 1;
  Tensor added = PX_TRY(op.queue().allocate(DType::float32, Shape{batch, 1, rows, keys}));
  float* values = reinterpret_cast<float*>(writable(added).data);
  for (int64_t i = 0; i < batch * rows * keys; ++i) {
    const int64_t given = load_element<int64_t>(mask.dtype(), mask.view().data, by_length ? i / keys : i);
    const bool seen = by_length ? i % keys < given : given != 0;
    values[i] = seen ? 0.0F : static_cast<float>(filter);
  }
  return added;
}

struct Heads {
  Tensor q, k, v;  // [batch, heads, length, size]
  const Tensor* past_k = nullptr;
  const Tensor* past_v = nullptr;
  Tensor mask;       // added to the scores; undefined: none
  double scale = 0;  // 0: by the size of a head
  double softcap = 0;
  bool causal = false;
};

struct Attended {
  Tensor y, present_k, present_v;  // y: [batch, length, heads * size]
};

Result<Attended> attend(Context& op, const Heads& heads) {
  InnerOp inner{"Attention", 23, {inner_int("is_causal", heads.causal ? 1 : 0)}};
  inner.output_count = 3;
  if (heads.scale != 0) inner.attributes.push_back(inner_float("scale", heads.scale));
  if (heads.softcap != 0) inner.attributes.push_back(inner_float("softcap", heads.softcap));
  std::vector<Value> inputs{heads.q, heads.k, heads.v, heads.mask.defined() ? Value(heads.mask) : Value()};
  if (heads.past_k != nullptr) inputs.insert(inputs.end(), {*heads.past_k, *heads.past_v});
  std::vector<Value> outputs = PX_TRY(run_inner_all(op, inner, inputs));
  Attended attended;
  attended.y = PX_TRY(join_heads(op, outputs[0].tensor()));
  attended.present_k = outputs[1].tensor();
  attended.present_v = outputs[2].tensor();
  return attended;
}

// Adds a mask to another, either of which may be undefined.
Result<Tensor> both_masks(Context& op, const Tensor& a, const Tensor& b) {
  if (!a.defined()) return b;
  if (!b.defined()) return a;
  return inner_binary(op, "Add", a, b);
}

Status refuse(const OpCall& op, std::initializer_list<int64_t> inputs, std::string_view what) {
  for (int64_t input : inputs) {
    if (op.has_input(input))
      return unsupported(fmt::format("{} has no kernel here; --fallback=reference runs it", what));
  }
  return {};
}

// ---- MultiHeadAttention ----

// Q, K and V by heads, from whichever of the layouts the inputs have.
Result<Heads> multi_head_inputs(Context& op, int64_t count) {
  Heads heads;
  const Tensor* bias = op.has_input(3) ? &op.input(3) : nullptr;
  const Ints q_dims(op.input(0).shape());
  if (q_dims.size() != 3 || !op.has_input(1) || !op.has_input(2))
    return unsupported("packed Q, K and V have no kernel here; --fallback=reference runs them");
  const int64_t width = q_dims[2];
  const Tensor q = PX_TRY(plus_bias(op, op.input(0), bias, 0, width));
  heads.q = PX_TRY(split_heads(op, q, count));
  if (op.input(1).shape().rank() == 4) {
    heads.k = op.input(1);
    heads.v = op.input(2);
    return heads;
  }
  const Tensor k = PX_TRY(plus_bias(op, op.input(1), bias, width, width));
  const Ints v_dims(op.input(2).shape());
  if (v_dims.size() != 3) return execution_error("V has shape " + op.input(2).shape().to_string());
  const Tensor v = PX_TRY(plus_bias(op, op.input(2), bias, 2 * width, v_dims[2]));
  heads.k = PX_TRY(split_heads(op, k, count));
  heads.v = PX_TRY(split_heads(op, v, count));
  return heads;
}

Status multi_head_attention(Context& op) {
  PX_TRY(refuse(op, {8, 9}, "a shared buffer of the past"));
  if (op.wants_output(3)) return unsupported("output qk has no kernel here; --fallback=reference runs it");
  Heads heads = PX_TRY(multi_head_inputs(op, op.integer("num_heads")));
  heads.scale = op.find_real("scale").value_or(0.0);
  heads.causal = op.integer("unidirectional") != 0;
  const int64_t batch = heads.q.shape()[0], queries = heads.q.shape()[2];
  int64_t keys = heads.k.shape()[2];
  if (op.has_input(6) != op.has_input(7)) return execution_error("past_key and past_value must come together");
  if (op.has_input(6)) {
    heads.past_k = &op.input(6);
    heads.past_v = &op.input(7);
    if (heads.past_k->shape().rank() != 4) return execution_error("past_key must have four axes");
    keys += heads.past_k->shape()[2];
  }
  Tensor mask;
  if (op.has_input(4)) {
    mask =
        PX_TRY(added_mask(op, op.input(4), batch, queries, keys, op.find_real("mask_filter_value").value_or(-10000)));
    mask = PX_TRY(inner_cast(op, mask, op.input(0).dtype()));
  }
  heads.mask = PX_TRY(both_masks(op, mask, op.has_input(5) ? op.input(5) : Tensor()));
  Attended attended = PX_TRY(attend(op, heads));
  op.set_output(0, std::move(attended.y));
  if (op.wants_output(1)) op.set_output(1, std::move(attended.present_k));
  if (op.wants_output(2)) op.set_output(2, std::move(attended.present_v));
  return {};
}

// ---- Attention: the projections belong to it ----

Status attention(Context& op) {
  PX_TRY(refuse(op, {4, 6}, "a past in one tensor"));
  if (op.find_integer("do_rotary").value_or(0) != 0)
    return unsupported("do_rotary has no kernel here; --fallback=reference runs it");
  const int64_t count = op.integer("num_heads");
  const Ints dims(op.input(0).shape());
  const Ints weights(op.input(1).shape());
  if (dims.size() != 3 || weights.size() != 2 || count < 1) return execution_error("input or weights do not fit");
  Ints widths = op.find_integers("qkv_hidden_sizes").value_or(Ints{});
  if (widths.empty()) widths = Ints(3, weights[1] / 3);
  if (widths.size() != 3 || product(widths, 0, 1) + widths[1] + widths[2] != weights[1])
    return execution_error("'qkv_hidden_sizes' do not fit the weights");
  Tensor all = PX_TRY(run_inner(op, {"MatMul", 13}, {op.value(0), op.value(1)}));
  if (op.has_input(2)) all = PX_TRY(inner_binary(op, "Add", all, op.input(2)));
  Heads heads;
  Tensor* parts[] = {&heads.q, &heads.k, &heads.v};
  int64_t begin = 0;
  for (int64_t part = 0; part < 3; ++part) {
    const Tensor slice = PX_TRY(columns(op, all, begin, begin + widths[part]));
    *parts[part] = PX_TRY(split_heads(op, slice, count));
    begin += widths[part];
  }
  heads.scale = op.find_real("scale").value_or(0.0);
  heads.causal = op.integer("unidirectional") != 0;
  Tensor mask;
  if (op.has_input(3)) {
    const double filter = op.find_real("mask_filter_value").value_or(-10000);
    mask = PX_TRY(added_mask(op, op.input(3), dims[0], dims[1], dims[1], filter));
    mask = PX_TRY(inner_cast(op, mask, op.input(0).dtype()));
  }
  heads.mask = PX_TRY(both_masks(op, mask, op.has_input(5) ? op.input(5) : Tensor()));
  Attended attended = PX_TRY(attend(op, heads));
  op.set_output(0, std::move(attended.y));
  if (!op.wants_output(1)) return {};
  const auto stacked = [](const Tensor& tensor) {
    Ints shape(tensor.shape());
    shape.insert(0, 1);
    return reshaped(tensor, shape);
  };
  const Tensor k = PX_TRY(stacked(attended.present_k));
  const Tensor v = PX_TRY(stacked(attended.present_v));
  Tensor present = PX_TRY(run_inner(op, {"Concat", 13, {inner_int("axis", 0)}}, {k, v}));
  op.set_output(1, std::move(present));
  return {};
}

// ---- RotaryEmbedding: one position is that of the first token ----

Status rotary_embedding(Context& op) {
  const Tensor& x = op.input(0);
  const Ints dims(x.shape());
  if (op.find_real("scale").value_or(1.0) != 1.0) return unsupported("a scale: what it scales is not said");
  if (dims.size() != 3 && dims.size() != 4) return execution_error("the input has shape " + x.shape().to_string());
  const Ints caches(op.input(2).shape());
  if (caches.size() != 2 || !(op.input(3).shape() == op.input(2).shape()))
    return execution_error("the caches must be matrices of one shape");
  const int64_t batch = dims[0], length = dims[dims.size() == 4 ? 2 : 1], rotated = 2 * caches[1];
  const int64_t asked = op.find_integer("rotary_embedding_dim").value_or(0);
  if (asked != 0 && asked != rotated)
    return execution_error(fmt::format("rotary_embedding_dim is {}, the caches turn {}", asked, rotated));
  Ints positions = all_integers(op.input(1));
  if (positions.size() == 1 && op.input(1).shape().rank() == 1) {
    const int64_t first = positions[0];
    if (first < 0 || first > caches[0]) return execution_error(fmt::format("position {} is outside the caches", first));
    positions = Ints(batch * length);
    for (int64_t i = 0; i < batch * length; ++i) positions[i] = first + i % length;
  }
  if (positions.size() != batch * length) return execution_error("position_ids do not fit the input");
  int64_t heads = op.find_integer("num_heads").value_or(0);
  if (heads == 0 && dims.size() == 3 && rotated > 0) heads = dims[2] / rotated;
  InnerOp inner{"RotaryEmbedding",
                23,
                {inner_int("interleaved", op.find_integer("interleaved").value_or(0)),
                 inner_int("rotary_embedding_dim", rotated)}};
  if (dims.size() == 3) inner.attributes.push_back(inner_int("num_heads", heads));
  const Tensor ids = Tensor::from<int64_t>(Shape{batch, length}, positions);
  Tensor y = PX_TRY(run_inner(op, inner, {op.value(0), op.value(2), op.value(3), ids}));
  op.set_output(0, std::move(y));
  return {};
}

constexpr uint32_t kNarrowFloats = dtype_bits({DType::float32, DType::float16, DType::bfloat16});

constexpr KernelRow<Cpu> kRows[] = {
    contributed_row("Attention", kNarrowFloats, attention),
    contributed_row("MultiHeadAttention", kNarrowFloats, multi_head_attention),
    contributed_row("RotaryEmbedding", kNarrowFloats, rotary_embedding),
};

}  // namespace

template <>
Rows<Cpu> ms_attention_rows() {
  return kRows;
}

}  // namespace parallax::runtime
