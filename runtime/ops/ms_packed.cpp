// com.microsoft's operators over sequences without their padding: RemovePadding, RestorePadding, PackedAttention,
// PackedMultiHeadAttention; and on images: CropAndResize, UnfoldTensor. Definitions: ContribOperators.md.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "runtime/device/blocks.h"
#include "runtime/device/copy.h"
#include "runtime/ops/contributed.h"
#include "runtime/ops/microsoft_families.h"
#include "runtime/ops/ms_heads.h"

namespace parallax::runtime {
namespace {

using Context = OpContext<Cpu>;

// ---- Padding ----

Status set_integers(Context& op, int64_t output, const Shape& shape, const Ints& values) {
  const MutableView y = PX_TRY(op.make_output(output, DType::int32, shape));
  store_block<int64_t>(y.dtype, y.data, 0, y.element_count(), values.data());
  return {};
}

// The first sequence_token_count tokens of each sequence, and where they came from: the offsets of the tokens kept,
// then those of the padding.
Status remove_padding(Context& op) {
  const Tensor& x = op.input(0);
  const Ints dims(x.shape());
  if (dims.size() != 3 || op.input(1).element_count() != dims[0]) return execution_error("the inputs do not fit");
  const Ints counts = all_integers(op.input(1));
  Ints kept, padding, cumulated{0};
  int64_t longest = 0;
  for (int64_t batch = 0; batch < dims[0]; ++batch) {
    const int64_t count = counts[batch];
    if (count < 0 || count > dims[1]) return execution_error(fmt::format("{} tokens of {}", count, dims[1]));
    for (int64_t place = 0; place < dims[1]; ++place)
      (place < count ? kept : padding).push_back(batch * dims[1] + place);
    cumulated.push_back(cumulated.back() + count);
    longest = std::max(longest, count);
  }
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), shape_of({kept.size(), dims[2]})));
  index_map(
      op.queue(), [&](int64_t token) { return kept[token]; }, y, x.view().data, dims[2]);
  for (int64_t place : padding) kept.push_back(place);
  PX_TRY(set_integers(op, 1, Shape{dims[0], dims[1]}, kept));
  PX_TRY(set_integers(op, 2, Shape{dims[0] + 1}, cumulated));
  return set_integers(op, 3, Shape{1}, Ints{longest});
}

// Tokens back at their offsets, zeros between them.
Status restore_padding(Context& op) {
  const Tensor& x = op.input(0);
  const Ints dims(x.shape()), offsets(op.input(1).shape());
  if (dims.size() != 2 || offsets.size() != 2 || dims[0] > product(offsets))
    return execution_error("an input " + x.shape().to_string() + " with token_offset " +
                           op.input(1).shape().to_string());
  Ints source(product(offsets), -1);
  const Ints places = all_integers(op.input(1));
  for (int64_t token = 0; token < dims[0]; ++token) {
    if (places[token] < 0 || places[token] >= source.size())
      return execution_error(fmt::format("token offset {}", places[token]));
    source[places[token]] = token;
  }
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), shape_of({offsets[0], offsets[1], dims[1]})));
  index_map(
      op.queue(), [&](int64_t token) { return source[token]; }, y, x.view().data, dims[1]);
  return {};
}

// ---- Attention within each sequence of packed tokens ----

// Rows [begin, end) along `axis`.
Result<Tensor> rows_of(Context& op, const Tensor& x, int64_t axis, int64_t begin, int64_t end) {
  const auto one = [](int64_t value) { return Tensor::vector<int64_t>(std::span<const int64_t>(&value, 1)); };
  return run_inner(op, {"Slice", 13}, {x, one(begin), one(end), one(axis)});
}

Result<Ints> sequence_begins(const OpCall& op, int64_t input, int64_t tokens) {
  const Ints begins = PX_TRY(op.integers_of_input(input));
  if (begins.empty() || !std::is_sorted(begins.begin(), begins.end()) || begins[0] != 0 || begins.back() != tokens)
    return execution_error(fmt::format("cumulative_sequence_length must rise from 0 to the {} tokens", tokens));
  return begins;
}

