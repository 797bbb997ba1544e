// SPDX-License-Identifier: Apache-2.0
// Lists of integers, and broadcasting of shapes.
#include "runtime/device/cpu/ints.h"

#include <string>
#include <utility>

namespace parallax::runtime {

Ints& Ints::operator=(const Ints& other) {
  if (this != &other) assign(other.data_, other.size_);
  return *this;
}

Ints& Ints::operator=(Ints&& other) noexcept {
  if (this == &other) return *this;
  if (data_ != inline_) delete[] data_;
  take(other);
  return *this;
}

void Ints::take(Ints& other) noexcept {
  if (other.data_ == other.inline_) {
    data_ = inline_;
    capacity_ = kInline;
    std::copy_n(other.inline_, other.size_, inline_);
  } else {
    data_ = std::exchange(other.data_, other.inline_);
    capacity_ = std::exchange(other.capacity_, kInline);
  }
  size_ = std::exchange(other.size_, 0);
}

void Ints::grow(int64_t count) {
  capacity_ = std::max(count, 2 * capacity_);
  auto* larger = new int64_t[static_cast<size_t>(capacity_)];
  std::copy_n(data_, size_, larger);
  if (data_ != inline_) delete[] data_;
  data_ = larger;
}

void Ints::insert(int64_t index, int64_t value) {
  push_back(value);
  std::rotate(begin() + index, end() - 1, end());
}

void Ints::erase(int64_t index) {
  std::copy(begin() + index + 1, end(), begin() + index);
  --size_;
}

Result<Shape> broadcast_shapes(std::span<const Shape> shapes) {
  if (!shapes.empty() &&
      std::all_of(shapes.begin() + 1, shapes.end(), [&](const Shape& shape) { return shape == shapes[0]; }))
    return shapes[0];
  int64_t rank = 0;
  for (const Shape& shape : shapes) rank = std::max(rank, rank_of(shape));
  Ints dims(rank, 1);
  for (const Shape& shape : shapes) {
    const int64_t lead = rank - rank_of(shape);
    for (int64_t axis = lead; axis < rank; ++axis) {
      const int64_t dim = dim_of(shape, axis - lead);
      if (dim == dims[axis] || dim == 1) continue;
      if (dims[axis] != 1) {
        std::string list;
        for (const Shape& each : shapes) list += (list.empty() ? "" : " and ") + each.to_string();
        return execution_error("shapes " + list +
                               " do not broadcast together; their dimensions must be equal, or one of them 1");
      }
      dims[axis] = dim;
    }
  }
  return Shape::create(dims);
}

Ints broadcast_strides(const Shape& from, const Shape& to) {
  const Ints own = row_major_strides(from);
  Ints strides(rank_of(to));
  const int64_t lead = rank_of(to) - rank_of(from);
  for (int64_t axis = lead; axis < rank_of(to); ++axis) {
    if (dim_of(from, axis - lead) != 1) strides[axis] = own[axis - lead];
  }
  return strides;
}

}  // namespace parallax::runtime
