// com.microsoft's normalisations: SkipLayerNormalization, SkipSimplifiedLayerNormalization, EmbedLayerNormalization,
// GroupNorm, SkipGroupNorm; and SimplifiedLayerNormalization, which onnxruntime writes into ai.onnx.
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "runtime/device/map.h"
#include "runtime/device/math.h"
#include "runtime/device/rows.h"
#include "runtime/ops/contributed.h"
#include "runtime/ops/families.h"
#include "runtime/ops/inner_op.h"
#include "runtime/ops/row_folds.h"

namespace parallax::runtime {
namespace {

using Context = OpContext<Cpu>;

// One input as a row of C, checked to have that many elements.
template <class C>
Result<std::vector<C>> row_values(Context& op, int64_t index, int64_t columns) {
  if (op.input(index).element_count() != columns) {
    return execution_error(fmt::format("input {} has shape {}, {} values are needed", index,
                                       op.input(index).shape().to_string(), columns));
  }
  std::vector<C> values(static_cast<size_t>(columns));
  load_block<C>(op.input(index).dtype(), op.input(index).view().data, 0, 1, columns, values.data());
  return values;
}

// A row normalised in one go: mean, then squares of the differences from it, then scale and shift.
template <class C>
struct RowNorm {
  bool centred = true;
  C epsilon = 0;
  std::vector<C> scale = {}, bias = {};  // the bias may be empty

  void run(const C* in, C* out, C& mean, C& inverse) const {
    const auto columns = static_cast<int64_t>(scale.size());
    const C count = static_cast<C>(columns);
    mean = centred ? rows_detail::fold_row<C>(FoldSum{}, in, columns) / count : C(0);
    inverse = C(1) / std::sqrt(rows_detail::fold_row<C>(SquaredDifferenceSum<C>{mean}, in, columns) / count + epsilon);
    const C* factor = scale.data();
    const C* shift = bias.empty() ? nullptr : bias.data();
    const C m = mean, s = inverse;
    vectorised(0, columns, [=](int64_t begin, int64_t end) {
      if (shift == nullptr) {
        PX_INDEPENDENT_ITERATIONS
        for (int64_t i = begin; i < end; ++i) out[i] = (in[i] - m) * s * factor[i];
      } else {
        PX_INDEPENDENT_ITERATIONS
        for (int64_t i = begin; i < end; ++i) out[i] = (in[i] - m) * s * factor[i] + shift[i];
      }
    });
  }
};

// The statistics of rows, where they are outputs.
struct StatisticOutputs {
  MutableView mean, inverse;
  template <class C>
  void set(int64_t row, C mean_value, C inverse_value) const {
    if (mean.data != nullptr) store_block<C>(mean.dtype, mean.data, row, 1, &mean_value);
    if (inverse.data != nullptr) store_block<C>(inverse.dtype, inverse.data, row, 1, &inverse_value);
  }
};

Result<StatisticOutputs> statistic_outputs(Context& op, int64_t mean, int64_t inverse, const Shape& shape) {
  StatisticOutputs outputs;
  if (op.wants_output(mean)) outputs.mean = PX_TRY(op.make_output(mean, DType::float32, shape));
  if (op.wants_output(inverse)) outputs.inverse = PX_TRY(op.make_output(inverse, DType::float32, shape));
  return outputs;
}

Shape with_last(const Shape& shape, int64_t last) {
  std::vector<int64_t> dims(shape.begin(), shape.end());
  dims.back() = last;
  return Shape(dims);
}

// input + skip + bias, normalised row by row; the sum is output 3 where it is wanted. The skip may lack the batch.
template <class C>
Status skip_norm_as(Context& op, bool centred, int64_t beta, int64_t bias) {
  const Tensor& x = op.input(0);
  const Tensor& skip = op.input(1);
  const Ints dims(x.shape());
  if (dims.size() < 2) return execution_error("the input must be [batch, sequence, hidden]");
  const int64_t columns = dims.back();
  if (columns == 0 || skip.element_count() == 0 || x.element_count() % skip.element_count() != 0 ||
      skip.element_count() % columns != 0 || skip.shape()[skip.shape().rank() - 1] != columns)
    return execution_error("skip " + skip.shape().to_string() + " does not fit " + x.shape().to_string());
  RowNorm<C> norm{centred, static_cast<C>(op.real("epsilon"))};
  norm.scale = PX_TRY(row_values<C>(op, 2, columns));
  if (beta >= 0 && op.has_input(beta)) norm.bias = PX_TRY(row_values<C>(op, beta, columns));
  std::vector<C> added;
  if (op.has_input(bias)) added = PX_TRY(row_values<C>(op, bias, columns));
  const StatisticOutputs statistics = PX_TRY(statistic_outputs(op, 1, 2, with_last(x.shape(), 1)));
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), x.shape()));
  MutableView sums;
  if (op.wants_output(3)) sums = PX_TRY(op.make_output(3, x.dtype(), x.shape()));
  const int64_t skip_rows = skip.element_count() / columns;
  const bool direct = x.dtype() == storage_of<C>() && skip.dtype() == storage_of<C>();
  parallel_for(x.element_count() / columns, columns * 4, [&](int64_t begin, int64_t end) {
    std::vector<C> left(static_cast<size_t>(columns)), right(left), out(left);
    for (int64_t row = begin; row < end; ++row) {
      const C* a = reinterpret_cast<const C*>(x.view().data) + row * columns;
      const C* b = reinterpret_cast<const C*>(skip.view().data) + row % skip_rows * columns;
      if (!direct) {
        load_block<C>(x.dtype(), x.view().data, row * columns, 1, columns, left.data());
        load_block<C>(skip.dtype(), skip.view().data, row % skip_rows * columns, 1, columns, right.data());
        a = left.data();
        b = right.data();
      }
      C* sum = left.data();
      const C* more = added.empty() ? nullptr : added.data();
      vectorised(0, columns, [=](int64_t first, int64_t last) {
        if (more == nullptr) {
          for (int64_t i = first; i < last; ++i) sum[i] = a[i] + b[i];
        } else {
          for (int64_t i = first; i < last; ++i) sum[i] = a[i] + b[i] + more[i];
        }
      });
      if (sums.data != nullptr) store_block<C>(sums.dtype, sums.data, row * columns, columns, sum);
      C mean = 0, inverse = 0;
      norm.run(sum, out.data(), mean, inverse);
      store_block<C>(y.dtype, y.data, row * columns, columns, out.data());
      statistics.set(row, mean, inverse);
    }
  });
  return {};
}

