// SPDX-License-Identifier: Apache-2.0
// com.microsoft's normalizations: SkipLayerNormalization, SkipSimplifiedLayerNormalization, EmbedLayerNormalization,
// GroupNorm, SkipGroupNorm; and SimplifiedLayerNormalization, which onnxruntime writes into ai.onnx.
#include <cmath>

#include "inspector/model/rule_errors.h"
#include "reference/ops/contrib/shared.h"
#include "reference/ops/families.h"
#include "reference/ops/inner_op.h"
#include "reference/ops/map.h"

namespace parallax::reference {
namespace {

// The last axis of x normalized row by row: (x - mean) * inverse * gamma + beta, without the mean where it is not
// `centered`. beta may be empty.
struct RowNorm {
  bool centered = true;
  double epsilon = 0;
  std::vector<double> gamma = {}, beta = {};
  // Made:
  std::vector<double> means = {}, inverses = {};

  void run(std::span<double> x) {
    const size_t columns = gamma.size();
    for (size_t begin = 0; columns > 0 && begin < x.size(); begin += columns) {
      const auto row = x.subspan(begin, columns);
      double mean = 0;
      for (double value : row) mean += centered ? value : 0.0;
      mean /= static_cast<double>(columns);
      double variance = 0;
      for (double value : row) variance += (value - mean) * (value - mean);
      const double inverse = 1.0 / std::sqrt(variance / static_cast<double>(columns) + epsilon);
      means.push_back(mean);
      inverses.push_back(inverse);
      for (size_t column = 0; column < columns; ++column) {
        row[column] = (row[column] - mean) * inverse * gamma[column] + (beta.empty() ? 0.0 : beta[column]);
      }
    }
  }
};

Result<std::vector<double>> vector_input(const OpContext& op, size_t index, int64_t length) {
  PX_TRY(expect_shape(op, index, Shape{length}));
  const Numbers<double> numbers(op.input(index));
  return std::vector<double>(numbers.span().begin(), numbers.span().end());
}

Shape reduced(const Shape& shape) {
  std::vector<int64_t> dims(shape.begin(), shape.end());
  dims.back() = 1;
  return Shape(dims);
}

// input + skip + bias, normalized. The sum is an output of its own. `beta` and `bias` are positions of inputs; beta may
// be none.
Status skip_normalize(OpContext& op, RowNorm norm, std::optional<size_t> beta, size_t bias) {
  const Shape& shape = op.input(0).shape();
  if (shape.rank() < 2) return wrong_input(op, 0, "have rank 2 or more");
  const int64_t hidden = shape[shape.rank() - 1];
  const DType dtype = op.input(0).dtype();
  norm.epsilon = op.float_attribute("epsilon");
  norm.gamma = PX_TRY(vector_input(op, 2, hidden));
  if (beta.has_value() && op.has_input(*beta)) norm.beta = PX_TRY(vector_input(op, *beta, hidden));
  std::vector<double> sums = PX_TRY(broadcast_input(op, 0, shape));
  const std::vector<double> skip = PX_TRY(broadcast_input(op, 1, shape));
  std::vector<double> added(static_cast<size_t>(hidden), 0.0);
  if (op.has_input(bias)) added = PX_TRY(vector_input(op, bias, hidden));
  for (size_t at = 0; at < sums.size(); ++at) sums[at] += skip[at] + added[at % added.size()];
  PX_TRY(op.set_output(3, dtype, shape, std::span<const double>(sums)));
  norm.run(sums);
  PX_TRY(op.set_output(0, dtype, shape, std::span<const double>(sums)));
  if (hidden == 0) return {};
  PX_TRY(op.set_output(1, DType::float32, reduced(shape), std::span<const double>(norm.means)));
  return op.set_output(2, DType::float32, reduced(shape), std::span<const double>(norm.inverses));
}

// X [N, C, ...] in groups of channels, scaled and shifted by channel, then SiLU where `activation` is 1.
void normalize_groups(std::span<double> x, const Shape& shape, int64_t groups, double epsilon,
                      std::span<const double> gamma, std::span<const double> beta, bool silu) {
  const int64_t channels = shape[1];
  const int64_t inner = count_of(shape, 2, shape.rank());
  const auto count = static_cast<size_t>(channels / groups * inner);
  for (size_t begin = 0; count > 0 && begin < x.size(); begin += count) {
    const auto group = x.subspan(begin, count);
    double mean = 0;
    for (double value : group) mean += value;
    mean /= static_cast<double>(count);
    double variance = 0;
    for (double value : group) variance += (value - mean) * (value - mean);
    const double deviation = std::sqrt(variance / static_cast<double>(count) + epsilon);
    for (size_t at = 0; at < count; ++at) {
      const auto channel = (begin + at) / static_cast<size_t>(inner) % static_cast<size_t>(channels);
      const double value = (group[at] - mean) / deviation * gamma[channel] + beta[channel];
      group[at] = silu ? value * sigmoid(value) : value;
    }
  }
}

// The last part of GroupNorm and SkipGroupNorm: `x` holds the sums, laid out as channels_last says.
Status set_group_norm(OpContext& op, Tensor x) {
  const size_t rank = x.shape().rank();
  const bool last = op.int_attribute("channels_last") != 0;
  const int64_t groups = op.int_attribute("groups");
  const int64_t channels = x.shape()[last ? rank - 1 : 1];
  const int64_t activation = op.int_attribute("activation");
  if (groups <= 0 || channels % groups != 0)
    return wrong_attribute("groups", groups, "be 1 or more and divide the {} channels", channels);
  if (activation != 0 && activation != 1)
    return as_invalid_model(wrong_attribute("activation", activation, "be 0 or 1"));
  const std::vector<double> gamma = PX_TRY(vector_input(op, 1, channels));
  const std::vector<double> beta = PX_TRY(vector_input(op, 2, channels));
  Tensor y = PX_TRY(transpose(op, x, last ? channels_first(rank) : std::vector<int64_t>{0, 1, 2, 3}));
  normalize_groups(y.mutable_as<double>(), y.shape(), groups, op.float_attribute("epsilon"), gamma, beta,
                   activation == 1);
  if (last) y = PX_TRY(transpose(op, y, channels_last(rank)));
  return set_rounded(op, 0, op.input(0).dtype(), y);
}

Result<Tensor> sums_tensor(const Shape& shape, std::span<const double> values) {
  Tensor tensor = PX_TRY(Tensor::allocate(DType::float64, shape));
  store<double>(tensor, 0, values);
  return tensor;
}

// ContribOperators.md, com.microsoft.SkipLayerNormalization.
Status op_contrib_skip_layer_normalization(OpContext& op) { return skip_normalize(op, {.centered = true}, 3, 4); }

// com.microsoft.SkipSimplifiedLayerNormalization: the same without means.
Status op_contrib_skip_simplified_layer_normalization(OpContext& op) {
  return skip_normalize(op, {.centered = false}, std::nullopt, 3);
}

// SimplifiedLayerNormalization-1 of onnxruntime in ai.onnx: x / sqrt(mean(x^2) + epsilon) * scale from `axis` on.
Status op_contrib_simplified_layer_normalization(OpContext& op) {
  const Shape& shape = op.input(0).shape();
  const size_t axis = PX_TRY(normalize_axis(op.int_attribute("axis"), shape.rank()));
  const Shape part(shape.dims().subspan(axis));
  RowNorm norm{.centered = false, .epsilon = op.float_attribute("epsilon")};
  norm.gamma = PX_TRY(broadcast_input(op, 1, part));
  std::vector<double> x = PX_TRY(broadcast_input(op, 0, shape));
  norm.run(x);
  std::vector<int64_t> dims(shape.begin(), shape.end());
  std::fill(dims.begin() + static_cast<ptrdiff_t>(axis), dims.end(), 1);
  PX_TRY(op.set_output(0, op.input(1).dtype(), shape, std::span<const double>(x)));
  if (norm.gamma.empty()) return {};
  return op.set_output(1, DType::float32, Shape(dims), std::span<const double>(norm.inverses));
}

// com.microsoft.EmbedLayerNormalization: rows of the word, position and segment tables, added and normalized. Without
// position_ids a token's position is its index in the sequence. The sum, which the page calls that of words and
// positions, holds the segments too, as in onnxruntime. The mask index is the number of ones in a row of the mask, 0
// without a mask.
Status op_contrib_embed_layer_normalization(OpContext& op) {
  const Shape& ids = op.input(0).shape();
  if (ids.rank() != 2) return wrong_input(op, 0, "have rank 2");
  const Shape& table = op.input(2).shape();
  const int64_t hidden = table.rank() == 2 ? table[1] : 0;
  const std::vector<int64_t> dims{ids[0], ids[1], hidden};
  const Shape shape = PX_TRY(Shape::create(dims));
  std::vector<double> sums(static_cast<size_t>(shape.element_count()), 0.0);
  const auto add_rows = [&](size_t table_index, const std::vector<int64_t>& rows) -> Status {
    const Shape& from = op.input(table_index).shape();
    if (from.rank() != 2 || from[1] != hidden)
      return wrong_input(op, table_index, "have rank 2 and {} columns, the hidden size", hidden);
    const Numbers<double> numbers(op.input(table_index));
    for (size_t at = 0; at < sums.size(); ++at) {
      const int64_t row = rows[at / static_cast<size_t>(hidden) % rows.size()];
      if (row < 0 || row >= from[0])
        return wrong_value("the row of an embedding", row, "be in [0, {}), the rows of {}", from[0],
                           input_name(op, table_index));
      sums[at] += numbers[row * hidden + static_cast<int64_t>(at) % hidden];
    }
    return {};
  };
  PX_TRY(add_rows(2, to_int64s(op.input(0))));
  std::vector<int64_t> positions;
  for (int64_t location = 0; location < ids[1]; ++location) positions.push_back(location);
  if (op.has_input(8)) {
    if (op.input(8).shape().rank() == 2 && op.input(8).shape()[0] == 1) {
      PX_TRY(expect_shape(op, 8, Shape{1, ids[1]}));
    } else {
      PX_TRY(expect_shape(op, 8, ids));
    }
    positions = to_int64s(op.input(8));
  }
  PX_TRY(add_rows(3, positions));
  if (op.has_input(1) && op.has_input(4)) {
    PX_TRY(expect_shape(op, 1, ids));
    PX_TRY(add_rows(4, to_int64s(op.input(1))));
  }
  const DType dtype = op.input(2).dtype();
  PX_TRY(op.set_output(2, dtype, shape, std::span<const double>(sums)));
  RowNorm norm{.centered = true, .epsilon = op.float_attribute("epsilon")};
  norm.gamma = PX_TRY(vector_input(op, 5, hidden));
  norm.beta = PX_TRY(vector_input(op, 6, hidden));
  norm.run(sums);
  PX_TRY(op.set_output(0, dtype, shape, std::span<const double>(sums)));
  std::vector<int64_t> lengths(static_cast<size_t>(ids[0]), 0);
  if (op.has_input(7)) {
    PX_TRY(expect_shape(op, 7, ids));
    const std::vector<int64_t> mask = to_int64s(op.input(7));
    for (size_t at = 0; at < mask.size(); ++at) lengths[at / static_cast<size_t>(ids[1])] += mask[at] == 1 ? 1 : 0;
  }
  return op.set_output(1, DType::int32, Shape{ids[0]}, std::span<const int64_t>(lengths));
}

// com.microsoft.GroupNorm.
Status op_contrib_group_norm(OpContext& op) {
  const Shape& shape = op.input(0).shape();
  if (shape.rank() != 4) return wrong_input(op, 0, "have rank 4");
  const std::vector<double> x = PX_TRY(broadcast_input(op, 0, shape));
  return set_group_norm(op, PX_TRY(sums_tensor(shape, x)));
}

// com.microsoft.SkipGroupNorm: GroupNorm of X + skip + bias. A skip of [N, C] or [N, 1, 1, C] is repeated over the
// feature map.
Status op_contrib_skip_group_norm(OpContext& op) {
  const Shape& shape = op.input(0).shape();
  const Shape& skip = op.input(3).shape();
  if (shape.rank() != 4) return wrong_input(op, 0, "have rank 4");
  const bool last = op.int_attribute("channels_last") != 0;
  const auto by_channel = [&](int64_t batch) {
    return last ? Shape{batch, 1, 1, shape[3]} : Shape{batch, shape[1], 1, 1};
  };
  std::vector<double> sums = PX_TRY(broadcast_input(op, 0, shape));
  const auto add = [&](size_t index, const Shape& seen) -> Status {
    if (seen.element_count() != op.input(index).element_count() || !broadcasts_to(seen, shape))
      return wrong_input(op, index, "broadcast to the shape of X, {}", shape.to_string());
    std::vector<double> values(sums.size());
    BroadcastInput(op.input(index).reshaped(seen), shape).read<double>(0, values);
    for (size_t at = 0; at < sums.size(); ++at) sums[at] += values[at];
    return {};
  };
  PX_TRY(add(3, skip.rank() == 2 ? by_channel(skip[0]) : skip));
  if (op.has_input(4)) PX_TRY(add(4, by_channel(1)));
  const Tensor total = PX_TRY(sums_tensor(shape, sums));
  PX_TRY(set_rounded(op, 1, op.input(0).dtype(), total));
  return set_group_norm(op, total);
}

constexpr OpRow kContribNormalizationRows[] = {
    {"EmbedLayerNormalization", kMicrosoft, 1, 1, op_contrib_embed_layer_normalization},
    {"GroupNorm", kMicrosoft, 1, 1, op_contrib_group_norm},
    {"SimplifiedLayerNormalization", kOnnx, 1, 1, op_contrib_simplified_layer_normalization},
    {"SkipGroupNorm", kMicrosoft, 1, 1, op_contrib_skip_group_norm},
    {"SkipLayerNormalization", kMicrosoft, 1, 1, op_contrib_skip_layer_normalization},
    {"SkipSimplifiedLayerNormalization", kMicrosoft, 1, 1, op_contrib_skip_simplified_layer_normalization},
};

}  // namespace

OpRows contrib_normalization_rows() { return kContribNormalizationRows; }

}  // namespace parallax::reference
