// SPDX-License-Identifier: Apache-2.0
// Strided and contiguous movement of elements.
#include "reference/ops/move.h"

#include <algorithm>

namespace parallax::reference {

void copy_run(const TensorView& source, int64_t from, Tensor& target, int64_t to, int64_t count) {
  with_elements(source, target, [&](auto elements) {
    if constexpr (decltype(elements)::is_plain)
      std::copy_n(elements.source + from, count, elements.target + to);
    else
      for (int64_t index = 0; index < count; ++index) elements.copy(from + index, to + index);
  });
}

namespace {

// The last axis is a loop of its own: only its ends need the walk over all axes.
template <class Elements>
void copy_strided(const Elements& elements, int64_t from, int64_t stride, int64_t to, int64_t count) {
  if constexpr (Elements::is_plain) {
    if (stride == 1) {
      std::copy_n(elements.source + from, count, elements.target + to);
      return;
    }
  }
  for (int64_t index = 0; index < count; ++index) elements.copy(from + index * stride, to + index);
}

}  // namespace

void gather_strided(const TensorView& source, int64_t base, std::span<const int64_t> strides, Tensor& target) {
  const Shape shape = target.shape();
  const int64_t run = shape.rank() == 0 ? 1 : shape[shape.rank() - 1];
  const int64_t stride = shape.rank() == 0 ? 1 : strides.back();
  const auto outer = shape.dims().first(std::max<size_t>(1, shape.rank()) - 1);
  with_elements(source, target, [&](auto elements) {
    for_blocks(shape.element_count(), 3, [&](int64_t begin, int64_t end) {
      Walk<1> walk(outer, {strides.first(outer.size())}, begin / run);
      int64_t within = begin % run;
      for (int64_t index = begin; index < end; within = 0, walk.next()) {
        const int64_t count = std::min(end - index, run - within);
        copy_strided(elements, base + walk.offset() + within * stride, stride, index, count);
        index += count;
      }
    });
  });
}

}  // namespace parallax::reference