Status skip_layer_norm(Context& op) { return skip_norm_as<float>(op, true, 3, 4); }
Status skip_rms_norm(Context& op) { return skip_norm_as<float>(op, false, -1, 3); }

// x / sqrt(mean(x^2) + epsilon) * scale from `axis` on.
Status simplified_layer_norm(Context& op) {
  const Tensor& x = op.input(0);
  const Ints dims(x.shape());
  const int64_t axis = PX_TRY(OpCall::resolve_axis(op.integer("axis"), dims.size()));
  const int64_t columns = product(dims, axis, dims.size());
  std::vector<int64_t> kept(dims.begin(), dims.end());
  std::fill(kept.begin() + axis, kept.end(), 1);
  const StatisticOutputs statistics = PX_TRY(statistic_outputs(op, -1, 1, Shape(kept)));
  const MutableView y = PX_TRY(op.make_output_over(0, op.input(1).dtype(), x.shape(), {0}));
  if (x.element_count() == 0) return {};
  return visit_arithmetic<Floats>(x.dtype(), [&](auto zero) -> Status {
    using C = decltype(zero);
    RowNorm<C> norm{false, static_cast<C>(op.real("epsilon"))};
    norm.scale = PX_TRY(row_values<C>(op, 1, columns));
    const RowLayout rows{product(dims, 0, axis), columns, 1};
    const auto each = [&](int64_t row, const C* in, C* out) {
      C mean = 0, inverse = 0;
      norm.run(in, out, mean, inverse);
      statistics.set(row, mean, inverse);
    };
    scan_rows<C, C>(op.queue(), each, rows, y, x.view(), 2);
    return {};
  });
}

// ---- EmbedLayerNormalization ----

