// SPDX-License-Identifier: Apache-2.0
// SparseTensorProto: `indices` holds linear positions [NNZ] or multi-indices [NNZ, rank] of the values.
#include "reference/ops/sparse.h"

#include <fmt/format.h>

#include "reference/ops/indexing.h"
#include "reference/ops/move.h"

namespace parallax::reference {

Result<Tensor> densify(const SparseTensor& sparse) {
  const Shape shape = PX_TRY(Shape::create(sparse.dims));
  const Tensor& values = sparse.values.tensor;
  const Tensor& indices = sparse.indices.tensor;
  if (!values.defined() || !indices.defined())
    return invalid_model("a sparse tensor lacks its values or indices; it must have both");
  const bool linear = indices.shape().rank() == 1;
  const size_t width = linear ? 1 : shape.rank();
  const int64_t count = values.element_count();
  if (indices.element_count() != count * static_cast<int64_t>(width))
    return invalid_model(fmt::format("sparse tensor '{}' has indices {}; it must have {} for {} values",
                                     sparse.values.name, indices.shape().to_string(),
                                     count * static_cast<int64_t>(width), count));
  Tensor dense = PX_TRY(Tensor::zeros(values.dtype(), shape));
  const std::vector<int64_t> strides = strides_of(shape);
  const std::vector<int64_t> positions = to_int64s(indices);
  for (int64_t entry = 0; entry < count; ++entry) {
    int64_t target = 0;
    for (size_t axis = 0; axis < width; ++axis) {
      const int64_t position = positions[static_cast<size_t>(entry) * width + axis];
      const int64_t limit = linear ? shape.element_count() : shape[axis];
      if (position < 0 || position >= limit)
        return invalid_model(fmt::format("an index of sparse tensor '{}' is {}; it must be in [0, {}), its shape is {}",
                                         sparse.values.name, position, limit, shape.to_string()));
      target += position * (linear ? 1 : strides[axis]);
    }
    copy_run(values, entry, dense, target, 1);
  }
  return dense;
}

}  // namespace parallax::reference