// The bias of one sample, [1, heads, length, length], of one that broadcasts to [batch, heads, longest, longest].
Result<Tensor> bias_of(Context& op, const Tensor& bias, int64_t sample, int64_t length) {
  Tensor part = bias;
  const Ints dims(bias.shape());
  if (dims.size() != 4) return execution_error("attention_bias must have four axes");
  if (dims[0] != 1) part = PX_TRY(rows_of(op, part, 0, sample, sample + 1));
  for (const int64_t axis : {2, 3}) {
    if (dims[axis] != 1) part = PX_TRY(rows_of(op, part, axis, 0, length));
  }
  return part;
}

// Heads hold all tokens, [1, heads, tokens, size]; output 0 is [tokens, heads * size]. token_offset is [batch,
// longest].
Status attend_packed(Context& op, const Heads& all, const Ints& begins, int64_t token_offset, int64_t bias_input) {
  const Ints offsets(op.input(token_offset).shape());
  const int64_t batch = begins.size() - 1;
  if (offsets.size() != 2 || offsets[0] != batch)
    return execution_error("token_offset has shape " + op.input(token_offset).shape().to_string());
  std::vector<Value> parts;
  for (int64_t sample = 0; sample < batch; ++sample) {
    const int64_t begin = begins[sample], end = begins[sample + 1];
    if (end - begin > offsets[1]) return execution_error("a sequence is longer than token_offset says");
    if (begin == end) continue;
    Heads heads = all;
    for (Tensor* each : {&heads.q, &heads.k, &heads.v}) *each = PX_TRY(rows_of(op, *each, 2, begin, end));
    if (op.has_input(bias_input)) heads.mask = PX_TRY(bias_of(op, op.input(bias_input), sample, end - begin));
    const Attended attended = PX_TRY(attend(op, heads));
    parts.emplace_back(PX_TRY(join_heads(op, attended.y)));
  }
  const int64_t tokens = all.v.shape()[2], width = all.v.shape()[1] * all.v.shape()[3];
  if (parts.empty()) {
    PX_TRY(op.make_output(0, op.input(0).dtype(), shape_of({tokens, width})));
    return {};
  }
  const Tensor joined = PX_TRY(run_inner(op, {"Concat", 13, {inner_int("axis", 1)}}, parts));
  const Tensor flat = PX_TRY(reshaped(joined, {tokens, width}));
  Tensor y = PX_TRY(inner_cast(op, flat, op.input(0).dtype()));
  op.set_output(0, std::move(y));
  return {};
}

// Columns of [tokens, width] as [1, heads, tokens, size].
Result<Tensor> heads_of(Context& op, const Tensor& x, int64_t begin, int64_t width, int64_t heads) {
  const Tensor part = PX_TRY(columns(op, x, begin, begin + width));
  const Tensor seen = PX_TRY(reshaped(part, {1, x.shape()[0], width}));
  return split_heads(op, seen, heads);
}

Status packed_attention(Context& op) {
  const Ints dims(op.input(0).shape()), weights(op.input(1).shape());
  if (dims.size() != 2 || weights.size() != 2 || op.input(2).element_count() != weights[1])
    return execution_error("input, weights and bias do not fit");
  const Tensor x = PX_TRY(inner_cast(op, op.input(0), DType::float32));
  const Tensor w = PX_TRY(inner_cast(op, op.input(1), DType::float32));
  const Tensor b = PX_TRY(inner_cast(op, op.input(2), DType::float32));
  Tensor all = PX_TRY(run_inner(op, {"MatMul", 13}, {x, w}));
  all = PX_TRY(inner_binary(op, "Add", all, b));
  Ints widths = op.find_integers("qkv_hidden_sizes").value_or(Ints{});
  if (widths.empty()) widths = Ints(3, weights[1] / 3);
  if (widths.size() != 3 || *std::min_element(widths.begin(), widths.end()) < 1 ||
      *std::max_element(widths.begin(), widths.end()) > weights[1] || widths[0] + widths[1] + widths[2] != weights[1])
    return execution_error("'qkv_hidden_sizes' do not fit the weights");
  const int64_t count = op.integer("num_heads");
  Heads heads;
  heads.scale = op.find_real("scale").value_or(0.0);
  heads.q = PX_TRY(heads_of(op, all, 0, widths[0], count));
  heads.k = PX_TRY(heads_of(op, all, widths[0], widths[1], count));
  heads.v = PX_TRY(heads_of(op, all, widths[0] + widths[1], widths[2], count));
  const Ints begins = PX_TRY(sequence_begins(op, 4, dims[0]));
  return attend_packed(op, heads, begins, 3, 5);
}