// Adds row `rows[token % rows.size()]` of a table to each token.
Status add_rows(Context& op, int64_t table, const Ints& rows, int64_t hidden, std::vector<float>& sums) {
  const Tensor& tensor = op.input(table);
  if (tensor.shape().rank() != 2 || tensor.shape()[1] != hidden)
    return execution_error(
        fmt::format("input {} has shape {}, the hidden size is {}", table, tensor.shape().to_string(), hidden));
  std::vector<float> row(static_cast<size_t>(hidden));
  const auto tokens = static_cast<int64_t>(sums.size()) / std::max<int64_t>(1, hidden);
  for (int64_t token = 0; token < tokens; ++token) {
    const int64_t id = rows[token % rows.size()];
    if (id < 0 || id >= tensor.shape()[0])
      return execution_error(fmt::format("row {} of {} embeddings", id, tensor.shape()[0]));
    load_block<float>(tensor.dtype(), tensor.view().data, id * hidden, 1, hidden, row.data());
    float* out = sums.data() + token * hidden;
    for (int64_t i = 0; i < hidden; ++i) out[i] += row.data()[i];
  }
  return {};
}

Result<Ints> positions_of(Context& op, const Shape& ids) {
  if (op.has_input(8)) {
    Ints positions = all_integers(op.input(8));
    if (positions.size() != ids.element_count() && positions.size() != ids[1])
      return execution_error("position_ids do not fit input_ids");
    return positions;
  }
  Ints positions(ids[1]);
  for (int64_t place = 0; place < ids[1]; ++place) positions[place] = place;
  return positions;
}

Status set_mask_index(Context& op, const Shape& ids) {
  if (!op.wants_output(1)) return {};
  const MutableView lengths = PX_TRY(op.make_output(1, DType::int32, Shape{ids[0]}));
  Ints mask;
  if (op.has_input(7)) {
    mask = all_integers(op.input(7));
    if (mask.size() != ids.element_count()) return execution_error("the mask does not fit input_ids");
  }
  for (int64_t batch = 0; batch < ids[0]; ++batch) {
    int32_t length = 0;
    for (int64_t i = 0; i < ids[1] && !mask.empty(); ++i) length += mask[batch * ids[1] + i] == 1 ? 1 : 0;
    lengths.as<int32_t>()[batch] = length;
  }
  return {};
}

Status embed_layer_norm(Context& op) {
  const Shape& ids = op.input(0).shape();
  const Shape& table = op.input(2).shape();
  if (ids.rank() != 2 || table.rank() != 2) return execution_error("input_ids and the word table must have two axes");
  const int64_t hidden = table[1];
  const Shape shape = PX_TRY(shape_of(Ints{ids[0], ids[1], hidden}));
  const DType dtype = op.input(2).dtype();
  std::vector<float> sums(static_cast<size_t>(shape.element_count()), 0.0F);
  if (!sums.empty()) {
    const Ints words = all_integers(op.input(0));
    const Ints positions = PX_TRY(positions_of(op, ids));
    PX_TRY(add_rows(op, 2, words, hidden, sums));
    PX_TRY(add_rows(op, 3, positions, hidden, sums));
    if (op.has_input(1) && op.has_input(4)) {
      const Ints segments = all_integers(op.input(1));
      if (segments.size() != ids.element_count()) return execution_error("segment_ids do not fit input_ids");
      PX_TRY(add_rows(op, 4, segments, hidden, sums));
    }
  }
  if (op.wants_output(2)) {
    const MutableView total = PX_TRY(op.make_output(2, dtype, shape));
    store_block<float>(dtype, total.data, 0, shape.element_count(), sums.data());
  }
  RowNorm<float> norm{true, static_cast<float>(op.real("epsilon"))};
  norm.scale = PX_TRY(row_values<float>(op, 5, hidden));
  norm.bias = PX_TRY(row_values<float>(op, 6, hidden));
  const MutableView y = PX_TRY(op.make_output(0, dtype, shape));
  for (int64_t row = 0; hidden > 0 && row < shape.element_count() / hidden; ++row) {
    float mean = 0, inverse = 0;
    float* values = sums.data() + row * hidden;
    norm.run(values, values, mean, inverse);
    store_block<float>(dtype, y.data, row * hidden, hidden, values);
  }
  return set_mask_index(op, ids);
}

// ---- GroupNorm ----

// x, channels first, by groups of channels; scaled and shifted by channel; then SiLU where it is asked for.
void normalise_groups(std::span<float> x, const Shape& shape, int64_t groups, float epsilon, const float* scale,
                      const float* bias, bool silu) {
  const int64_t channels = shape[1];
  const int64_t inner = shape[2] * shape[3];
  const int64_t count = channels / groups * inner;
  parallel_for(shape[0] * groups, count * 4, [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; ++group) {
      float* values = x.data() + group * count;
      const float mean = rows_detail::fold_row<float>(FoldSum{}, values, count) / static_cast<float>(count);
      const float squares = rows_detail::fold_row<float>(SquaredDifferenceSum<float>{mean}, values, count);
      const float inverse = 1.0F / std::sqrt(squares / static_cast<float>(count) + epsilon);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t channel = group % groups * (channels / groups) + i / inner;
        const float value = (values[i] - mean) * inverse * scale[channel] + bias[channel];
        values[i] = silu ? value * math::sigmoid(value) : value;
      }
    }
  });
}

