// SPDX-License-Identifier: Apache-2.0
// Shapes of operators that pick elements by index, count, order or condition.
#include <algorithm>
#include <array>

#include "inspector/model/shape_inference/rows.h"

namespace parallax {
namespace {

// Shape arithmetic picks single dimensions out of the output of Shape.
void gather_contents(NodeContext& context) {
  const auto data = context.contents(0);
  const auto indices = context.numbers(1);
  if (!data || !indices || context.rank(0) != 1 || context.rank(1).value_or(2) > 1) return;
  DimExpressions result;
  for (const int64_t index : *indices) {
    const auto position = normalized_axis(index, data->size());
    if (!position) return;
    result.push_back((*data)[*position]);
  }
  context.set_contents(0, result);
}

void gather(NodeContext& context) {
  const auto& data = context.shape(0);
  const auto& indices = context.shape(1);
  if (!data || !indices) return;
  const auto axis = normalized_axis(context.integer_or("axis", 0), data->size());
  if (!axis) return;
  const auto position = static_cast<std::ptrdiff_t>(*axis);
  DimExpressions result(data->begin(), data->begin() + position);
  result.insert(result.end(), indices->begin(), indices->end());
  result.insert(result.end(), data->begin() + position + 1, data->end());
  context.set_shape(0, result);
  if (*axis == 0) gather_contents(context);
}

void gather_nd(NodeContext& context) {
  const auto& data = context.shape(0);
  const auto& indices = context.shape(1);
  const int64_t batch = context.integer_or("batch_dims", 0);
  if (!data || !indices || indices->empty() || batch < 0) return;
  const auto depth = indices->back().number();
  const auto data_rank = static_cast<int64_t>(data->size());
  if (!depth || *depth < 0 || batch > data_rank || *depth > data_rank - batch) return;
  DimExpressions result(indices->begin(), indices->end() - 1);
  result.insert(result.end(), data->begin() + batch + *depth, data->end());
  context.set_shape(0, result);
}

void one_hot(NodeContext& context) {
  const auto& indices = context.shape(0);
  if (!indices) return;
  const auto axis = normalized_axis(context.integer_or("axis", -1), indices->size() + 1);
  if (!axis) return;
  DimExpressions result = *indices;
  result.insert(result.begin() + static_cast<std::ptrdiff_t>(*axis), context.scalar(1).value_or(DimExpression{}));
  context.set_shape(0, result);
}

void top_k(NodeContext& context) {
  const auto& shape = context.shape(0);
  const auto axis = shape ? normalized_axis(context.integer_or("axis", -1), shape->size()) : std::nullopt;
  if (!axis) return;
  DimExpressions result = *shape;
  if (context.schema_has_attribute("k")) {
    const auto count = context.integer("k");
    result[*axis] = count ? DimExpression(*count) : DimExpression{};
  } else {
    result[*axis] = context.scalar(1).value_or(DimExpression{});
  }
  context.set_shape(0, result);
  context.set_shape(1, result);
}

void non_zero(NodeContext& context) {
  const auto rank = context.rank(0);
  const DimExpression rows = rank ? DimExpression(static_cast<int64_t>(*rank)) : DimExpression{};
  context.set_shape(0, DimExpressions{rows, DimExpression{}});
}

void compress(NodeContext& context) {
  const auto given = context.integer("axis");
  if (!given) return context.set_shape(0, unknown_dims(1));
  const auto& shape = context.shape(0);
  const auto axis = shape ? normalized_axis(*given, shape->size()) : std::nullopt;
  if (!axis) return;
  DimExpressions result = *shape;
  result[*axis] = {};
  context.set_shape(0, result);
}

void unique(NodeContext& context) {
  for (size_t index = 1; index < context.output_count(); ++index) context.set_shape(index, unknown_dims(1));
  compress(context);
}

void non_max_suppression(NodeContext& context) { context.set_shape(0, DimExpressions{DimExpression{}, 3}); }

void shape_of(NodeContext& context) {
  const auto& shape = context.shape(0);
  if (!shape) return context.set_shape(0, unknown_dims(1));
  const auto rank = static_cast<int64_t>(shape->size());
  const auto clamped = [rank](int64_t position) {
    return std::clamp<int64_t>(position < 0 ? position + rank : position, 0, rank);
  };
  const int64_t start = clamped(context.integer_or("start", 0));
  const int64_t end = std::max(start, clamped(context.integer_or("end", rank)));
  context.set_shape(0, DimExpressions{end - start});
  context.set_contents(0, DimExpressions(shape->begin() + start, shape->begin() + end));
}

void size_of(NodeContext& context) {
  context.set_shape(0, DimExpressions{});
  if (context.shape(0)) context.set_contents(0, DimExpressions{product(*context.shape(0))});
}

void col2im(NodeContext& context) {
  const auto image = context.contents(1), block = context.contents(2);
  if (!image || !block) return;
  const auto channels = divide_exactly(context.dim(0, 1), product(*block));
  DimExpressions result{context.dim(0, 0), channels.value_or(DimExpression{})};
  result.insert(result.end(), image->begin(), image->end());
  context.set_shape(0, result);
}

constexpr std::array kIndexRows = {
    ShapeRow{"Col2Im", col2im},
    ShapeRow{"Compress", compress},
    ShapeRow{"Gather", gather},
    ShapeRow{"GatherND", gather_nd},
    ShapeRow{"NonMaxSuppression", non_max_suppression},
    ShapeRow{"NonZero", non_zero},
    ShapeRow{"OneHot", one_hot},
    ShapeRow{"Shape", shape_of},
    ShapeRow{"Size", size_of},
    ShapeRow{"TopK", top_k},
    ShapeRow{"Unique", unique},
};

}  // namespace

std::span<const ShapeRow> index_rows() { return kIndexRows; }

}  // namespace parallax