// Queries, keys and values apart, or in one [tokens, heads, 3, size].
Status packed_multi_head_attention(Context& op) {
  const int64_t count = op.integer("num_heads");
  const Ints dims(op.input(0).shape());
  Heads heads;
  heads.scale = op.find_real("scale").value_or(0.0);
  Tensor* parts[] = {&heads.q, &heads.k, &heads.v};
  if (dims.size() == 4) {
    const Tensor wide = PX_TRY(inner_cast(op, op.input(0), DType::float32));
    const Tensor seen = PX_TRY(reshaped(wide, {1, dims[0], dims[1], dims[2], dims[3]}));
    for (int64_t part = 0; part < 3; ++part) *parts[part] = PX_TRY(packed_part(op, seen, count, 3, part));
  } else {
    for (int64_t part = 0; part < 3; ++part) {
      if (!op.has_input(part) || op.input(part).shape().rank() != 2)
        return execution_error(fmt::format("input {} must be [tokens, hidden]", part));
      const Tensor wide = PX_TRY(inner_cast(op, op.input(part), DType::float32));
      *parts[part] = PX_TRY(heads_of(op, wide, 0, wide.shape()[1], count));
    }
  }
  if (op.has_input(3)) {
    const Tensor bias = PX_TRY(inner_cast(op, op.input(3), DType::float32));
    int64_t begin = 0;
    for (Tensor* part : parts) {
      const int64_t width = part->shape()[1] * part->shape()[3];
      if (begin + width > bias.element_count()) return execution_error("the bias does not fit the heads");
      const Tensor own = PX_TRY(columns(op, bias, begin, begin + width));
      const Tensor by_head = PX_TRY(reshaped(own, {part->shape()[1], 1, part->shape()[3]}));
      *part = PX_TRY(inner_binary(op, "Add", *part, by_head));
      begin += width;
    }
  }
  const Ints begins = PX_TRY(sequence_begins(op, 5, heads.q.shape()[2]));
  return attend_packed(op, heads, begins, 4, 6);
}

// ---- Images ----

// All slices of `size` elements, `step` apart, along `dim`; the slice is a new last axis.
Status unfold(Context& op) {
  const Tensor& x = op.input(0);
  Ints dims(x.shape());
  const int64_t axis = PX_TRY(OpCall::resolve_axis(op.integer("dim"), dims.size()));
  const int64_t size = op.integer("size"), step = op.integer("step");
  if (size < 1 || step < 1 || size > dims[axis])
    return execution_error(fmt::format("size {} and step {} along an axis of {}", size, step, dims[axis]));
  Ints strides = row_major_strides(dims);
  strides.push_back(strides[axis]);
  strides[axis] *= step;
  dims[axis] = (dims[axis] - size) / step + 1;
  dims.push_back(size);
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), shape_of(dims)));
  copy_strided(op.queue(), element_bytes(x.dtype()), dims, {y.data, row_major_strides(dims), 0},
               {x.view().data, strides, 0});
  return {};
}

// Where sample `index` of `count` lies between the corners of a box, which are parts of `length` - 1; a box of one
// sample is sampled in its middle.
double sample_place(double low, double high, int64_t length, int64_t count, int64_t index) {
  const auto span = static_cast<double>(length - 1);
  if (count == 1) return 0.5 * (low + high) * span;
  return low * span + static_cast<double>(index) * (high - low) * span / static_cast<double>(count - 1);
}