Status group_norm_of(Context& op, const Tensor& sums) {
  const bool last = op.integer("channels_last") != 0;
  const int64_t groups = op.integer("groups");
  const int64_t activation = op.integer("activation");
  Tensor x = PX_TRY(inner_cast(op, sums, DType::float32));
  if (last) x = PX_TRY(inner_transpose(op, x, {0, 3, 1, 2}));
  const int64_t channels = x.shape()[1];
  if (groups <= 0 || channels % groups != 0)
    return execution_error(fmt::format("{} channels cannot be split into {} groups", channels, groups));
  if (activation != 0 && activation != 1) return execution_error(fmt::format("activation is {}", activation));
  const std::vector<float> scale = PX_TRY(row_values<float>(op, 1, channels));
  const std::vector<float> bias = PX_TRY(row_values<float>(op, 2, channels));
  Tensor y = PX_TRY(x.clone());
  if (y.element_count() > 0) {
    normalise_groups(y.mutable_as<float>(), y.shape(), groups, static_cast<float>(op.real("epsilon")), scale.data(),
                     bias.data(), activation == 1);
  }
  if (last) y = PX_TRY(inner_transpose(op, y, {0, 2, 3, 1}));
  y = PX_TRY(inner_cast(op, y, op.input(0).dtype()));
  op.set_output(0, std::move(y));
  return {};
}

Status group_norm(Context& op) {
  if (op.input(0).shape().rank() != 4) return execution_error("X must have four axes");
  return group_norm_of(op, op.input(0));
}

// GroupNorm of X + skip + bias; a skip of [N, C] is repeated over the image.
Status skip_group_norm(Context& op) {
  const Tensor& x = op.input(0);
  const Tensor& skip = op.input(3);
  if (x.shape().rank() != 4) return execution_error("X must have four axes");
  const bool last = op.integer("channels_last") != 0;
  const int64_t channels = x.shape()[last ? 3 : 1];
  const auto by_channel = [&](int64_t batch) {
    return last ? Shape{batch, 1, 1, channels} : Shape{batch, channels, 1, 1};
  };
  Tensor added = skip;
  if (skip.shape().rank() == 2) {
    if (skip.shape()[1] != channels) return execution_error("the skip does not fit X");
    added = skip.reshaped(by_channel(skip.shape()[0]));
  }
  added = PX_TRY(inner_cast(op, added, DType::float32));
  Tensor wide = PX_TRY(inner_cast(op, x, DType::float32));
  wide = PX_TRY(inner_binary(op, "Add", wide, added));
  if (op.has_input(4)) {
    if (op.input(4).element_count() != channels) return execution_error("the bias does not fit X");
    const Tensor bias = PX_TRY(inner_cast(op, op.input(4).reshaped(by_channel(1)), DType::float32));
    wide = PX_TRY(inner_binary(op, "Add", wide, bias));
  }
  if (!(wide.shape() == x.shape())) return execution_error("the skip does not fit X");
  if (op.wants_output(1)) op.set_output(1, PX_TRY(inner_cast(op, wide, x.dtype())));
  return group_norm_of(op, wide);
}

constexpr KernelRow<Cpu> kMsNormRows[] = {
    contributed_row("EmbedLayerNormalization", kNarrowFloats, embed_layer_norm, 2),
    contributed_row("GroupNorm", kNarrowFloats, group_norm),
    contributed_row("SkipGroupNorm", kNarrowFloats, skip_group_norm),
    contributed_row("SkipLayerNormalization", kNarrowFloats, skip_layer_norm),
    contributed_row("SkipSimplifiedLayerNormalization", kNarrowFloats, skip_rms_norm),
    {"SimplifiedLayerNormalization", kFloats, simplified_layer_norm},
};

}  // namespace

template <>
Rows<Cpu> ms_norm_rows() {
  return kMsNormRows;
}

}  // namespace parallax::runtime
