// SPDX-License-Identifier: Apache-2.0
// Shapes of operators that rearrange elements: Reshape, Transpose, Concat, Split, Slice, Pad, ... and the contents they
// pass on.
#include <algorithm>
#include <array>
#include <limits>

#include "inspector/model/shape_inference/rows.h"

namespace parallax {
namespace {

// The one dimension given as -1, from what is left of the elements; `kept` marks dimensions that a 0 copied from the
// input.
DimExpression remaining_dim(const DimExpressions& input, const DimExpressions& output, size_t hole,
                            const std::vector<bool>& kept) {
  DimExpression elements = 1, others = 1;
  for (size_t axis = 0; axis < input.size(); ++axis) {
    if (axis >= kept.size() || !kept[axis]) elements = elements * input[axis];
  }
  for (size_t axis = 0; axis < output.size(); ++axis) {
    if (axis != hole && !kept[axis]) others = others * output[axis];
  }
  return divide_exactly(elements, others).value_or(DimExpression{});
}

void reshape(NodeContext& context) {
  std::optional<DimExpressions> target;
  if (context.schema_has_attribute("shape")) {
    if (const auto shape = context.integers("shape")) target.emplace(shape->begin(), shape->end());
  } else {
    target = context.contents(1);
    const auto length = context.dim(1, 0).number();
    if (!target && length && *length >= 0) target = unknown_dims(static_cast<size_t>(*length));
  }
  if (!target) return;
  const bool zero_copies = context.integer_or("allowzero", 0) == 0;
  std::vector<bool> kept(target->size());
  std::optional<size_t> hole;
  for (size_t axis = 0; axis < target->size(); ++axis) {
    DimExpression& dim = (*target)[axis];
    if (dim.is_number(-1)) {
      if (hole) return;
      hole = axis;
    } else if (dim.is_number(0) && zero_copies) {
      dim = context.dim(0, axis);
      kept[axis] = true;
    }
  }
  if (hole) {
    (*target)[*hole] = {};
    if (context.shape(0)) (*target)[*hole] = remaining_dim(*context.shape(0), *target, *hole, kept);
  }
  context.set_shape(0, target);
  if (target->size() <= 1) context.set_contents(0, context.contents(0));
}

void flatten(NodeContext& context) {
  const auto& shape = context.shape(0);
  if (!shape) return context.set_shape(0, unknown_dims(2));
  const int64_t rank = static_cast<int64_t>(shape->size());
  const int64_t given = context.integer_or("axis", 1);
  const int64_t axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis > rank) return;
  const auto middle = shape->begin() + axis;
  context.set_shape(0, DimExpressions{product({shape->begin(), middle}), product({middle, shape->end()})});
}

void transpose(NodeContext& context) {
  const auto& shape = context.shape(0);
  if (!shape) return;
  DimExpressions result(shape->rbegin(), shape->rend());
  if (const auto order = context.integers("perm")) {
    const auto axes = normalized_axes(*order, shape->size());
    if (!axes || axes->size() != shape->size()) return;
    for (size_t axis = 0; axis < axes->size(); ++axis) result[axis] = (*shape)[(*axes)[axis]];
  }
  context.set_shape(0, result);
}

void squeeze(NodeContext& context) {
  context.set_contents(0, context.contents(0));
  const auto& shape = context.shape(0);
  if (!shape) return;
  const bool has_axes =
      context.schema_has_attribute("axes") ? context.integers("axes").has_value() : context.has_input(1);
  std::vector<bool> dropped(shape->size());
  if (has_axes) {
    const auto given = context.integers_from(1, "axes");
    const auto axes = given ? normalized_axes(*given, shape->size()) : std::nullopt;
    if (!axes) return;
    for (const size_t axis : *axes) dropped[axis] = true;
  } else {
    for (size_t axis = 0; axis < shape->size(); ++axis) {
      const auto number = (*shape)[axis].number();
      if (!number) return;  // it may turn out to be 1
      dropped[axis] = *number == 1;
    }
  }
  DimExpressions result;
  for (size_t axis = 0; axis < shape->size(); ++axis) {
    if (!dropped[axis]) result.push_back((*shape)[axis]);
  }
  context.set_shape(0, result);
}

void unsqueeze(NodeContext& context) {
  const auto& shape = context.shape(0);
  const auto given = context.integers_from(1, "axes");
  if (!shape || !given) return;
  const size_t rank = shape->size() + given->size();
  const auto axes = normalized_axes(*given, rank);
  if (!axes) return;
  DimExpressions result = unknown_dims(rank);
  std::vector<bool> inserted(rank);
  for (const size_t axis : *axes) {
    inserted[axis] = true;
    result[axis] = 1;
  }
  if (std::ranges::count(inserted, true) != static_cast<int64_t>(axes->size())) return;
  for (size_t axis = 0, next = 0; axis < rank; ++axis) {
    if (!inserted[axis]) result[axis] = (*shape)[next++];
  }
  context.set_shape(0, result);
  if (rank <= 1) context.set_contents(0, context.contents(0));
}

void concat(NodeContext& context) {
  std::optional<DimExpressions> result = context.shape(0);
  auto contents = context.contents(0);
  if (!result) return;
  const auto axis = normalized_axis(context.integer_or("axis", 1), result->size());
  if (!axis) return;
  for (size_t index = 1; index < context.input_count(); ++index) {
    const auto& shape = context.shape(index);
    if (!shape || shape->size() != result->size()) return;
    for (size_t other = 0; other < shape->size(); ++other) {
      DimExpression& dim = (*result)[other];
      if (other == *axis) {
        dim = dim + (*shape)[other];
      } else if (!dim.number() && (!dim.is_known() || (*shape)[other].number())) {
        dim = (*shape)[other];  // equal at run time, so the better known one speaks for both
      }
    }
    const auto more = context.contents(index);
    if (contents && more) {
      contents->insert(contents->end(), more->begin(), more->end());
    } else {
      contents.reset();
    }
  }
  context.set_shape(0, result);
  context.set_contents(0, contents);
}

// The lengths of the parts along `axis`, from the sizes given or in equal shares.
DimExpressions split_lengths(NodeContext& context, const DimExpression& whole) {
  const size_t parts = context.output_count();
  const bool has_sizes =
      context.schema_has_attribute("split") ? context.integers("split").has_value() : context.has_input(1);
  if (has_sizes) {
    std::optional<DimExpressions> sizes;
    if (!context.schema_has_attribute("split")) {
      sizes = context.contents(1);
    } else if (const auto numbers = context.integers("split")) {
      sizes.emplace(numbers->begin(), numbers->end());
    }
    return sizes && sizes->size() == parts ? *sizes : unknown_dims(parts);
  }
  const auto count = static_cast<int64_t>(parts);
  const auto total = whole.number();
  // From version 18 on the last part may be shorter.
  const DimExpression share =
      total ? ceil_divide(whole, count) : divide_exactly(whole, count).value_or(DimExpression{});
  DimExpressions lengths(parts, share);
  if (total && share.number()) lengths.back() = std::max<int64_t>(0, *total - *share.number() * (count - 1));
  return lengths;
}

void split(NodeContext& context) {
  const auto& shape = context.shape(0);
  const auto axis = shape ? normalized_axis(context.integer_or("axis", 0), shape->size()) : std::nullopt;
  if (!axis || context.output_count() == 0) return;
  const DimExpressions lengths = split_lengths(context, (*shape)[*axis]);
  const auto contents = context.contents(0);
  int64_t begin = 0;
  for (size_t index = 0; index < lengths.size(); ++index) {
    DimExpressions part = *shape;
    part[*axis] = lengths[index];
    context.set_shape(index, part);
    const auto length = lengths[index].number();
    if (!contents || !length || *length < 0 || begin < 0 || *length > static_cast<int64_t>(contents->size()) - begin) {
      begin = -1;
      continue;
    }
    context.set_contents(index, DimExpressions(contents->begin() + begin, contents->begin() + begin + *length));
    begin += *length;
  }
}

// A start or end of Slice within [0, dim]; unknown where the order of the two is not certain.
DimExpression clamped(const DimExpression& position, const DimExpression& dim) {
  const auto number = position.number();
  const DimExpression from_front = number && *number < 0 ? dim + position : position;
  if (number && *number < 0 && !from_front.is_nonnegative()) {
    const auto resolved = from_front.number();
    return resolved ? DimExpression(std::max<int64_t>(0, *resolved)) : DimExpression{};
  }
  // A name may stand for a negative number, which would count from the back.
  if (!from_front.is_nonnegative()) return {};
  if ((from_front - dim).is_nonnegative()) return dim;
  // Everything from INT32_MAX on is how exporters write "to the end".
  if (number && *number >= std::numeric_limits<int32_t>::max()) return dim;
  return (dim - from_front).is_nonnegative() ? from_front : DimExpression{};
}

DimExpression sliced_dim(const DimExpression& dim, const DimExpression& start, const DimExpression& end, int64_t step) {
  if (step > 0) {
    const DimExpression length = clamped(end, dim) - clamped(start, dim);
    if (const auto number = length.number(); number && *number < 0) return 0;
    return length.is_nonnegative() ? ceil_divide(length, step) : DimExpression{};
  }
  // Backwards: only numbers, start within [0, dim-1] and end within [-1, dim-1].
  const auto size = dim.number(), first = start.number(), last = end.number();
  if (!size || !first || !last || *size == 0 || step == std::numeric_limits<int64_t>::min()) {
    const bool whole = first && last && (*first == -1 || *first >= std::numeric_limits<int32_t>::max()) &&
                       *last <= std::numeric_limits<int32_t>::min() && step == -1;
    return whole || dim.is_number(0) ? dim : DimExpression{};
  }
  const int64_t from = std::clamp<int64_t>(*first < 0 ? *first + *size : *first, -1, *size - 1);
  const int64_t to = std::clamp<int64_t>(*last < 0 ? *last + *size : *last, -1, *size - 1);
  return from > to ? (from - to - 1) / -step + 1 : 0;
}

struct SliceArguments {
  DimExpressions starts, ends;
  std::vector<size_t> axes;
  std::vector<int64_t> steps;
};

std::optional<DimExpressions> slice_bounds(NodeContext& context, size_t index, std::string_view attribute) {
  if (!context.schema_has_attribute(attribute)) return context.contents(index);
  const auto numbers = context.integers(attribute);
  return numbers ? std::optional(DimExpressions(numbers->begin(), numbers->end())) : std::nullopt;
}

// Which axes and steps, where known; bounds that are not known become unknown.
std::optional<SliceArguments> slice_arguments(NodeContext& context, size_t rank) {
  const auto starts = slice_bounds(context, 1, "starts");
  const auto ends = slice_bounds(context, 2, "ends");
  const bool by_attribute = context.schema_has_attribute("axes");
  const bool has_axes = by_attribute ? context.integers("axes").has_value() : context.has_input(3);
  const auto axes = context.integers_from(3, "axes");
  size_t count = starts ? starts->size() : ends ? ends->size() : axes ? axes->size() : rank + 1;
  if (!starts && !ends && !axes) {
    const auto length = context.dim(1, 0).number();
    if (length && *length >= 0) count = static_cast<size_t>(*length);
  }
  SliceArguments result;
  if (count > rank || (has_axes && !axes)) return std::nullopt;
  for (size_t index = 0; index < count && !has_axes; ++index) result.axes.push_back(index);
  if (has_axes) {
    const auto normalized = normalized_axes(*axes, rank);
    if (!normalized || normalized->size() != count) return std::nullopt;
    result.axes = *normalized;
  }
  result.starts = starts.value_or(unknown_dims(count));
  result.ends = ends.value_or(unknown_dims(count));
  const auto steps = context.numbers(4);
  result.steps.assign(count, context.has_input(4) ? 0 : 1);
  if (steps && steps->size() == count) result.steps = *steps;
  return result.starts.size() == count && result.ends.size() == count ? std::optional(result) : std::nullopt;
}

void slice_contents(NodeContext& context, const SliceArguments& arguments) {
  const auto contents = context.contents(0);
  if (!contents || arguments.axes.size() != 1) return;
  const auto length =
      sliced_dim(static_cast<int64_t>(contents->size()), arguments.starts[0], arguments.ends[0], arguments.steps[0]);
  const auto start = arguments.starts[0].number(), count = length.number();
  if (!start || !count || arguments.steps[0] == 0) return;
  const auto size = static_cast<int64_t>(contents->size());
  const int64_t first = *start < 0 ? *start + size : *start;
  const int64_t begin = std::clamp<int64_t>(first, 0, arguments.steps[0] > 0 ? size : size - 1);
  DimExpressions result;
  for (int64_t taken = 0; taken < *count; ++taken) {
    const int64_t position = begin + taken * arguments.steps[0];
    if (position < 0 || position >= size) return;
    result.push_back((*contents)[static_cast<size_t>(position)]);
  }
  context.set_contents(0, result);
}

void slice(NodeContext& context) {
  const auto& shape = context.shape(0);
  if (!shape) return;
  const auto arguments = slice_arguments(context, shape->size());
  if (!arguments) return context.set_shape(0, unknown_dims(shape->size()));
  DimExpressions result = *shape;
  for (size_t index = 0; index < arguments->axes.size(); ++index) {
    DimExpression& dim = result[arguments->axes[index]];
    const int64_t step = arguments->steps[index];
    dim = step == 0 ? DimExpression{} : sliced_dim(dim, arguments->starts[index], arguments->ends[index], step);
  }
  context.set_shape(0, result);
  slice_contents(context, *arguments);
}

// The amounts before and after each axis, in one list: an attribute (named otherwise in version 1) or an input.
std::optional<DimExpressions> pad_amounts(NodeContext& context) {
  for (const std::string_view name : {"pads", "paddings"}) {
    if (!context.schema_has_attribute(name)) continue;
    const auto numbers = context.integers(name);
    return numbers ? std::optional(DimExpressions(numbers->begin(), numbers->end())) : std::nullopt;
  }
  return context.contents(1);
}

void pad(NodeContext& context) {
  const auto& shape = context.shape(0);
  if (!shape) return;
  const size_t rank = shape->size();
  std::vector<size_t> axes(rank);
  for (size_t axis = 0; axis < rank; ++axis) axes[axis] = axis;
  const auto amounts = pad_amounts(context);
  if (context.has_input(3)) {
    const auto given = context.numbers(3);
    const auto normalized = given ? normalized_axes(*given, rank) : std::nullopt;
    if (!normalized) return context.set_shape(0, unknown_dims(rank));
    axes = *normalized;
  }
  if (!amounts || amounts->size() != 2 * axes.size()) return context.set_shape(0, unknown_dims(rank));
  DimExpressions result = *shape;
  for (size_t index = 0; index < axes.size(); ++index) {
    result[axes[index]] = result[axes[index]] + (*amounts)[index] + (*amounts)[axes.size() + index];
  }
  context.set_shape(0, result);
}

void expand(NodeContext& context) {
  auto target = context.contents(1);
  const auto length = context.dim(1, 0).number();
  if (!target && length && *length >= 0) target = unknown_dims(static_cast<size_t>(*length));
  context.set_shape(0, broadcast(context.shape(0), target));
}

void tile(NodeContext& context) {
  const auto& shape = context.shape(0);
  if (!shape) return;
  constexpr int64_t kFirstWithRepeats = 6;
  const auto repeats = context.since_version() < kFirstWithRepeats ? std::nullopt : context.contents(1);
  DimExpressions result = unknown_dims(shape->size());
  if (repeats && repeats->size() == shape->size()) {
    for (size_t axis = 0; axis < shape->size(); ++axis) result[axis] = (*shape)[axis] * (*repeats)[axis];
  }
  context.set_shape(0, result);
}

void blocks(NodeContext& context, bool to_space) {
  const int64_t block = context.integer_or("blocksize", 0);
  if (context.rank(0) != 4 || block <= 0 || block > std::numeric_limits<int32_t>::max()) return;
  DimExpressions result = *context.shape(0);
  const auto shrunk = [](const DimExpression& dim, int64_t by) {
    return divide_exactly(dim, by).value_or(DimExpression{});
  };
  result[1] = to_space ? shrunk(result[1], block * block) : result[1] * block * block;
  for (const size_t axis : {size_t{2}, size_t{3}})
    result[axis] = to_space ? result[axis] * block : shrunk(result[axis], block);
  context.set_shape(0, result);
}

void depth_to_space(NodeContext& context) { blocks(context, true); }
void space_to_depth(NodeContext& context) { blocks(context, false); }

void center_crop_pad(NodeContext& context) {
  const auto& shape = context.shape(0);
  if (!shape) return;
  DimExpressions result = *shape;
  std::vector<int64_t> all(shape->size());
  for (size_t axis = 0; axis < all.size(); ++axis) all[axis] = static_cast<int64_t>(axis);
  const auto axes = normalized_axes(context.integers("axes").value_or(all), shape->size());
  if (!axes) return;
  const auto target = context.contents(1);
  const bool fits = target && target->size() == axes->size();
  for (size_t index = 0; index < axes->size(); ++index) {
    result[(*axes)[index]] = fits ? (*target)[index] : DimExpression{};
  }
  context.set_shape(0, result);
}

constexpr std::array kLayoutRows = {
    ShapeRow{"CenterCropPad", center_crop_pad},
    ShapeRow{"Concat", concat},
    ShapeRow{"DepthToSpace", depth_to_space},
    ShapeRow{"Expand", expand},
    ShapeRow{"Flatten", flatten},
    ShapeRow{"Pad", pad},
    ShapeRow{"Reshape", reshape},
    ShapeRow{"Slice", slice},
    ShapeRow{"SpaceToDepth", space_to_depth},
    ShapeRow{"Split", split},
    ShapeRow{"Squeeze", squeeze},
    ShapeRow{"Tile", tile},
    ShapeRow{"Transpose", transpose},
    ShapeRow{"Unsqueeze", unsqueeze},
};

}  // namespace

std::span<const ShapeRow> layout_rows() { return kLayoutRows; }

}  // namespace parallax
