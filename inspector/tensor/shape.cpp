// SPDX-License-Identifier: Apache-2.0
// Construction and printing of shapes.
#include "inspector/tensor/shape.h"

#include <algorithm>

#include "inspector/base/check.h"
#include "inspector/base/checked_math.h"

namespace parallax {

Result<Shape> Shape::create(std::span<const int64_t> dims) {
  if (dims.size() > kMaxRank) {
    return unsupported("a tensor of rank " + std::to_string(dims.size()) + " (at most " + std::to_string(kMaxRank) +
                       " dimensions are supported)");
  }
  for (int64_t dim : dims) {
    if (dim < 0)
      return execution_error("dimension " + std::to_string(dim) +
                             " of a tensor's shape is negative; it must be 0 or more");
  }
  Shape shape;
  std::copy(dims.begin(), dims.end(), shape.dims_.begin());
  shape.rank_ = dims.size();
  // Without a dimension of 0, too: strides and counts are made of some of the dimensions alone.
  std::array<int64_t, kMaxRank> others{};
  std::replace_copy(dims.begin(), dims.end(), others.begin(), int64_t{0}, int64_t{1});
  const auto count = checked_product(std::span(others).first(dims.size()));
  if (!count.has_value() || *count > kMaxElements)
    return out_of_memory("the product of a tensor's dimensions is too large; it must be at most 2^56");
  shape.element_count_ = std::ranges::find(dims, 0) == dims.end() ? *count : 0;
  return shape;
}

Shape::Shape(std::span<const int64_t> dims) {
  auto made = create(dims);
  PX_CHECK(made.ok());
  *this = *made;
}

Shape::Shape(std::initializer_list<int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}

bool Shape::operator==(const Shape& other) const { return std::equal(begin(), end(), other.begin(), other.end()); }

std::vector<int64_t> Shape::index_of(int64_t element) const {
  std::vector<int64_t> index(rank_);
  for (size_t axis = rank_; axis-- > 0;) {
    const int64_t size = std::max<int64_t>(dims_[axis], 1);
    index[axis] = element % size;
    element /= size;
  }
  return index;
}

std::string Shape::to_string() const {
  std::string text = "[";
  for (size_t axis = 0; axis < rank_; ++axis) {
    if (axis > 0) text += ',';
    text += std::to_string(dims_[axis]);
  }
  return text + "]";
}

}  // namespace parallax
