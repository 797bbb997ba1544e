// SPDX-License-Identifier: Apache-2.0
// Index tensors read, checked and turned into offsets.
#include "runtime/ops/indices.h"

#include <atomic>

#include "inspector/base/thread_pool.h"
#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/blocks.h"
#include "runtime/device/cpu/multiversion.h"

namespace parallax::runtime {

Result<Ints> checked_indices(const Tensor& indices, int64_t dim) {
  Ints values(indices.element_count());
  if (!values.empty()) {
    load_block<int64_t>(indices.dtype(), indices.view().data, 0, 1, values.size(), &*values.begin());
  }
  for (int64_t& index : values) {
    if (index < -dim || index >= dim) return index_outside(index, dim);
    if (index < 0) index += dim;
  }
  return values;
}

bool are_ready_indices(const Tensor& indices, int64_t dim) {
  if (indices.dtype() != DType::int64) return false;
  const int64_t* const values = indices.as<int64_t>().data();
  const auto limit = static_cast<uint64_t>(dim);
  std::atomic<bool> all_inside = true;
  parallel_for(indices.element_count(), 1, [&](int64_t begin, int64_t end) {
    uint64_t outside = 0;
    vectorized(begin, end, [values, limit, &outside](int64_t first, int64_t last) {
      uint64_t found = 0;
      for (int64_t i = first; i < last; ++i) found += static_cast<uint64_t>(values[i]) >= limit ? 1 : 0;
      outside = found;
    });
    if (outside != 0) all_inside = false;
  });
  return all_inside;
}

Error index_outside(int64_t index, int64_t dim) {
  return wrong_value("an index", index, "be in [{}, {}), the axis has {} elements", -dim, dim, dim);
}

Status check_nd_shapes(const Shape& data, const Shape& indices, int64_t batch_dims) {
  const Ints from(data);
  const Ints index_dims(indices);
  const int64_t depth = index_dims.empty() ? 0 : index_dims.back();
  if (batch_dims < 0 || index_dims.empty() || batch_dims >= index_dims.size() || depth < 1 ||
      batch_dims + depth > from.size())
    return wrong_shape("indices", indices,
                       "have a last axis of size 1 to rank of data minus 'batch_dims' ({}), data has shape {}",
                       batch_dims, data.to_string());
  for (int64_t axis = 0; axis < batch_dims; ++axis) {
    if (from[axis] != index_dims[axis])
      return wrong_shape("indices", indices, "have the batch axes of data {}, as many as 'batch_dims' ({}) says",
                         data.to_string(), batch_dims);
  }
  return {};
}

Result<Ints> nd_offsets(const Shape& data, const Tensor& indices, int64_t batch_dims) {
  PX_TRY(check_nd_shapes(data, indices.shape(), batch_dims));
  const Ints from(data);
  const Ints index_dims(indices.shape());
  const int64_t depth = index_dims.back();
  Ints values(indices.element_count());
  if (!values.empty()) {
    load_block<int64_t>(indices.dtype(), indices.view().data, 0, 1, values.size(), &*values.begin());
  }
  Ints offsets(values.size() / depth);
  const int64_t per_batch = product(index_dims, batch_dims, index_dims.size() - 1);
  for (int64_t tuple = 0; tuple < offsets.size(); ++tuple) {
    int64_t offset = per_batch == 0 ? 0 : tuple / per_batch;
    for (int64_t i = 0; i < depth; ++i) {
      const int64_t dim = from[batch_dims + i];
      int64_t index = values[tuple * depth + i];
      if (index < -dim || index >= dim) return index_outside(index, dim);
      offset = offset * dim + (index < 0 ? index + dim : index);
    }
    offsets[tuple] = offset;
  }
  return offsets;
}

Status check_axis_indices(const Shape& data, const Shape& indices, int64_t axis) {
  if (indices.rank() != data.rank())
    return wrong_shape("indices", indices, "have the rank of data, {}", data.to_string());
  for (int64_t i = 0; i < rank_of(data); ++i) {
    if (i != axis && dim_of(indices, i) > dim_of(data, i))
      return wrong_shape("indices", indices, "be no larger than data {} along axis {}", data.to_string(), i);
  }
  return {};
}

}  // namespace parallax::runtime
