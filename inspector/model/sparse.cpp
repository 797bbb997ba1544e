// SPDX-License-Identifier: Apache-2.0
// Checking and expanding sparse tensors.
#include "inspector/model/sparse.h"

#include <algorithm>
#include <cstring>

#include "inspector/tensor/elements.h"

namespace parallax {
namespace {

// The linear index of entry `i`, or -1 where an index is outside the dimensions.
int64_t linear_index(std::span<const int64_t> indices, const Shape& shape, bool is_linear, size_t i) {
  if (is_linear) return indices[i] < shape.element_count() ? std::max<int64_t>(indices[i], -1) : -1;
  int64_t linear = 0;
  for (size_t axis = 0; axis < shape.rank(); ++axis) {
    const int64_t index = indices[i * shape.rank() + axis];
    if (index < 0 || index >= shape[axis]) return -1;
    linear = linear * shape[axis] + index;
  }
  return linear;
}

}  // namespace

Status check_sparse(const SparseTensor& sparse) {
  const auto dims = Shape::create(sparse.dims);
  if (!dims.ok()) return invalid_model("the shape of a sparse tensor: " + dims.error().message);
  const Shape& shape = *dims;
  const Tensor& values = sparse.values.tensor;
  const Tensor& indices = sparse.indices.tensor;
  if (!values.defined() || values.shape().rank() != 1)
    return invalid_model("the values of a sparse tensor must have rank 1" +
                         (values.defined() ? ", they have shape " + values.shape().to_string() : std::string()));
  if (indices.dtype() != DType::int64)
    return invalid_model("the indices of a sparse tensor must be int64, they are " +
                         std::string(name_of(indices.dtype())));
  const int64_t count = values.element_count();
  const bool is_linear = indices.shape() == Shape{count};
  if (!is_linear && indices.shape() != Shape{count, static_cast<int64_t>(shape.rank())}) {
    return invalid_model("the indices of a sparse tensor of " + std::to_string(count) + " values and shape " +
                         shape.to_string() + " have shape " + indices.shape().to_string() + "; it must be " +
                         Shape{count}.to_string() + " or " +
                         Shape{count, static_cast<int64_t>(shape.rank())}.to_string());
  }
  int64_t previous = -1;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t linear = linear_index(indices.as<int64_t>(), shape, is_linear, static_cast<size_t>(i));
    if (linear < 0)
      return invalid_model("index " + std::to_string(i) + " of a sparse tensor is outside its shape, " +
                           shape.to_string());
    if (linear <= previous) return invalid_model("the indices of a sparse tensor must ascend without repeats");
    previous = linear;
  }
  return {};
}

Result<Tensor> to_dense(const SparseTensor& sparse) {
  constexpr size_t kMostBytes = size_t{1} << 34;  // a few bytes of file can ask for any amount of zeros
  const Shape shape(sparse.dims);
  const Tensor& values = sparse.values.tensor;
  if (byte_size(values.dtype(), shape.element_count()) > kMostBytes)
    return out_of_memory("a sparse tensor of shape " + shape.to_string() + " is too large to be expanded: more than " +
                         std::to_string(kMostBytes) + " bytes");
  const auto indices = sparse.indices.tensor.as<int64_t>();
  const bool is_linear = sparse.indices.tensor.shape().rank() == 1;
  Tensor dense = PX_TRY(Tensor::zeros(values.dtype(), shape));
  const int bits = bits_of(values.dtype());
  for (size_t i = 0; i < static_cast<size_t>(values.element_count()); ++i) {
    const int64_t at = linear_index(indices, shape, is_linear, i);
    if (values.dtype() == DType::string) {
      dense.mutable_as<std::string>()[static_cast<size_t>(at)] = values.as<std::string>()[i];
    } else if (bits < 8) {
      store_packed(dense.mutable_data(), bits, at, load_packed(values.view().data, bits, static_cast<int64_t>(i)));
    } else {
      const auto size = static_cast<size_t>(bits / 8);
      std::memcpy(dense.mutable_data() + static_cast<size_t>(at) * size, values.view().data + i * size, size);
    }
  }
  return dense;
}

}  // namespace parallax
