// Strided and contiguous movement of elements.
#include "reference/ops/move.h"

namespace parallax::reference {

void copy_run(const TensorView& source, int64_t from, Tensor& target, int64_t to, int64_t count) {
  with_elements(source, target, [&](auto elements) {
    for (int64_t index = 0; index < count; ++index) elements.copy(from + index, to + index);
  });
}

void gather_strided(const TensorView& source, int64_t base, std::span<const int64_t> strides, Tensor& target) {
  const Shape shape = target.shape();
  with_elements(source, target, [&](auto elements) {
    for_blocks(shape.element_count(), 3, [&](int64_t begin, int64_t end) {
      Walk<1> walk(shape.dims(), {strides}, begin);
      for (int64_t index = begin; index < end; ++index, walk.next()) elements.copy(base + walk.offset(), index);
    });
  });
}

}  // namespace parallax::reference
