// Reading and checking of index tensors, shared by the gathers and the scatters.
#pragma once

#include "runtime/device/ints.h"
#include "runtime/ops/op_call.h"

namespace parallax::runtime {

// Indices into a dimension of `dim`, counted from the front. Error: execution, naming the first one outside.
Result<Ints> checked_indices(const Tensor& indices, int64_t dim);

// The tuples of GatherND and ScatterND as block numbers of data. Errors: execution.
Result<Ints> nd_offsets(const Shape& data, const Tensor& indices, int64_t batch_dims);

// GatherElements and ScatterElements: element i of the index tensor stands for element f(i) of data.
struct AxisIndex {
  const int64_t* indices;
  Ints dims;     // of the index tensor
  Ints strides;  // of data
  int64_t axis;
  int64_t operator()(int64_t element) const {
    int64_t rest = element;
    int64_t offset = indices[element] * strides[axis];
    for (int64_t i = dims.size() - 1; i >= 0; --i) {
      if (i != axis) offset += rest % dims[i] * strides[i];
      rest /= dims[i];
    }
    return offset;
  }
};

// Error: execution, unless the index tensor has data's rank and is no larger outside the axis.
Status check_axis_indices(const Shape& data, const Shape& indices, int64_t axis);

struct TableIndex {
  const int64_t* offsets;
  int64_t operator()(int64_t block) const { return offsets[block]; }
};

}  // namespace parallax::runtime
