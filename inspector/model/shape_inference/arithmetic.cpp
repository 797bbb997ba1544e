// SPDX-License-Identifier: Apache-2.0
// Shapes of broadcasting operators of two inputs and of Where, and what they make of contents: models compute shapes by
// them.
#include <algorithm>
#include <array>

#include "inspector/model/shape_inference/rows.h"

namespace parallax {
namespace {

using ElementFunction = DimExpression (*)(const DimExpression& a, const DimExpression& b);

const DimExpression& element_of(const DimExpressions& values, size_t index) {
  return values.size() == 1 ? values.front() : values[index];
}

// Element by element, a single element standing for all. Unequal lengths give nothing.
std::optional<DimExpressions> combined(const std::optional<DimExpressions>& a, const std::optional<DimExpressions>& b,
                                       ElementFunction function) {
  if (!a || !b || (a->size() != b->size() && a->size() != 1 && b->size() != 1)) return std::nullopt;
  const size_t count = a->size() == 1 ? b->size() : a->size();
  DimExpressions result;
  for (size_t index = 0; index < count; ++index)
    result.push_back(function(element_of(*a, index), element_of(*b, index)));
  return result;
}

// Before opset 7 the second operand was broadcast to the first on request, along `axis`.
void binary_shape(NodeContext& context) {
  constexpr int64_t kFirstWithNumpyBroadcasting = 7;
  if (context.since_version() < kFirstWithNumpyBroadcasting) {
    context.set_shape(0, context.shape(0));
  } else {
    context.set_shape(0, broadcast(context.shape(0), context.shape(1)));
  }
}

bool has_integers(NodeContext& context) {
  const DType dtype = context.input(0).type.dtype;
  return dtype == DType::int64 || dtype == DType::int32 || dtype == DType::bool_;
}

template <ElementFunction kFunction>
void binary(NodeContext& context) {
  binary_shape(context);
  if (has_integers(context)) context.set_contents(0, combined(context.contents(0), context.contents(1), kFunction));
}

DimExpression sum(const DimExpression& a, const DimExpression& b) { return a + b; }
DimExpression difference(const DimExpression& a, const DimExpression& b) { return a - b; }
DimExpression times(const DimExpression& a, const DimExpression& b) { return a * b; }

// Division of integers truncates; it equals rounding down where nothing is negative.
DimExpression quotient(const DimExpression& a, const DimExpression& b) {
  if (const auto exact = divide_exactly(a, b)) return *exact;
  return a.is_nonnegative() && b.is_nonnegative() ? floor_divide(a, b) : DimExpression{};
}

DimExpression remainder(const DimExpression& a, const DimExpression& b) {
  if (!a.is_nonnegative() || !b.is_nonnegative() || b.is_number(0)) return {};
  return a - b * floor_divide(a, b);
}

DimExpression truth(bool value) { return value ? 1 : 0; }

DimExpression equal(const DimExpression& a, const DimExpression& b) {
  if (same(a, b)) return 1;
  const DimExpression gap = a - b;
  // The two differ by something that is never 0.
  return (gap - 1).is_nonnegative() || (DimExpression(-1) - gap).is_nonnegative() ? truth(false) : DimExpression{};
}

DimExpression greater(const DimExpression& a, const DimExpression& b) {
  if ((a - b - 1).is_nonnegative()) return 1;
  return (b - a).is_nonnegative() ? truth(false) : DimExpression{};
}

DimExpression less(const DimExpression& a, const DimExpression& b) { return greater(b, a); }

DimExpression negated(const DimExpression& truth_value) {
  const auto number = truth_value.number();
  return number ? truth(*number == 0) : DimExpression{};
}

DimExpression greater_or_equal(const DimExpression& a, const DimExpression& b) { return negated(greater(b, a)); }
DimExpression less_or_equal(const DimExpression& a, const DimExpression& b) { return negated(greater(a, b)); }

DimExpression both(const DimExpression& a, const DimExpression& b) {
  if (a.is_number(0) || b.is_number(0)) return 0;
  return a.is_known() && b.is_known() ? truth(true) : DimExpression{};
}

DimExpression either(const DimExpression& a, const DimExpression& b) {
  if (a.is_number(1) || b.is_number(1)) return 1;
  return a.is_known() && b.is_known() ? truth(false) : DimExpression{};
}

DimExpression maximum(const DimExpression& a, const DimExpression& b) {
  if ((a - b).is_nonnegative()) return a;
  return (b - a).is_nonnegative() ? b : DimExpression{};
}

DimExpression minimum(const DimExpression& a, const DimExpression& b) {
  if ((a - b).is_nonnegative()) return b;
  return (b - a).is_nonnegative() ? a : DimExpression{};
}

template <ElementFunction kFunction>
void fold(NodeContext& context) {
  auto shape = context.shape(0);
  auto contents = has_integers(context) ? context.contents(0) : std::nullopt;
  for (size_t index = 1; index < context.input_count(); ++index) {
    shape = broadcast(shape, context.shape(index));
    contents = combined(contents, context.contents(index), kFunction);
  }
  context.set_shape(0, shape);
  context.set_contents(0, contents);
}

void logical_not(NodeContext& context) {
  context.set_shape(0, context.shape(0));
  auto contents = context.contents(0);
  if (!contents) return;
  std::ranges::transform(*contents, contents->begin(), negated);
  context.set_contents(0, contents);
}

void negate(NodeContext& context) {
  context.set_shape(0, context.shape(0));
  const std::optional<DimExpressions> zero = DimExpressions{0};
  if (has_integers(context)) context.set_contents(0, combined(zero, context.contents(0), difference));
}

void where(NodeContext& context) {
  context.set_shape(0, broadcast(broadcast(context.shape(0), context.shape(1)), context.shape(2)));
  const auto condition = context.contents(0), chosen = context.contents(1), other = context.contents(2);
  if (!condition || !chosen || !other) return;
  const size_t count = std::max({condition->size(), chosen->size(), other->size()});
  DimExpressions result;
  for (size_t index = 0; index < count; ++index) {
    for (const auto* values : {&*condition, &*chosen, &*other}) {
      if (values->size() != count && values->size() != 1) return;
    }
    const auto truth_value = element_of(*condition, index).number();
    const DimExpression& yes = element_of(*chosen, index);
    const DimExpression& no = element_of(*other, index);
    result.push_back(truth_value ? (*truth_value != 0 ? yes : no) : same(yes, no) ? yes : DimExpression{});
  }
  context.set_contents(0, result);
}

constexpr std::array kArithmeticRows = {
    ShapeRow{"Add", binary<sum>},
    ShapeRow{"And", binary<both>},
    ShapeRow{"BitShift", binary_shape},
    ShapeRow{"BitwiseAnd", binary_shape},
    ShapeRow{"BitwiseOr", binary_shape},
    ShapeRow{"BitwiseXor", binary_shape},
    ShapeRow{"Div", binary<quotient>},
    ShapeRow{"Equal", binary<equal>},
    ShapeRow{"Greater", binary<greater>},
    ShapeRow{"GreaterOrEqual", binary<greater_or_equal>},
    ShapeRow{"Less", binary<less>},
    ShapeRow{"LessOrEqual", binary<less_or_equal>},
    ShapeRow{"Max", fold<maximum>},
    ShapeRow{"Min", fold<minimum>},
    ShapeRow{"Mod", binary<remainder>},
    ShapeRow{"Mul", binary<times>},
    ShapeRow{"Neg", negate},
    ShapeRow{"Not", logical_not},
    ShapeRow{"Or", binary<either>},
    ShapeRow{"Pow", binary_shape},
    ShapeRow{"Sub", binary<difference>},
    ShapeRow{"Where", where},
    ShapeRow{"Xor", binary_shape},
};

}  // namespace

std::span<const ShapeRow> arithmetic_rows() { return kArithmeticRows; }

}  // namespace parallax
