// SPDX-License-Identifier: Apache-2.0
// Slices as people write them: "0,:,3:5", "-1", "::2", with `...` for the dimensions not named.
#pragma once

#include <string_view>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/tensor/tensor.h"

namespace parallax {

// Elements of one axis: start, start + step, ... `count` of them. An index drops its axis from the result's shape.
struct AxisSlice {
  int64_t start = 0;
  int64_t step = 1;
  int64_t count = 0;
  bool drops_axis = false;
};

// As numpy's basic indexing, steps included; fewer parts than axes leave the last axes whole. Errors: usage.
Result<std::vector<AxisSlice>> parse_slice(std::string_view text, const Shape& shape);

// The selected elements as a tensor of their own.
Result<Tensor> take_slice(const TensorView& tensor, const std::vector<AxisSlice>& slices);

}  // namespace parallax
