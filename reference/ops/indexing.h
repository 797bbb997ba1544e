// SPDX-License-Identifier: Apache-2.0
// Index arithmetic: axes, strides, and a walk over multi-indices. The only file of the reference that uses strides.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/tensor/shape.h"

namespace parallax::reference {

// An axis that may count from the back, as 0 .. rank-1.
Result<size_t> normalize_axis(int64_t axis, size_t rank);
// The normalized axes of a list, in the order given; duplicates are an error.
Result<std::vector<size_t>> normalize_axes(std::span<const int64_t> axes, size_t rank);

// Row-major element strides of a shape.
std::vector<int64_t> strides_of(const Shape& shape);

// True where a shape has these dimensions, which need not be those of a tensor that can exist.
bool has_dims(const Shape& shape, std::initializer_list<int64_t> dims);

// The shape of dimensions that were computed. Errors: a negative one, or too many elements.
inline Result<Shape> make_shape(std::initializer_list<int64_t> dims) {
  return Shape::create(std::span(dims.begin(), dims.size()));
}

// Product of the dimensions of axes [first, last).
int64_t count_of(const Shape& shape, size_t first, size_t last);

// Shape with the dimension of one axis replaced.
Result<Shape> with_dim(const Shape& shape, size_t axis, int64_t dim);

// Multidirectional broadcasting (the specification's "Broadcasting in ONNX").
Result<Shape> broadcast_shapes(const Shape& a, const Shape& b);
// Strides of `from` seen as `to`: 0 along axes it is repeated over. PX_CHECKs that it can be broadcast.
std::vector<int64_t> broadcast_strides(const Shape& from, const Shape& to);
// Unidirectional broadcasting: whether `from` repeats to exactly `to`.
bool broadcasts_to(const Shape& from, const Shape& to);

// Walks the multi-indices of `dims` in row-major order from linear position `begin`, keeping for each of Count sets of
// strides the offset sum(index * stride).
template <size_t Count>
class Walk {
 public:
  Walk(std::span<const int64_t> dims, const std::array<std::span<const int64_t>, Count>& strides, int64_t begin = 0)
      : rank_(dims.size()) {
    for (size_t axis = rank_; axis-- > 0;) {
      dims_[axis] = dims[axis];
      index_[axis] = dims[axis] > 0 ? begin % dims[axis] : 0;
      if (dims[axis] > 0) begin /= dims[axis];
      for (size_t set = 0; set < Count; ++set) {
        strides_[set][axis] = strides[set][axis];
        offsets_[set] += index_[axis] * strides[set][axis];
      }
    }
  }

  int64_t index(size_t axis) const { return index_[axis]; }
  int64_t offset(size_t set = 0) const { return offsets_[set]; }

  void next() {
    for (size_t axis = rank_; axis-- > 0;) {
      for (size_t set = 0; set < Count; ++set) offsets_[set] += strides_[set][axis];
      if (++index_[axis] < dims_[axis]) return;
      for (size_t set = 0; set < Count; ++set) offsets_[set] -= strides_[set][axis] * dims_[axis];
      index_[axis] = 0;
    }
  }

 private:
  static constexpr size_t kRanks = 2 * Shape::kMaxRank;  // windows walk batch and kernel axes together
  size_t rank_;
  std::array<int64_t, kRanks> dims_{};
  std::array<int64_t, kRanks> index_{};
  std::array<std::array<int64_t, kRanks>, Count> strides_{};
  std::array<int64_t, Count> offsets_{};
};

}  // namespace parallax::reference
