// SPDX-License-Identifier: Apache-2.0
// One rule for each operator, or family of operators, whose inputs must fit each other. Numbers alone are compared: a
// named dimension may be anything.
#include "inspector/model/shape_inference/shape_conflicts.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "inspector/base/checked_math.h"
#include "inspector/model/opset/opset_registry.h"

namespace parallax {
namespace {
namespace conflicts {  // the shape functions next to this file have these names, too

using Conflict = std::string;  // empty: none

bool differ(const DimExpression& a, const DimExpression& b) {
  const auto left = a.number(), right = b.number();
  return left && right && *left != *right;
}

std::string text_of(const DimExpressions& dims) {
  std::string text;
  for (const DimExpression& dim : dims) text += (text.empty() ? "" : ",") + (dim.is_known() ? dim.text() : "?");
  return "[" + text + "]";
}

std::string name_of(const NodeContext& context, size_t index) {
  const FormalParameter* parameter = context.node().schema->input(index);
  if (parameter == nullptr || parameter->option == ParameterOption::variadic) return fmt::format("input {}", index + 1);
  return fmt::format("input '{}'", parameter->name);
}

// "input 'A' is [2,3]"
std::string shape_of(const NodeContext& context, size_t index) {
  return fmt::format("{} is {}", name_of(context, index), text_of(*context.shape(index)));
}

// "input 'A', which is [2,3]"
std::string which_is(const NodeContext& context, size_t index) {
  return fmt::format("{}, which is {}", name_of(context, index), text_of(*context.shape(index)));
}

std::string both(const NodeContext& context, size_t a, size_t b) {
  return shape_of(context, a) + " and " + shape_of(context, b);
}

// ---- Broadcasting --------------------------------------------------------------------------------------------------

enum class Broadcast : uint8_t { both_ways, to_first };

// The first dimension, from the back, in which the second shape does not fit the first.
Conflict unfitting(const DimExpressions& a, const DimExpressions& b, Broadcast way) {
  if (way == Broadcast::to_first && b.size() > a.size()) return "the second has more dimensions";
  for (size_t back = 1; back <= std::min(a.size(), b.size()); ++back) {
    const DimExpression &left = a[a.size() - back], &right = b[b.size() - back];
    const bool stretches = right.is_number(1) || (left.is_number(1) && way == Broadcast::both_ways);
    if (differ(left, right) && !stretches)
      return fmt::format("{} and {} do not broadcast", *left.number(), *right.number());
  }
  return {};
}

Conflict unfitting_inputs(const NodeContext& context, size_t a, size_t b, Broadcast way) {
  if (!context.shape(a) || !context.shape(b)) return {};
  const Conflict why = unfitting(*context.shape(a), *context.shape(b), way);
  return why.empty() ? why : both(context, a, b) + ": " + why;
}

// Older versions say by attributes how they broadcast.
Conflict all_broadcast(NodeContext& context) {
  if (context.schema_has_attribute("broadcast")) return {};
  const std::string_view op = context.node().op_type;
  constexpr int64_t kFirstOfVariadic = 8;
  const bool is_variadic = op == "Max" || op == "Min" || op == "Sum" || op == "Mean";
  if (is_variadic && context.since_version() < kFirstOfVariadic) return {};
  // By dimension, from the back: the first input that has a number other than 1 there. All later ones must equal it.
  std::vector<std::optional<size_t>> first_with;
  for (size_t b = 0; b < context.input_count(); ++b) {
    if (!context.shape(b)) continue;
    const DimExpressions& shape = *context.shape(b);
    first_with.resize(std::max(first_with.size(), shape.size()));
    std::optional<size_t> unlike;
    for (size_t back = 1; back <= shape.size(); ++back) {
      const DimExpression& dim = shape[shape.size() - back];
      std::optional<size_t>& first = first_with[back - 1];
      if (!dim.number() || dim.is_number(1)) continue;
      if (!first) first = b;
      const DimExpressions& other = *context.shape(*first);
      if (differ(other[other.size() - back], dim)) unlike = std::min(unlike.value_or(b), *first);
    }
    if (unlike) return unfitting_inputs(context, *unlike, b, Broadcast::both_ways);
  }
  return {};
}

Conflict prelu(NodeContext& context) {
  constexpr int64_t kFirstThatBroadcasts = 7;
  return context.since_version() < kFirstThatBroadcasts ? Conflict{}
                                                        : unfitting_inputs(context, 0, 1, Broadcast::to_first);
}

Conflict expand(NodeContext& context) {
  const auto target = context.contents(1);
  if (!context.shape(0) || !target) return {};
  const Conflict why = unfitting(*context.shape(0), *target, Broadcast::both_ways);
  return why.empty() ? why : fmt::format("{} and is to have {}: {}", shape_of(context, 0), text_of(*target), why);
}

// ---- Products ------------------------------------------------------------------------------------------------------

Conflict product_of(const NodeContext& context, size_t a, size_t b) {
  for (const size_t index : {a, b}) {
    if (context.rank(index) == 0U) return name_of(context, index) + " is a scalar, which has no matrix product";
  }
  if (!context.shape(a) || !context.shape(b)) return {};
  const DimExpressions &left = *context.shape(a), &right = *context.shape(b);
  const DimExpression& rows = right.size() == 1 ? right[0] : right[right.size() - 2];
  if (differ(left.back(), rows)) {
    return fmt::format("{}: {} columns meet {} rows", both(context, a, b), *left.back().number(), *rows.number());
  }
  if (left.size() < 3 || right.size() < 3) return {};
  const Conflict why = unfitting(DimExpressions(left.begin(), left.end() - 2),
                                 DimExpressions(right.begin(), right.end() - 2), Broadcast::both_ways);
  return why.empty() ? why : both(context, a, b) + ": " + why;
}
Conflict matmul(NodeContext& context) { return product_of(context, 0, 1); }
Conflict q_linear_matmul(NodeContext& context) { return product_of(context, 0, 3); }

Conflict gemm(NodeContext& context) {
  for (const size_t index : {size_t{0}, size_t{1}}) {
    if (context.rank(index).value_or(2) != 2) return shape_of(context, index) + ", which is no matrix";
  }
  if (!context.shape(0) || !context.shape(1)) return {};
  const size_t a_rows = context.integer_or("transA", 0) != 0 ? 1 : 0;
  const size_t b_rows = context.integer_or("transB", 0) != 0 ? 1 : 0;
  const DimExpression columns = context.dim(0, 1 - a_rows), rows = context.dim(1, b_rows);
  if (differ(columns, rows)) {
    return fmt::format("{}: {} columns meet {} rows{}", both(context, 0, 1), *columns.number(), *rows.number(),
                       a_rows + b_rows > 0 ? ", as transA and transB have it" : "");
  }
  if (!context.has_input(2) || !context.shape(2) || context.schema_has_attribute("broadcast")) return {};
  const DimExpressions result{context.dim(0, a_rows), context.dim(1, 1 - b_rows)};
  const Conflict why = unfitting(result, *context.shape(2), Broadcast::to_first);
  return why.empty() ? why : fmt::format("the product is {} and {}: {}", text_of(result), shape_of(context, 2), why);
}

// ---- Convolutions --------------------------------------------------------------------------------------------------

Conflict wrong_counts(const NodeContext& context, size_t axes) {
  for (const auto& [name, count] : {std::pair<std::string_view, size_t>{"kernel_shape", axes},
                                    {"strides", axes},
                                    {"dilations", axes},
                                    {"pads", 2 * axes}}) {
    const auto numbers = context.integers(name);
    if (numbers && !numbers->empty() && numbers->size() != count)
      return fmt::format("{} has {} numbers; it must have {}, as there are {} spatial dimensions", name,
                         numbers->size(), count, axes);
  }
  return {};
}

struct Operands {
  size_t weights, bias;
};

Conflict convolution_of(const NodeContext& context, const Operands& at, bool is_transposed) {
  if (!context.shape(0) || !context.shape(at.weights)) return {};
  const DimExpressions &data = *context.shape(0), &weights = *context.shape(at.weights);
  const std::string shapes = both(context, 0, at.weights);
  if (data.size() != weights.size()) return shapes + ": they have not equally many dimensions";
  if (data.size() < 3) return shapes + ": there is no spatial dimension";
  if (Conflict found = wrong_counts(context, data.size() - 2); !found.empty()) return found;
  const int64_t group = context.integer_or("group", 1);
  const DimExpression channels = is_transposed ? weights[0] : weights[1] * group;
  if (differ(data[1], channels)) {
    return fmt::format("{}: {} channels meet weights for {}{}", shapes, *data[1].number(), *channels.number(),
                       group > 1 && !is_transposed ? fmt::format(" in {} groups", group) : "");
  }
  const auto kernel = context.integers("kernel_shape");
  for (size_t axis = 0; kernel && axis < kernel->size(); ++axis) {
    if (differ(weights[axis + 2], (*kernel)[axis]))
      return fmt::format("kernel_shape says {}, against {}", (*kernel)[axis], which_is(context, at.weights));
  }
  const DimExpression outputs = is_transposed ? weights[1] * group : weights[0];
  if (context.has_input(at.bias) && context.rank(at.bias) == 1U && differ(context.dim(at.bias, 0), outputs))
    return fmt::format("{}, but there are {} output channels", shape_of(context, at.bias), *outputs.number());
  return {};
}
Conflict convolution(NodeContext& context) { return convolution_of(context, {1, 2}, false); }
Conflict integer_convolution(NodeContext& context) { return convolution_of(context, {1, kUnlimited}, false); }
Conflict q_linear_convolution(NodeContext& context) { return convolution_of(context, {3, 8}, false); }
Conflict transposed_convolution(NodeContext& context) { return convolution_of(context, {1, 2}, true); }

Conflict pool(NodeContext& context) {
  const auto rank = context.rank(0);
  return rank && *rank >= 3 ? wrong_counts(context, *rank - 2) : Conflict{};
}

// Scale, bias and statistics: one number for each channel.
Conflict channel_normalization(NodeContext& context) {
  for (size_t index = 1; index < context.input_count(); ++index) {
    const bool fits = context.rank(index) != 1U || !differ(context.dim(0, 1), context.dim(index, 0));
    if (!fits) return fmt::format("{}: {} channels", both(context, 0, index), *context.dim(0, 1).number());
  }
  return {};
}

// ---- Axes ----------------------------------------------------------------------------------------------------------

Conflict outside(const NodeContext& context, std::span<const int64_t> axes, size_t rank) {
  for (const int64_t axis : axes) {
    if (!normalized_axis(axis, rank)) return fmt::format("axis {} is outside {}", axis, which_is(context, 0));
  }
  return {};
}

Conflict axis_inside(NodeContext& context) {
  const auto axis = context.integer("axis");
  const auto rank = context.rank(0);
  if (!axis || !rank) return {};
  const std::string_view op = context.node().op_type;
  constexpr int64_t kFirstOfOneAxis = 13;  // before, these made a matrix of their input, and the axis might be its rank
  const bool may_be_rank = (op.ends_with("Softmax") || op == "Hardmax") && context.since_version() < kFirstOfOneAxis;
  if (may_be_rank || *rank == 0) return {};
  return outside(context, std::array{*axis}, *rank);
}

Conflict layer_normalization(NodeContext& context) {
  if (Conflict found = axis_inside(context); !found.empty()) return found;
  const auto rank = context.rank(0);
  const auto axis = rank ? normalized_axis(context.integer_or("axis", -1), *rank) : std::nullopt;
  if (!axis) return {};
  const DimExpressions normalized(context.shape(0)->begin() + static_cast<std::ptrdiff_t>(*axis),
                                  context.shape(0)->end());
  for (size_t index = 1; index < context.input_count(); ++index) {
    if (!context.shape(index)) continue;
    // Leading ones, and a scale of the whole input's rank, are allowed.
    const bool is_whole = context.shape(index)->size() > normalized.size();
    const Conflict why =
        unfitting(is_whole ? *context.shape(0) : normalized, *context.shape(index), Broadcast::to_first);
    if (!why.empty()) return both(context, 0, index) + ": " + why;
  }
  return {};
}

Conflict reduced_axes(NodeContext& context) {
  const auto rank = context.rank(0);
  const auto axes = context.integers_from(1, "axes");
  return rank && axes && *rank > 0 ? outside(context, *axes, *rank) : Conflict{};
}

Conflict concat(NodeContext& context) {
  size_t first = 0;
  while (first < context.input_count() && !context.shape(first)) ++first;
  if (first == context.input_count()) return {};
  const size_t rank = *context.rank(first);
  const int64_t given = context.integer_or("axis", 0);
  const auto axis = normalized_axis(given, rank);
  if (!axis) return fmt::format("axis {} is outside {}", given, which_is(context, first));
  for (size_t index = first + 1; index < context.input_count(); ++index) {
    if (!context.shape(index)) continue;
    if (context.rank(index) != rank) return both(context, first, index) + ": they have not equally many dimensions";
    for (size_t at = 0; at < rank; ++at) {
      if (at != *axis && differ(context.dim(first, at), context.dim(index, at)))
        return fmt::format("{}: they differ in other axes than {}", both(context, first, index), *axis);
    }
  }
  return {};
}

Conflict split(NodeContext& context) {
  if (Conflict found = axis_inside(context); !found.empty()) return found;
  const auto rank = context.rank(0);
  const auto axis = rank ? normalized_axis(context.integer_or("axis", 0), *rank) : std::nullopt;
  const auto lengths = context.integers_from(1, "split");
  const auto whole = axis ? context.dim(0, *axis).number() : std::nullopt;
  if (!whole || !lengths || lengths->empty()) return {};
  std::optional<int64_t> total = 0;
  for (const int64_t length : *lengths) total = total ? checked_add(*total, length) : std::nullopt;
  if (total == *whole) return {};
  return fmt::format("the parts sum to {}, but axis {} has {} elements in {}",
                     total ? std::to_string(*total) : "a number beyond int64", *axis, *whole, which_is(context, 0));
}

Conflict transpose(NodeContext& context) {
  const auto perm = context.integers("perm");
  const auto rank = context.rank(0);
  if (!perm || !rank) return {};
  std::vector<int64_t> axes = *perm;
  std::ranges::sort(axes);
  bool is_permutation = axes.size() == *rank;
  for (size_t index = 0; is_permutation && index < axes.size(); ++index)
    is_permutation = axes[index] == static_cast<int64_t>(index);
  return is_permutation
             ? Conflict{}
             : fmt::format("perm [{}] is no order of the axes of {}", fmt::join(*perm, ","), which_is(context, 0));
}

Conflict squeeze(NodeContext& context) {
  const auto rank = context.rank(0);
  const auto axes = context.integers_from(1, "axes");
  if (!rank || !axes) return {};
  if (Conflict found = outside(context, *axes, *rank); !found.empty()) return found;
  for (const int64_t axis : *axes) {
    const auto dim = context.dim(0, *normalized_axis(axis, *rank)).number();
    if (dim && *dim != 1) return fmt::format("axis {} has {} elements in {}", axis, *dim, which_is(context, 0));
  }
  return {};
}

Conflict unsqueeze(NodeContext& context) {
  const auto rank = context.rank(0);
  const auto axes = context.integers_from(1, "axes");
  if (!rank || !axes) return {};
  for (const int64_t axis : *axes) {
    if (!normalized_axis(axis, *rank + axes->size()))
      return fmt::format("axis {} is outside {} and gets {} more", axis, which_is(context, 0), axes->size());
  }
  return {};
}

Conflict gather_elements(NodeContext& context) {
  if (Conflict found = axis_inside(context); !found.empty()) return found;
  const auto rank = context.rank(0), indices = context.rank(1);
  return rank && indices && *rank != *indices ? both(context, 0, 1) + ": they have not equally many dimensions"
                                              : Conflict{};
}

// ---- Reshape -------------------------------------------------------------------------------------------------------

Conflict reshape(NodeContext& context) {
  const auto target = context.integers_from(1, "shape");
  if (!target || !context.shape(0)) return {};
  const bool copies = context.integer_or("allowzero", 0) == 0;
  DimExpression known(1);
  int unknown = 0;
  for (size_t axis = 0; axis < target->size(); ++axis) {
    const int64_t dim = (*target)[axis];
    if (dim < -1) return fmt::format("the shape [{}] holds {}", fmt::join(*target, ","), dim);
    if (dim == 0 && copies && axis >= context.shape(0)->size())
      return fmt::format("the shape [{}] copies a dimension that is not in {}", fmt::join(*target, ","),
                         which_is(context, 0));
    if (dim == -1) {
      ++unknown;
    } else {
      known = known * (dim == 0 && copies ? context.dim(0, axis) : DimExpression(dim));
    }
  }
  if (unknown > 1) return fmt::format("the shape [{}] leaves {} dimensions open", fmt::join(*target, ","), unknown);
  const auto elements = product(*context.shape(0)).number(), wanted = known.number();
  if (!elements || !wanted) return {};
  const bool fits = unknown == 0 ? *elements == *wanted : *wanted == 0 ? *elements == 0 : *elements % *wanted == 0;
  if (fits) return {};
  return fmt::format("{}, {} elements, which do not make [{}]", shape_of(context, 0), *elements,
                     fmt::join(*target, ","));
}

// ---- The table -----------------------------------------------------------------------------------------------------

struct ConflictRow {
  std::string_view op;
  Conflict (*rule)(NodeContext& context);
};

constexpr ConflictRow kRows[] = {
    {"Add", all_broadcast},
    {"And", all_broadcast},
    {"ArgMax", axis_inside},
    {"ArgMin", axis_inside},
    {"AveragePool", pool},
    {"BatchNormalization", channel_normalization},
    {"BitShift", all_broadcast},
    {"BitwiseAnd", all_broadcast},
    {"BitwiseOr", all_broadcast},
    {"BitwiseXor", all_broadcast},
    {"Concat", concat},
    {"Conv", convolution},
    {"ConvInteger", integer_convolution},
    {"ConvTranspose", transposed_convolution},
    {"Div", all_broadcast},
    {"Equal", all_broadcast},
    {"Expand", expand},
    {"Gather", axis_inside},
    {"GatherElements", gather_elements},
    {"Gemm", gemm},
    {"Greater", all_broadcast},
    {"GreaterOrEqual", all_broadcast},
    {"Hardmax", axis_inside},
    {"InstanceNormalization", channel_normalization},
    {"LayerNormalization", layer_normalization},
    {"Less", all_broadcast},
    {"LessOrEqual", all_broadcast},
    {"LogSoftmax", axis_inside},
    {"LpPool", pool},
    {"MatMul", matmul},
    {"MatMulInteger", matmul},
    {"Max", all_broadcast},
    {"MaxPool", pool},
    {"Mean", all_broadcast},
    {"Min", all_broadcast},
    {"Mod", all_broadcast},
    {"Mul", all_broadcast},
    {"Or", all_broadcast},
    {"PRelu", prelu},
    {"Pow", all_broadcast},
    {"QLinearConv", q_linear_convolution},
    {"QLinearMatMul", q_linear_matmul},
    {"RMSNormalization", layer_normalization},
    {"ReduceL1", reduced_axes},
    {"ReduceL2", reduced_axes},
    {"ReduceLogSum", reduced_axes},
    {"ReduceLogSumExp", reduced_axes},
    {"ReduceMax", reduced_axes},
    {"ReduceMean", reduced_axes},
    {"ReduceMin", reduced_axes},
    {"ReduceProd", reduced_axes},
    {"ReduceSum", reduced_axes},
    {"ReduceSumSquare", reduced_axes},
    {"Reshape", reshape},
    {"ScatterElements", gather_elements},
    {"Softmax", axis_inside},
    {"Split", split},
    {"Squeeze", squeeze},
    {"Sub", all_broadcast},
    {"Sum", all_broadcast},
    {"TopK", axis_inside},
    {"Transpose", transpose},
    {"Unsqueeze", unsqueeze},
    {"Where", all_broadcast},
    {"Xor", all_broadcast},
};
static_assert(std::ranges::is_sorted(kRows, {}, &ConflictRow::op));

}  // namespace conflicts
}  // namespace

std::string shape_conflict(NodeContext& context) {
  const std::string_view op = context.node().op_type;
  if (canonical_domain(context.node().domain) != "ai.onnx") return {};
  const auto* const found = std::ranges::lower_bound(conflicts::kRows, op, {}, &conflicts::ConflictRow::op);
  return found == std::end(conflicts::kRows) || found->op != op ? std::string() : found->rule(context);
}

}  // namespace parallax
