// SPDX-License-Identifier: Apache-2.0
// Gather, GatherElements, GatherND: elements chosen by indices held in a tensor. Negative indices count from the back.
#include "inspector/model/rule_errors.h"
#include "reference/ops/families.h"
#include "reference/ops/move.h"

namespace parallax::reference {
namespace {

// Indices made non-negative. Errors: one outside [-dim, dim).
Result<std::vector<int64_t>> resolve_indices(const Tensor& indices, int64_t dim) {
  std::vector<int64_t> positions = to_int64s(indices);
  for (int64_t& position : positions) {
    if (position < -dim || position >= dim)
      return wrong_value("an index", position, "be in [{}, {}), the axis has {} elements", -dim, dim, dim);
    if (position < 0) position += dim;
  }
  return positions;
}

Status op_gather(OpContext& op) {
  const Tensor& data = op.input(0);
  const Tensor& indices = op.input(1);
  const Shape& shape = data.shape();
  const size_t axis = PX_TRY(normalize_axis(op.int_attribute("axis"), shape.rank()));
  const std::vector<int64_t> positions = PX_TRY(resolve_indices(indices, shape[axis]));
  std::vector<int64_t> dims(shape.begin(), shape.begin() + axis);
  dims.insert(dims.end(), indices.shape().begin(), indices.shape().end());
  dims.insert(dims.end(), shape.begin() + axis + 1, shape.end());
  const Shape result = PX_TRY(Shape::create(dims));
  Tensor output = PX_TRY(op.allocate(data.dtype(), result));
  const int64_t outer = count_of(shape, 0, axis);
  const int64_t run = count_of(shape, axis + 1, shape.rank());
  const auto chosen = static_cast<int64_t>(positions.size());
  for (int64_t lead = 0; lead < outer; ++lead) {
    for (int64_t index = 0; index < chosen; ++index) {
      const int64_t from = lead * shape[axis] + positions[static_cast<size_t>(index)];
      copy_run(data, from * run, output, (lead * chosen + index) * run, run);
    }
  }
  return op.set_output(0, std::move(output));
}

Status op_gather_elements(OpContext& op) {
  const Tensor& data = op.input(0);
  const Tensor& indices = op.input(1);
  const size_t rank = data.shape().rank();
  const size_t axis = PX_TRY(normalize_axis(op.int_attribute("axis"), rank));
  if (indices.shape().rank() != rank) return wrong_input(op, 1, "have the rank of data, {}", rank);
  for (size_t other = 0; other < rank; ++other) {
    if (other != axis && indices.shape()[other] > data.shape()[other])
      return wrong_input(op, 1, "be no larger than data {} along axis {}", data.shape().to_string(), other);
  }
  const std::vector<int64_t> positions = PX_TRY(resolve_indices(indices, data.shape()[axis]));
  Tensor output = PX_TRY(op.allocate(data.dtype(), indices.shape()));
  std::vector<int64_t> strides = strides_of(data.shape());
  const int64_t along = strides[axis];
  strides[axis] = 0;
  std::vector<int64_t> from(positions.size());
  Walk<1> walk(indices.shape().dims(), {strides});
  for (size_t index = 0; index < from.size(); ++index, walk.next())
    from[index] = walk.offset() + positions[index] * along;
  gather_elements(data, output, [&](int64_t index) { return from[static_cast<size_t>(index)]; });
  return op.set_output(0, std::move(output));
}

Status op_gather_nd(OpContext& op) {
  const Tensor& data = op.input(0);
  const Tensor& indices = op.input(1);
  const Shape& shape = data.shape();
  const Shape& asked = indices.shape();
  const auto batch_dims = static_cast<size_t>(op.find_int("batch_dims").value_or(0));
  if (asked.rank() < 1 || batch_dims >= asked.rank() || batch_dims >= shape.rank())
    return wrong_attribute("batch_dims", static_cast<int64_t>(batch_dims),
                           "be below the ranks of data {} and indices {}", shape.to_string(), asked.to_string());
  const auto width = static_cast<size_t>(asked[asked.rank() - 1]);
  if (width > shape.rank() - batch_dims)
    return wrong_input(op, 1, "have a last axis of at most {}, the axes of data {} after 'batch_dims'",
                       shape.rank() - batch_dims, shape.to_string());
  for (size_t axis = 0; axis < batch_dims; ++axis) {
    if (shape[axis] != asked[axis])
      return wrong_input(op, 1, "have the first {} axes of data {}, as 'batch_dims' says", batch_dims,
                         shape.to_string());
  }
  std::vector<int64_t> dims(asked.begin(), asked.end() - 1);
  dims.insert(dims.end(), shape.begin() + batch_dims + width, shape.end());
  const Shape result = PX_TRY(Shape::create(dims));
  Tensor output = PX_TRY(op.allocate(data.dtype(), result));
  const std::vector<int64_t> positions = to_int64s(indices);
  const std::vector<int64_t> strides = strides_of(shape);
  const int64_t run = count_of(shape, batch_dims + width, shape.rank());
  const int64_t tuples = count_of(asked, 0, asked.rank() - 1);
  const int64_t per_batch = count_of(asked, batch_dims, asked.rank() - 1);
  const int64_t batch_stride = count_of(shape, batch_dims, shape.rank());
  for (int64_t tuple = 0; tuple < tuples; ++tuple) {
    int64_t from = tuple / per_batch * batch_stride;
    for (size_t axis = 0; axis < width; ++axis) {
      const int64_t dim = shape[batch_dims + axis];
      const int64_t index = positions[static_cast<size_t>(tuple) * width + axis];
      if (index < -dim || index >= dim)
        return wrong_value("an index", index, "be in [{}, {}), axis {} has {} elements", -dim, dim, batch_dims + axis,
                           dim);
      from += (index < 0 ? index + dim : index) * strides[batch_dims + axis];
    }
    copy_run(data, from, output, tuple * run, run);
  }
  return op.set_output(0, std::move(output));
}

constexpr OpRow kGatherRows[] = {
    {"Gather", kOnnx, 1, 13, op_gather},
    {"GatherElements", kOnnx, 11, 13, op_gather_elements},
    {"GatherND", kOnnx, 11, 13, op_gather_nd},
    {"GatherND", kMicrosoft, 1, 1, op_gather_nd},
};

}  // namespace

OpRows gather_rows() { return kGatherRows; }

}  // namespace parallax::reference
