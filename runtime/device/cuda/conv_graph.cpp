// SPDX-License-Identifier: Apache-2.0
// Shapes, strides and pads of a convolution's tensors for cuDNN, and what it adds up to.
#ifdef PX_WITH_CUDNN

#include "runtime/device/cuda/conv_graph.h"

#include <cstdint>
#include <optional>

namespace parallax::runtime {
namespace {

enum TensorId : int64_t { kX = 1, kFilters, kBias, kY, kSums };

bool has_bias(const LibraryConv& conv) { return conv.bias.dtype != DType::undefined; }

// cuDNN knows two and three spatial axes: a single one gets another of length 1 before it.
Ints spatial(const Ints& values, int64_t fill) {
  Ints all = values;
  if (all.size() == 1) all.insert(0, fill);
  return all;
}

Ints dims_of(int64_t first, int64_t second, const Ints& locations) {
  Ints dims{first, second};
  for (const int64_t positions_of_axis : spatial(locations, 1)) dims.push_back(positions_of_axis);
  return dims;
}

// In the transpose y is the bigger one, and x has the windows' positions in it.
const Ints& windowed(const LibraryConv& conv) {
  return conv.is_transposed ? conv.problem.out_spatial : conv.problem.in_spatial;
}
const Ints& window_positions(const LibraryConv& conv) {
  return conv.is_transposed ? conv.problem.in_spatial : conv.problem.out_spatial;
}

// Elements after the last window of a transpose count as negative padding; no window reaches them.
Ints padding_after(const LibraryConv& conv) {
  Ints pads = conv.problem.pads_end;
  for (int64_t& pad : pads) pad = std::max<int64_t>(0, pad);
  return pads;
}

// The number of windows is what cuDNN computes from sizes and pads, on every axis.
bool windows_fit(const LibraryConv& conv) {
  const ConvProblem& problem = conv.problem;
  const Ints after = padding_after(conv);
  for (int64_t axis = 0; axis < problem.spatial_rank(); ++axis) {
    const int64_t extent = (problem.kernel[axis] - 1) * problem.dilations[axis] + 1;
    const int64_t room = windowed(conv)[axis] + problem.pads_begin[axis] + after[axis] - extent;
    if (problem.pads_begin[axis] < 0 || room < 0) return false;
    if (room / problem.strides[axis] + 1 != window_positions(conv)[axis]) return false;
  }
  return true;
}

CudnnTensor described(TensorId id, cudnnDataType_t type, const Ints& dims) {
  return {id, type, dims, row_major_strides(dims)};
}

}  // namespace

bool suits_cudnn(const LibraryConv& conv) {
  const ConvProblem& problem = conv.problem;
  if (!cudnn_type(conv.y.dtype).has_value() || conv.x.dtype != conv.y.dtype || conv.filters.dtype != conv.y.dtype) {
    return false;
  }
  // of transposes with a bias no engine knows (cuDNN 9.19)
  if (has_bias(conv) && (conv.bias.dtype != conv.y.dtype || conv.is_transposed)) return false;
  if (problem.spatial_rank() < 1 || problem.spatial_rank() > 3 || !windows_fit(conv)) return false;
  for (const int64_t count :
       {conv.x.shape.element_count(), conv.filters.shape.element_count(), conv.y.shape.element_count()}) {
    if (count < 1 || count > INT32_MAX) return false;
  }
  return is_cudnn_aligned(conv.x.data) && is_cudnn_aligned(conv.filters.data) && is_cudnn_aligned(conv.bias.data) &&
         is_cudnn_aligned(conv.y.data);
}

CudnnKey key_of(const LibraryConv& conv, bool tf32) {
  const ConvProblem& problem = conv.problem;
  CudnnKey key{problem.spatial_rank(),      problem.batch,           problem.in_channels,
               problem.out_channels,        problem.groups,          static_cast<int64_t>(conv.y.dtype),
               int64_t{conv.is_transposed}, int64_t{has_bias(conv)}, int64_t{tf32}};
  for (const Ints* values : {&problem.in_spatial, &problem.out_spatial, &problem.kernel, &problem.strides,
                             &problem.dilations, &problem.pads_begin, &problem.pads_end}) {
    key.insert(key.end(), values->begin(), values->end());
  }
  return key;
}

CudnnChoice choose_conv_plan(const Cudnn& functions, const CudnnTarget& target, const LibraryConv& conv, bool tf32) {
  const ConvProblem& problem = conv.problem;
  const cudnnDataType_t type = *cudnn_type(conv.y.dtype);
  const int64_t groups = problem.groups;
  const Ints y_dims = dims_of(problem.batch, problem.out_channels, problem.out_spatial);
  CudnnGraph graph(functions);
  const auto x = graph.tensor(described(kX, type, dims_of(problem.batch, problem.in_channels, problem.in_spatial)));
  const auto filters = graph.tensor(
      described(kFilters, type,
                conv.is_transposed ? dims_of(problem.in_channels, problem.out_channels / groups, problem.kernel)
                                   : dims_of(problem.out_channels, problem.in_channels / groups, problem.kernel)));
  const auto y = graph.tensor(described(kY, type, y_dims));
  auto sums = y;
  if (has_bias(conv)) {
    CudnnTensor between = described(kSums, CUDNN_DATA_FLOAT, y_dims);
    between.is_between = true;
    sums = graph.tensor(between);
  }
  const CudnnConvolution windows{spatial(problem.strides, 1), spatial(problem.dilations, 1),
                                 spatial(problem.pads_begin, 0), spatial(padding_after(conv), 0)};
  if (conv.is_transposed) {
    graph.convolve_back(windows, x, filters, sums);
  } else {
    graph.convolve(windows, x, filters, sums);
  }
  if (has_bias(conv)) {
    Ints bias_dims(y_dims.size(), 1);
    bias_dims[1] = problem.out_channels;
    graph.pointwise(CUDNN_POINTWISE_ADD, sums, graph.tensor(described(kBias, type, bias_dims)), y);
  }
  return graph.choose_plan(target, {.may_use_tensor_cores = conv.y.dtype != DType::float32 || tf32});
}

Status run_conv_plan(const CudnnPlan& plan, cudnnHandle_t handle, const LibraryConv& conv, void* workspace) {
  std::vector<int64_t> ids{kX, kFilters, kY};
  std::vector<void*> pointers{const_cast<std::byte*>(conv.x.data), const_cast<std::byte*>(conv.filters.data),
                              conv.y.data};
  if (has_bias(conv)) {
    ids.push_back(kBias);
    pointers.push_back(const_cast<std::byte*>(conv.bias.data));
  }
  return plan.run(handle, ids, pointers, workspace);
}

}  // namespace parallax::runtime

#endif
