// SPDX-License-Identifier: Apache-2.0
// Axes, strides and broadcasting.
#include "reference/ops/indexing.h"

#include <algorithm>

#include <fmt/format.h>

#include "inspector/base/check.h"
#include "inspector/base/checked_math.h"
#include "inspector/model/rule_errors.h"

namespace parallax::reference {

Result<size_t> normalize_axis(int64_t axis, size_t rank) {
  const auto signed_rank = static_cast<int64_t>(rank);
  if (axis < -signed_rank || axis >= signed_rank)
    return wrong_value("the axis", axis, "be in [{}, {}), the tensor has rank {}", -signed_rank, signed_rank, rank);
  return static_cast<size_t>(axis < 0 ? axis + signed_rank : axis);
}

Result<std::vector<size_t>> normalize_axes(std::span<const int64_t> axes, size_t rank) {
  std::vector<size_t> result;
  for (int64_t axis : axes) {
    const size_t normal = PX_TRY(normalize_axis(axis, rank));
    if (std::find(result.begin(), result.end(), normal) != result.end())
      return broken_rule(fmt::format("axis {} is given twice in {}", axis, dims_text(axes)), "be given once");
    result.push_back(normal);
  }
  return result;
}

std::vector<int64_t> strides_of(const Shape& shape) {
  std::vector<int64_t> strides(shape.rank());
  for (size_t axis = shape.rank(); axis-- > 0;) strides[axis] = count_of(shape, axis + 1, shape.rank());
  return strides;
}

bool has_dims(const Shape& shape, std::initializer_list<int64_t> dims) {
  return std::equal(shape.begin(), shape.end(), dims.begin(), dims.end());
}

int64_t count_of(const Shape& shape, size_t first, size_t last) {
  // A part of the dimensions overflows only where another dimension is 0: then there are no elements to count.
  return checked_product(shape.dims().subspan(first, last - first)).value_or(0);
}

Result<Shape> with_dim(const Shape& shape, size_t axis, int64_t dim) {
  std::vector<int64_t> dims(shape.begin(), shape.end());
  dims[axis] = dim;
  return Shape::create(dims);
}

Result<Shape> broadcast_shapes(const Shape& a, const Shape& b) {
  std::vector<int64_t> dims(std::max(a.rank(), b.rank()));
  for (size_t back = 1; back <= dims.size(); ++back) {
    const int64_t dim_a = back <= a.rank() ? a[a.rank() - back] : 1;
    const int64_t dim_b = back <= b.rank() ? b[b.rank() - back] : 1;
    if (dim_a != dim_b && dim_a != 1 && dim_b != 1)
      return execution_error(
          fmt::format("shapes {} and {} do not broadcast together; their dimensions must be equal, or one of them 1",
                      a.to_string(), b.to_string()));
    dims[dims.size() - back] = dim_a == 1 ? dim_b : dim_a;
  }
  return Shape::create(dims);
}

bool broadcasts_to(const Shape& from, const Shape& to) {
  if (from.rank() > to.rank()) return false;
  const size_t lead = to.rank() - from.rank();
  for (size_t axis = 0; axis < from.rank(); ++axis) {
    if (from[axis] != 1 && from[axis] != to[axis + lead]) return false;
  }
  return true;
}

std::vector<int64_t> broadcast_strides(const Shape& from, const Shape& to) {
  PX_CHECK(broadcasts_to(from, to));
  const std::vector<int64_t> own = strides_of(from);
  const size_t lead = to.rank() - from.rank();
  std::vector<int64_t> strides(to.rank(), 0);
  for (size_t axis = 0; axis < from.rank(); ++axis) {
    if (from[axis] != 1) strides[axis + lead] = own[axis];
  }
  return strides;
}

}  // namespace parallax::reference