struct Plane {
  const float* values;
  int64_t height, width;
  double bilinear(double y, double x) const {
    const auto top = static_cast<int64_t>(y), left = static_cast<int64_t>(x);
    const int64_t bottom = std::min(top + 1, height - 1), right = std::min(left + 1, width - 1);
    const double down = y - static_cast<double>(top), along = x - static_cast<double>(left);
    const auto at = [&](int64_t row, int64_t column) { return static_cast<double>(values[row * width + column]); };
    return (at(top, left) * (1 - along) + at(top, right) * along) * (1 - down) +
           (at(bottom, left) * (1 - along) + at(bottom, right) * along) * down;
  }
};

// What lies outside the image is the extrapolation value.
Status crop_and_resize(Context& op) {
  const Ints image(op.input(0).shape()), boxes(op.input(1).shape());
  const Ints batches = all_integers(op.input(2)), size = all_integers(op.input(3));
  const std::string mode = op.text("mode");
  if (mode != "bilinear" && mode != "nearest") return execution_error("attribute 'mode' is '" + mode + "'");
  if (image.size() != 4 || boxes.size() != 2 || boxes[1] != 4 || batches.size() != boxes[0] || size.size() != 2 ||
      size[0] < 1 || size[1] < 1)
    return execution_error("X, rois and crop_size do not fit");
  for (int64_t batch : batches) {
    if (batch < 0 || batch >= image[0]) return execution_error(fmt::format("batch index {} of {}", batch, image[0]));
  }
  const MutableView y =
      PX_TRY(op.make_output(0, op.input(0).dtype(), shape_of({boxes[0], image[1], size[0], size[1]})));
  std::vector<float> x(static_cast<size_t>(product(image)));
  load_block<float>(op.input(0).dtype(), op.input(0).view().data, 0, 1, product(image), x.data());
  const Tensor& rois = op.input(1);
  const auto corner = [&](int64_t roi, int64_t which) {
    return load_element<double>(rois.dtype(), rois.view().data, roi * 4 + which);
  };
  const float outside = static_cast<float>(op.real("extrapolation_value"));
  for (int64_t at = 0; at < y.element_count(); ++at) {
    const int64_t roi = at / size[1] / size[0] / image[1];
    const int64_t channel = batches[roi] * image[1] + at / size[1] / size[0] % image[1];
    const Plane plane{x.data() + channel * image[2] * image[3], image[2], image[3]};
    const double row = sample_place(corner(roi, 0), corner(roi, 2), image[2], size[0], at / size[1] % size[0]);
    const double column = sample_place(corner(roi, 1), corner(roi, 3), image[3], size[1], at % size[1]);
    const bool inside = row >= 0 && row <= static_cast<double>(image[2] - 1) && column >= 0 &&
                        column <= static_cast<double>(image[3] - 1);
    float value = outside;
    if (inside && mode == "bilinear") value = static_cast<float>(plane.bilinear(row, column));
    if (inside && mode == "nearest")
      value = plane.values[static_cast<int64_t>(std::round(row)) * image[3] + static_cast<int64_t>(std::round(column))];
    store_block<float>(y.dtype, y.data, at, 1, &value);
  }
  return {};
}

constexpr KernelRow<Cpu> kMsPackedRows[] = {
    contributed_row("CropAndResize", kNarrowFloats, crop_and_resize),
    contributed_row("PackedAttention", kNarrowFloats, packed_attention),
    contributed_row("PackedMultiHeadAttention", kNarrowFloats, packed_multi_head_attention),
    contributed_row("RemovePadding", kMovable, remove_padding),
    contributed_row("RestorePadding", kMovable, restore_padding),
    contributed_row("UnfoldTensor", kMovable, unfold),
};

}  // namespace

template <>
Rows<Cpu> ms_packed_rows() {
  return kMsPackedRows;
}

}  // namespace parallax::runtime
