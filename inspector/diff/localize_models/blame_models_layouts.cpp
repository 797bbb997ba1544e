// SPDX-License-Identifier: Apache-2.0
// Tries the permutations of axes that lead from one shape to the other.
#include "inspector/diff/localize_models/blame_models_layouts.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "inspector/diff/localize_models/blame_models_regions.h"
#include "inspector/diff/tolerance/thresholds.h"

namespace parallax::diff {
namespace {

bool holds_floats(const Value& value) { return value.is_tensor() && is_floating(value.tensor().dtype()); }

std::vector<size_t> inverse(const std::vector<size_t>& permutation) {
  std::vector<size_t> result(permutation.size());
  for (size_t axis = 0; axis < permutation.size(); ++axis) result[permutation[axis]] = axis;
  return result;
}

double squared_distance(const Tensor& a, const Tensor& b) {
  const std::span<const double> x = a.as<double>(), y = b.as<double>();
  double sum = 0;
  for (size_t index = 0; index < x.size(); ++index) sum += (x[index] - y[index]) * (x[index] - y[index]);
  return sum;
}

}  // namespace

std::vector<std::vector<size_t>> permutations_between(const Shape& from, const Shape& to) {
  std::vector<std::vector<size_t>> found;
  const size_t rank = from.rank();
  if (rank != to.rank() || rank > thresholds::kMostPermutedAxes) return found;
  std::vector<size_t> permutation(rank);
  std::iota(permutation.begin(), permutation.end(), size_t{0});
  while (std::ranges::next_permutation(permutation).found) {
    bool fits = true;
    for (size_t axis = 0; axis < rank; ++axis) fits = fits && from[permutation[axis]] == to[axis];
    if (fits) found.push_back(permutation);
  }
  return found;
}

Value transposed(const Value& value, const std::vector<size_t>& permutation) {
  const Value wide = as_double(value);
  if (!holds_floats(wide) || wide.tensor().shape().rank() != permutation.size()) return {};
  const Tensor& from = wide.tensor();
  const size_t rank = permutation.size();
  std::vector<int64_t> dims(rank), steps(rank), strides(rank, 1);
  for (size_t axis = rank; axis-- > 1;) strides[axis - 1] = strides[axis] * from.shape()[axis];
  for (size_t axis = 0; axis < rank; ++axis) {
    dims[axis] = from.shape()[permutation[axis]];
    steps[axis] = strides[permutation[axis]];
  }
  auto to = Tensor::allocate(DType::float64, Shape(dims));
  if (!to.ok()) return {};
  const std::span<const double> source = from.as<double>();
  std::vector<int64_t> position(rank, 0);
  int64_t offset = 0;
  for (double& element : to->mutable_as<double>()) {
    element = source[static_cast<size_t>(offset)];
    for (size_t axis = rank; axis-- > 0;) {
      offset += steps[axis];
      if (++position[axis] < dims[axis]) break;
      offset -= steps[axis] * dims[axis];
      position[axis] = 0;
    }
  }
  return to.take();
}

std::optional<Layout> layout_between(const Value& in_a, const Value& in_b) {
  if (!holds_floats(in_a) || !holds_floats(in_b)) return std::nullopt;
  const Tensor &a = in_a.tensor(), &b = in_b.tensor();
  if (a.element_count() != b.element_count() || a.element_count() == 0) return std::nullopt;
  Layout layout{a.shape(), b.shape(), {}};
  const Value wide = as_double(in_b), own = as_double(in_a);
  if (!wide.is_tensor() || !own.is_tensor()) return std::nullopt;
  double nearest =
      a.shape() == b.shape() ? squared_distance(own.tensor(), wide.tensor()) : std::numeric_limits<double>::infinity();
  for (std::vector<size_t>& permutation : permutations_between(a.shape(), b.shape())) {
    const Value moved = transposed(in_a, permutation);
    if (!moved.is_tensor()) return std::nullopt;
    const double distance = squared_distance(moved.tensor(), wide.tensor());
    const bool is_nearer = distance < nearest || (layout.permutation.empty() && !(a.shape() == b.shape()));
    if (is_nearer) layout.permutation = std::move(permutation);
    if (is_nearer) nearest = distance;
  }
  return layout.permutation.empty() ? std::nullopt : std::optional(std::move(layout));
}

std::optional<Layout> rows_between(const Value& in_a, const Value& in_b) {
  if (!holds_floats(in_a) || !holds_floats(in_b)) return std::nullopt;
  const Tensor &a = in_a.tensor(), &b = in_b.tensor();
  if (a.element_count() != b.element_count() || a.shape().rank() == b.shape().rank()) return std::nullopt;
  return Layout{a.shape(), b.shape(), {}};
}

Value as_b_lays_it_out(const Layout& layout, const Value& value) {
  if (!value.is_tensor() || !(value.tensor().shape() == layout.shape_a)) return value;
  if (layout.permutation.empty()) return value.tensor().reshaped(layout.shape_b);
  return transposed(value, layout.permutation);
}

Value as_a_lays_it_out(const Layout& layout, const Value& value) {
  if (!value.is_tensor() || !(value.tensor().shape() == layout.shape_b)) return value;
  if (layout.permutation.empty()) return value.tensor().reshaped(layout.shape_a);
  return transposed(value, inverse(layout.permutation));
}

}  // namespace parallax::diff
