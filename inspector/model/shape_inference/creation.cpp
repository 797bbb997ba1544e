// SPDX-License-Identifier: Apache-2.0
// Shapes of operators that make tensors from attributes, sizes or limits: Constant, Range, ConstantOfShape, random
// numbers, ...
#include <array>
#include <limits>

#include "inspector/model/shape_inference/rows.h"
#include "inspector/tensor/elements.h"

namespace parallax {
namespace {

constexpr int64_t kMostElements = 64;  // of Range and ConstantOfShape whose elements are followed

std::optional<DimExpressions> sized_by_attribute(NodeContext& context, std::string_view name) {
  const auto dims = context.integers(name);
  return dims ? std::optional(DimExpressions(dims->begin(), dims->end())) : std::nullopt;
}

void constant(NodeContext& context) {
  if (const auto* value = context.attribute<StoredTensor>("value")) {
    if (value->tensor.defined()) context.set_facts(0, facts_of(value->tensor));
    return;
  }
  if (const auto* sparse = context.attribute<SparseTensor>("sparse_value")) {
    context.set_shape(0, DimExpressions(sparse->dims.begin(), sparse->dims.end()));
  } else if (const auto* integer = context.attribute<int64_t>("value_int")) {
    context.set_shape(0, DimExpressions{});
    context.set_contents(0, DimExpressions{*integer});
  } else if (const auto* integers = context.attribute<std::vector<int64_t>>("value_ints")) {
    context.set_shape(0, DimExpressions{static_cast<int64_t>(integers->size())});
    context.set_contents(0, DimExpressions(integers->begin(), integers->end()));
  } else if (const auto* floats = context.attribute<std::vector<float>>("value_floats")) {
    context.set_shape(0, DimExpressions{static_cast<int64_t>(floats->size())});
  } else if (const auto* strings = context.attribute<std::vector<std::string>>("value_strings")) {
    context.set_shape(0, DimExpressions{static_cast<int64_t>(strings->size())});
  } else if (context.attribute<float>("value_float") != nullptr ||
             context.attribute<std::string>("value_string") != nullptr) {
    context.set_shape(0, DimExpressions{});
  }
}

void constant_of_shape(NodeContext& context) {
  auto shape = context.contents(0);
  const auto rank = context.dim(0, 0).number();
  if (!shape && rank && *rank >= 0) shape = unknown_dims(static_cast<size_t>(*rank));
  context.set_shape(0, shape);
  const auto* value = context.attribute<StoredTensor>("value");
  if (!shape || shape->size() > 1 || value == nullptr || !is_integer(value->tensor.dtype())) return;
  const auto count = product(*shape).number();
  if (!count || *count < 0 || *count > kMostElements || value->tensor.element_count() != 1) return;
  context.set_contents(0, DimExpressions(static_cast<size_t>(*count), element_as_int64(value->tensor, 0)));
}

void range(NodeContext& context) {
  context.set_shape(0, unknown_dims(1));
  const auto start = context.scalar(0), limit = context.scalar(1), delta = context.scalar(2);
  const int64_t stride = delta ? delta->number().value_or(0) : 0;
  if (!start || !limit || stride == 0 || stride == std::numeric_limits<int64_t>::min()) return;
  const DimExpression distance = stride > 0 ? *limit - *start : *start - *limit;
  const auto number = distance.number();
  const DimExpression count =
      number && *number <= 0 ? DimExpression(0) : ceil_divide(distance, stride > 0 ? stride : -stride);
  if (!distance.is_nonnegative() && !number) return;
  context.set_shape(0, DimExpressions{count});
  const auto length = count.number();
  if (!length || *length > kMostElements) return;
  DimExpressions elements;
  for (int64_t index = 0; index < *length; ++index) elements.push_back(*start + DimExpression(index) * stride);
  context.set_contents(0, elements);
}

void shape_attribute(NodeContext& context) { context.set_shape(0, sized_by_attribute(context, "shape")); }

void multinomial(NodeContext& context) {
  context.set_shape(0, DimExpressions{context.dim(0, 0), context.integer_or("sample_size", 1)});
}

void window(NodeContext& context) { context.set_shape(0, DimExpressions{context.scalar(0).value_or(DimExpression{})}); }

void mel_weight_matrix(NodeContext& context) {
  const auto bins = context.scalar(0), length = context.scalar(1);
  const DimExpression spectrum = length ? floor_divide(*length, 2) + 1 : DimExpression{};
  context.set_shape(0, DimExpressions{spectrum, bins.value_or(DimExpression{})});
}

// `size` is [N, C, (D,) H, W]; the grid holds a point of 2 or 3 coordinates for each output position.
void affine_grid(NodeContext& context) {
  const auto size = context.contents(1);
  if (!size || size->size() < 4 || size->size() > 5) return;
  DimExpressions result{size->front()};
  result.insert(result.end(), size->begin() + 2, size->end());
  result.emplace_back(static_cast<int64_t>(size->size()) - 2);
  context.set_shape(0, result);
}

void image_decoder(NodeContext& context) {
  const bool gray = context.text("pixel_format") == "Grayscale";
  context.set_shape(0, DimExpressions{DimExpression{}, DimExpression{}, gray ? 1 : 3});
}

constexpr std::array kCreationRows = {
    ShapeRow{"AffineGrid", affine_grid},
    ShapeRow{"BlackmanWindow", window},
    ShapeRow{"Constant", constant},
    ShapeRow{"ConstantOfShape", constant_of_shape},
    ShapeRow{"HammingWindow", window},
    ShapeRow{"HannWindow", window},
    ShapeRow{"ImageDecoder", image_decoder},
    ShapeRow{"MelWeightMatrix", mel_weight_matrix},
    ShapeRow{"Multinomial", multinomial},
    ShapeRow{"RandomNormal", shape_attribute},
    ShapeRow{"RandomUniform", shape_attribute},
    ShapeRow{"Range", range},
};

}  // namespace

std::span<const ShapeRow> creation_rows() { return kCreationRows; }

}  // namespace parallax
