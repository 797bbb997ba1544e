// SPDX-License-Identifier: Apache-2.0
// Operators that give a payload another shape: no element moves.
#include <fmt/format.h>

#include "inspector/model/rule_errors.h"
#include "runtime/ops/families.h"

namespace parallax::runtime {
namespace {

// The dims that `shape` asks for: 0 copies the input's unless allowzero, one -1 takes the rest.
Result<Shape> requested_shape(const Shape& from, Ints dims, bool allow_zero) {
  int64_t unknown = -1;
  for (int64_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] == 0 && !allow_zero) {
      if (axis >= rank_of(from))
        return wrong_value(fmt::format("dimension {} of the shape", axis), 0,
                           "not copy a dimension that the input, {}, lacks", from.to_string());
      dims[axis] = dim_of(from, axis);
    } else if (dims[axis] == -1) {
      if (unknown >= 0)
        return execution_error(
            fmt::format("dimensions {} and {} of the shape are -1; at most one must be", unknown, axis));
      unknown = axis;
      dims[axis] = 1;
    }
  }
  const Shape known = PX_TRY(shape_of(dims));
  if (unknown >= 0) {
    if (known.element_count() == 0 || from.element_count() % known.element_count() != 0)
      return wrong_shape("the input", from, "have a multiple of the {} elements that the known dimensions have",
                         known.element_count());
    dims[unknown] = from.element_count() / known.element_count();
  }
  const Shape shape = PX_TRY(shape_of(dims));
  if (shape.element_count() != from.element_count())
    return wrong_shape("the input", from, "have {} elements to be seen as {}", shape.element_count(),
                       shape.to_string());
  return shape_of(dims);  // nvcc 13 does not get from a Shape to its Result here
}

template <class Device>
Status reshape(OpContext<Device>& op) {
  Ints dims = op.find_integers("shape").value_or(Ints{});
  if (op.since_version() >= 5) dims = PX_TRY(op.integers_of_input(1));
  const bool allow_zero = op.find_integer("allowzero").value_or(0) != 0;
  const Shape shape = PX_TRY(requested_shape(op.input(0).shape(), dims, allow_zero));
  return op.alias_output(0, 0, shape), Status{};
}

// Axes are an attribute before version 13, an input since.
bool has_axes(const OpCall& op) { return op.has_input(1) || op.find_integers("axes").has_value(); }

Result<Ints> axes_of(const OpCall& op) {
  if (op.has_input(1)) return op.integers_of_input(1);
  return op.find_integers("axes").value_or(Ints{});
}

template <class Device>
Status squeeze(OpContext<Device>& op) {
  const Shape& from = op.input(0).shape();
  const bool given = has_axes(op);
  const Ints listed = PX_TRY(axes_of(op));
  const Ints axes = PX_TRY(OpCall::resolve_axes(listed, rank_of(from)));
  Ints dims;
  for (int64_t axis = 0; axis < rank_of(from); ++axis) {
    const int64_t dim = dim_of(from, axis);
    const bool drop = given ? axes.contains(axis) : dim == 1;
    if (drop && dim != 1) return wrong_shape("the input", from, "have size 1 along axis {} to lose it", axis);
    if (!drop) dims.push_back(dim);
  }
  const Shape shape = PX_TRY(shape_of(dims));
  return op.alias_output(0, 0, shape), Status{};
}

template <class Device>
Status unsqueeze(OpContext<Device>& op) {
  const Shape& from = op.input(0).shape();
  if (!has_axes(op)) return execution_error("axes are missing; they must be given by attribute or input 'axes'");
  const Ints given = PX_TRY(axes_of(op));
  const Ints axes = PX_TRY(OpCall::resolve_axes(given, rank_of(from) + given.size()));
  Ints dims(from);
  for (int64_t axis : axes) dims.insert(axis, 1);
  const Shape shape = PX_TRY(shape_of(dims));
  return op.alias_output(0, 0, shape), Status{};
}

template <class Device>
Status flatten(OpContext<Device>& op) {
  const Ints dims(op.input(0).shape());
  int64_t axis = op.integer("axis");
  if (axis < -dims.size() || axis > dims.size())
    return wrong_value("attribute 'axis'", axis, "be in [{}, {}], the input has rank {}", -dims.size(), dims.size(),
                       dims.size());
  if (axis < 0) axis += dims.size();
  op.alias_output(0, 0, Shape{product(dims, 0, axis), product(dims, axis, dims.size())});
  return {};
}

template <class Device>
Status identity(OpContext<Device>& op) {
  if (op.value(0).is_tensor()) {
    op.alias_output(0, 0, op.input(0).shape());
  } else {
    op.set_output(0, op.value(0));
  }
  return {};
}

template <class Device>
constexpr KernelRow<Device> kViewRows[] = {
    {"Flatten", kAnyTensor, flatten<Device>},
    {"Identity", kAnything, identity<Device>, 1, INT64_MAX, 0, Arguments::values},
    reads_on_host<Device>({1}, {"Reshape", kAnyTensor, reshape<Device>}),
    reads_on_host<Device>({1}, {"Squeeze", kAnyTensor, squeeze<Device>}),
    reads_on_host<Device>({1}, {"Unsqueeze", kAnyTensor, unsqueeze<Device>}),
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> view_rows() {
  return kViewRows<CompiledDevice>;
}

}  // namespace parallax::runtime
