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

class Ints {
 public:
  Ints() = default;
  Ints(std::initializer_list<int64_t> values) : values_(values) {}
  explicit Ints(int64_t count, int64_t value = 0) : values_(static_cast<size_t>(count), value) {}
  explicit Ints(std::span<const int64_t> values) : values_(values.begin(), values.end()) {}
  Ints(const Shape& shape) : values_(shape.begin(), shape.end()) {}
  Ints(std::vector<int64_t> values) : values_(std::move(values)) {}

  int64_t& operator[](int64_t index) { return values_.data()[index]; }
  int64_t operator[](int64_t index) const { return values_.data()[index]; }
  int64_t size() const { return static_cast<int64_t>(values_.size()); }
  bool empty() const { return values_.empty(); }
  int64_t back() const { return values_.back(); }
  void push_back(int64_t value) { values_.push_back(value); }
  void insert(int64_t index, int64_t value);
  void erase(int64_t index);
  bool contains(int64_t value) const { return std::find(values_.begin(), values_.end(), value) != values_.end(); }
  auto begin() { return values_.begin(); }
  auto end() { return values_.end(); }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }
  const int64_t* data() const { return values_.data(); }
  operator std::span<const int64_t>() const { return values_; }
  bool operator==(const Ints&) const = default;

 private:
  std::vector<int64_t> values_;
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
