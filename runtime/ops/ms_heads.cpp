// Chains of the operators of ai.onnx under com.microsoft's attention.
#include "runtime/ops/ms_heads.h"

#include <fmt/format.h>

#include "runtime/device/blocks.h"
#include "runtime/device/copy.h"

namespace parallax::runtime {
namespace {

using Context = OpContext<Cpu>;

Tensor one_integer(int64_t value) { return Tensor::vector<int64_t>(std::span<const int64_t>(&value, 1)); }

// Says of each key whether a query sees it; nothing where the mask's shape has no meaning.
struct Visibility {
  Ints numbers;
  ScoreShape shape;
  enum class Kind : uint8_t { none, ends, ends_and_begins, by_key, by_query, by_place } kind = Kind::none;
  int64_t rows = 0, row = 0;  // of the last two axes of a mask by place

  bool sees(int64_t batch, int64_t query, int64_t key) const {
    switch (kind) {
      case Kind::ends:
        return key < numbers[batch];
      case Kind::ends_and_begins:
        return key < numbers[batch] && key >= numbers[shape.batch + batch];
      case Kind::by_key:
        return numbers[batch * shape.keys + key] > 0;
      case Kind::by_query:
        return numbers[(batch * shape.queries + query) * shape.keys + key] > 0;
      case Kind::by_place:
        return numbers[(batch * rows + shape.past + query) * row + key] > 0;
      case Kind::none:
        break;
    }
    return true;
  }
};

Visibility visibility_of(const Tensor& mask, const ScoreShape& shape) {
  Visibility visibility{all_integers(mask), shape};
  using Kind = Visibility::Kind;
  const Ints dims(mask.shape());
  if (dims.size() == 1 && (dims[0] == shape.batch || dims[0] == 3 * shape.batch + 2)) visibility.kind = Kind::ends;
  if (dims.size() == 1 && dims[0] == 2 * shape.batch) visibility.kind = Kind::ends_and_begins;
  if (dims == Ints{shape.batch, shape.keys}) visibility.kind = Kind::by_key;
  if (dims == Ints{shape.batch, shape.queries, shape.keys}) visibility.kind = Kind::by_query;
  if (dims.size() == 4 && dims[0] == shape.batch && dims[1] == 1 && dims[2] >= shape.past + shape.queries &&
      dims[3] >= shape.keys) {
    visibility.kind = Kind::by_place;
    visibility.rows = dims[2];
    visibility.row = dims[3];
  }
  return visibility;
}

}  // namespace

Result<Tensor> reshaped(const Tensor& tensor, const Ints& dims) {
  const Shape shape = PX_TRY(shape_of(dims));
  if (shape.element_count() != tensor.element_count())
    return execution_error("a tensor of shape " + tensor.shape().to_string() + " does not fit " + shape.to_string());
  return tensor.reshaped(shape);
}

DType head_type(DType dtype) { return dtype == DType::float64 ? DType::float64 : DType::float32; }

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

Result<Tensor> columns(Context& op, const Tensor& x, int64_t begin, int64_t end) {
  return run_inner(op, {"Slice", 13}, {x, one_integer(begin), one_integer(end), one_integer(-1)});
}

Result<Tensor> packed_part(Context& op, const Tensor& x, int64_t heads, int64_t parts, int64_t part) {
  const Ints dims(x.shape());
  if (dims.size() != 5 || dims[2] != heads || dims[3] != parts)
    return execution_error(
        fmt::format("{} is not [batch, length, {} heads, {}, size]", x.shape().to_string(), heads, parts));
  const Ints out{dims[0], heads, dims[1], dims[4]};
  const Shape shape = PX_TRY(shape_of(out));
  Tensor made = PX_TRY(op.queue().allocate(x.dtype(), shape));
  const int64_t token = heads * parts * dims[4];
  copy_strided(op.queue(), element_bytes(x.dtype()), out, {writable(made).data, row_major_strides(out), 0},
               {x.view().data, {dims[1] * token, parts * dims[4], token, 1}, part * dims[4]});
  return made;
}

Result<Tensor> joined_rows(Context& op, const Tensor& a, const Tensor& b) {
  return run_inner(op, {"Concat", 13, {inner_int("axis", 2)}}, {a, b});
}

Result<Tensor> added_mask(Context& op, const Tensor& mask, const ScoreShape& shape, double filter) {
  const Visibility visibility = visibility_of(mask, shape);
  using Kind = Visibility::Kind;
  if (visibility.kind == Kind::none) {
    return execution_error(fmt::format("a mask of shape {} does not fit {} samples, {} queries and {} keys",
                                       mask.shape().to_string(), shape.batch, shape.queries, shape.keys));
  }
  const bool by_query = visibility.kind == Kind::by_query || visibility.kind == Kind::by_place;
  const int64_t rows = by_query ? shape.queries : 1;
  const Shape dims = PX_TRY(shape_of({shape.batch, 1, rows, shape.keys}));
  Tensor added = PX_TRY(op.queue().allocate(DType::float32, dims));
  float* values = reinterpret_cast<float*>(writable(added).data);
  for (int64_t i = 0; i < shape.batch * rows * shape.keys; ++i) {
    const int64_t row = i / shape.keys;
    const bool seen = visibility.sees(row / rows, row % rows, i % shape.keys);
    values[i] = seen ? 0.0F : static_cast<float>(filter);
  }
  return added;
}

Result<Tensor> both_masks(Context& op, const Tensor& a, const Tensor& b) {
  if (!a.defined()) return b;
  if (!b.defined()) return a;
  return inner_binary(op, "Add", a, b);
}

Result<Attended> attend(Context& op, const Heads& heads) {
  InnerOp inner{"Attention", 23, {inner_int("is_causal", heads.causal ? 1 : 0)}};
  if (heads.scale != 0) inner.attributes.push_back(inner_float("scale", heads.scale));
  if (heads.softcap != 0) inner.attributes.push_back(inner_float("softcap", heads.softcap));
  if (heads.shown >= 0) {
    inner.attributes.push_back(inner_int("qk_matmul_output_mode", heads.shown));
    inner.output_count = 4;
  }
  Value mask;
  if (heads.mask.defined()) mask = PX_TRY(inner_cast(op, heads.mask, heads.q.dtype()));
  // Unidirectional queries are the last keys: those in front of them are a past.
  const int64_t past = heads.causal ? heads.k.shape()[2] - heads.q.shape()[2] : 0;
  std::vector<Value> inputs{heads.q, heads.k, heads.v, mask};
  if (past > 0) {
    for (const size_t which : {size_t{1}, size_t{2}}) {
      const Tensor all = inputs[which].tensor();
      const auto rows = [&](int64_t begin, int64_t end) {
        return run_inner(op, {"Slice", 13}, {all, one_integer(begin), one_integer(end), one_integer(2)});
      };
      inputs.emplace_back(PX_TRY(rows(0, past)));
      inputs[which] = PX_TRY(rows(past, all.shape()[2]));
    }
  }
  const std::vector<Value> outputs = PX_TRY(run_inner_all(op, inner, inputs));
  return Attended{outputs[0].tensor(), heads.shown >= 0 ? outputs[3].tensor() : Tensor()};
}

}  // namespace parallax::runtime
