// SPDX-License-Identifier: Apache-2.0
// Shape: the dimensions of a tensor that exists. Any Shape object is valid: no negative dimension, a rank and an
// element count that cannot overflow any size computed from them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "inspector/base/result.h"

namespace parallax {

class Shape {
 public:
  static constexpr size_t kMaxRank = 16;
  static constexpr int64_t kMaxElements = int64_t{1} << 56;  // times 16 bytes still fits 63 bits

  Shape() = default;                                           // rank 0: a scalar, one element
  Shape(std::initializer_list<int64_t> dims);                  // for dimensions known to be valid: PX_CHECKs
  explicit Shape(std::span<const int64_t> dims);               // likewise
  static Result<Shape> create(std::span<const int64_t> dims);  // for untrusted dimensions

  size_t rank() const { return rank_; }
  int64_t operator[](size_t axis) const { return dims_[axis]; }
  std::span<const int64_t> dims() const { return {dims_.data(), rank_}; }
  int64_t element_count() const { return element_count_; }
  const int64_t* begin() const { return dims_.data(); }
  const int64_t* end() const { return dims_.data() + rank_; }
  bool operator==(const Shape& other) const;

  std::vector<int64_t> index_of(int64_t element) const;  // along each axis, of an element in row-major order

  std::string to_string() const;  // "[2,3]", "[]"

 private:
  std::array<int64_t, kMaxRank> dims_{};
  size_t rank_ = 0;
  int64_t element_count_ = 1;
};

}  // namespace parallax
