// SPDX-License-Identifier: Apache-2.0
// Ints: dimensions, axes, strides and indices, counted and indexed by int64_t as the rest of the runtime counts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/tensor/shape.h"

namespace parallax::runtime {

// Short lists are stored in the object itself: every call of an operator makes several.
class Ints {
 public:
  Ints() = default;
  Ints(std::initializer_list<int64_t> values) { assign(values.begin(), static_cast<int64_t>(values.size())); }
  explicit Ints(int64_t count, int64_t value = 0) {
    if (count > capacity_) grow(count);
    size_ = count;
    std::fill(begin(), end(), value);
  }
  explicit Ints(std::span<const int64_t> values) { assign(values.data(), static_cast<int64_t>(values.size())); }
  Ints(const Shape& shape) { assign(shape.begin(), static_cast<int64_t>(shape.rank())); }
  Ints(const std::vector<int64_t>& values) { assign(values.data(), static_cast<int64_t>(values.size())); }
  Ints(const Ints& other) { assign(other.data_, other.size_); }
  Ints(Ints&& other) noexcept { take(other); }
  Ints& operator=(const Ints& other);
  Ints& operator=(Ints&& other) noexcept;
  ~Ints() {
    if (data_ != inline_) delete[] data_;
  }

  int64_t& operator[](int64_t index) { return data_[index]; }
  int64_t operator[](int64_t index) const { return data_[index]; }
  int64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  int64_t back() const { return data_[size_ - 1]; }
  void push_back(int64_t value) {
    if (size_ == capacity_) grow(size_ + 1);
    data_[size_++] = value;
  }
  void insert(int64_t index, int64_t value);
  void erase(int64_t index);
  void truncate(int64_t count) { size_ = count; }  // keeps the first so many
  bool contains(int64_t value) const { return std::find(begin(), end(), value) != end(); }
  int64_t* begin() { return data_; }
  int64_t* end() { return data_ + size_; }
  const int64_t* begin() const { return data_; }
  const int64_t* end() const { return data_ + size_; }
  const int64_t* data() const { return data_; }
  operator std::span<const int64_t>() const { return {data_, static_cast<size_t>(size_)}; }
  bool operator==(const Ints& other) const { return std::equal(begin(), end(), other.begin(), other.end()); }

 private:
  static constexpr int64_t kInline = 6;

  void grow(int64_t count);  // makes room for so many
  void assign(const int64_t* values, int64_t count) {
    if (count > capacity_) grow(count);
    std::copy_n(values, count, data_);
    size_ = count;
  }
  void take(Ints& other) noexcept;  // this one has nothing of its own

  int64_t inline_[kInline];
  int64_t* data_ = inline_;
  int64_t size_ = 0;
  int64_t capacity_ = kInline;
};

inline int64_t rank_of(const Shape& shape) { return static_cast<int64_t>(shape.rank()); }
inline int64_t dim_of(const Shape& shape, int64_t axis) { return shape[static_cast<size_t>(axis)]; }

// Product of dims[begin, end); the dims are of a Shape, so it cannot overflow.
inline int64_t product(const Ints& dims, int64_t begin, int64_t end) {
  int64_t result = 1;
  for (int64_t axis = begin; axis < end; ++axis) result *= dims[axis];
  return result;
}
inline int64_t product(const Ints& dims) { return product(dims, 0, dims.size()); }

// Row-major strides in elements.
inline Ints row_major_strides(const Ints& dims) {
  Ints strides(dims.size(), 1);
  for (int64_t axis = dims.size() - 2; axis >= 0; --axis) strides[axis] = strides[axis + 1] * dims[axis + 1];
  return strides;
}

inline Result<Shape> shape_of(const Ints& dims) { return Shape::create(dims); }

// The numpy rule. Error: execution, naming both shapes.
Result<Shape> broadcast_shapes(std::span<const Shape> shapes);

// Strides with which a tensor of `from` is read as one of `to` (0 along broadcast axes).
Ints broadcast_strides(const Shape& from, const Shape& to);

}  // namespace parallax::runtime
