// SPDX-License-Identifier: Apache-2.0
// The parts of the stand-in for cuDNN that know what is described: descriptors with their attributes, tensors, and the
// operations on them, computed by plain loops.
#pragma once

#include "runtime/device/cuda/cudnn.h"

#ifdef PX_WITH_CUDNN

#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "inspector/base/check.h"
#include "runtime/device/cpu/blocks.h"
#include "runtime/device/storage.h"

namespace parallax::runtime::fake_cudnn {

using IndexList = std::vector<int64_t>;

struct Attribute {
  cudnnBackendAttributeType_t type = CUDNN_TYPE_INT64;
  int64_t count = 0;
  std::vector<std::byte> bytes;
};

struct Descriptor {
  explicit Descriptor(cudnnBackendDescriptorType_t made) : type(made) {}
  cudnnBackendDescriptorType_t type;
  bool is_final = false;
  std::map<cudnnBackendAttributeName_t, Attribute> attributes;
  const Descriptor* graph = nullptr;  // of an engine's configuration
  int engine = -1;                    // of a configuration, and of an engine

  template <class T>
  std::vector<T> list(cudnnBackendAttributeName_t name) const {
    const Attribute& attribute = attributes.at(name);
    std::vector<T> values(static_cast<size_t>(attribute.count));
    std::memcpy(values.data(), attribute.bytes.data(), attribute.bytes.size());
    return values;
  }
  template <class T>
  T one(cudnnBackendAttributeName_t name) const {
    const Attribute& attribute = attributes.at(name);
    PX_CHECK(attribute.count == 1);
    T value{};
    std::memcpy(&value, attribute.bytes.data(), attribute.bytes.size());
    return value;
  }
  const Descriptor& node(cudnnBackendAttributeName_t name) const { return *one<const Descriptor*>(name); }
};

struct FakeTensor {
  explicit FakeTensor(const Descriptor& descriptor)
      : id(descriptor.one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID)),
        dims(descriptor.list<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS)),
        strides(descriptor.list<int64_t>(CUDNN_ATTR_TENSOR_STRIDES)),
        is_virtual(descriptor.one<bool>(CUDNN_ATTR_TENSOR_IS_VIRTUAL)) {
    const auto type = descriptor.one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE);
    dtype = type == CUDNN_DATA_HALF ? DType::float16 : type == CUDNN_DATA_BFLOAT16 ? DType::bfloat16 : DType::float32;
  }
  int64_t offset(const IndexList& index) const {
    int64_t sum = 0;
    for (size_t axis = 0; axis < dims.size(); ++axis) sum += dims[axis] == 1 ? 0 : index[axis] * strides[axis];
    return sum;
  }
  float at(const IndexList& index) const { return load_element<float>(dtype, data, offset(index)); }
  void put(const IndexList& index, float value) const {
    storage::visit_storage(dtype, [&](auto* type) {
      using S = std::remove_pointer_t<decltype(type)>;
      reinterpret_cast<S*>(data)[offset(index)] = storage::to_storage<S>(value);
    });
  }
  int64_t id;
  IndexList dims, strides;
  bool is_virtual;
  DType dtype;
  std::byte* data = nullptr;
};

inline void for_each(const IndexList& dims, const std::function<void(const IndexList&)>& visit) {
  IndexList index(dims.size(), 0);
  while (true) {
    visit(index);
    size_t axis = dims.size();
    while (axis > 0 && ++index[axis - 1] == dims[axis - 1]) index[--axis] = 0;
    if (axis == 0) return;
  }
}

// ---- Convolutions ----

struct Windows {
  explicit Windows(const Descriptor& descriptor)
      : strides(descriptor.list<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES)),
        dilations(descriptor.list<int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS)),
        before(descriptor.list<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS)),
        after(descriptor.list<int64_t>(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS)),
        axes(static_cast<size_t>(descriptor.one<int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS))) {}
  IndexList strides, dilations, before, after;
  size_t axes;

  // Calls visit(batch and element of the windowed tensor, element of the windows', filter's) for each product of a
  // group.
  void for_each_product(const FakeTensor& x, const FakeTensor& w, const FakeTensor& y,
                        const std::function<void(const IndexList&, const IndexList&, const IndexList&)>& visit) const {
    const int64_t groups = x.dims[1] / w.dims[1], per_group = y.dims[1] / groups;
    for_each(y.dims, [&](const IndexList& out) {
      for_each({w.dims.begin() + 1, w.dims.end()}, [&](const IndexList& tap) {
        IndexList in{out[0], out[1] / per_group * w.dims[1] + tap[0]}, filter{out[1]};
        filter.insert(filter.end(), tap.begin(), tap.end());
        for (size_t axis = 0; axis < axes; ++axis) {
          in.push_back(out[axis + 2] * strides[axis] - before[axis] + tap[axis + 1] * dilations[axis]);
          if (in.back() < 0 || in.back() >= x.dims[axis + 2]) return;
        }
        visit(in, filter, out);
      });
    });
  }

  // The problem with tensors as they are in a forward convolution.
  std::string problem_with(const FakeTensor& x, const FakeTensor& w, const FakeTensor& y) const {
    const size_t rank = axes + 2;
    if (axes < 2 || axes > 3) return "two or three spatial axes are known";
    for (const IndexList* list : {&strides, &dilations, &before, &after}) {
      if (list->size() != axes) return "a list of the convolution has another length";
    }
    if (x.dims.size() != rank || w.dims.size() != rank || y.dims.size() != rank) return "the ranks differ";
    if (x.dims[0] != y.dims[0] || w.dims[0] != y.dims[1] || x.dims[1] % w.dims[1] != 0) return "the channels differ";
    if (y.dims[1] % (x.dims[1] / w.dims[1]) != 0) return "groups of different size";
    for (size_t axis = 0; axis < axes; ++axis) {
      const int64_t extent = (w.dims[axis + 2] - 1) * dilations[axis] + 1;
      const int64_t room = x.dims[axis + 2] + before[axis] + after[axis] - extent;
      if (before[axis] < 0 || after[axis] < 0 || room / strides[axis] + 1 != y.dims[axis + 2]) {
        return "the sizes do not fit windows and pads";
      }
    }
    return "";
  }
};

struct ConvNames {
  cudnnBackendAttributeName_t x, w, y, windows, alpha, beta;  // in the order in which a forward convolution names them
};
inline ConvNames conv_names(cudnnBackendDescriptorType_t type) {
  if (type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR) {
    return {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
  }
  return {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
}

using Tensors = std::vector<FakeTensor>;

inline std::string problem_with_conv(const Descriptor& operation, const Tensors& tensors) {
  const ConvNames names = conv_names(operation.type);
  if (operation.one<float>(names.alpha) != 1.0F || operation.one<float>(names.beta) != 0.0F) {
    return "not the plain result";
  }
  return Windows(operation.node(names.windows)).problem_with(tensors[0], tensors[1], tensors[2]);
}

inline void compute_conv(const Descriptor& operation, const Tensors& tensors) {
  const bool back = operation.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR;
  const FakeTensor &x = tensors[0], &w = tensors[1], &y = tensors[2];
  const FakeTensor& result = back ? x : y;
  FakeTensor sums = result;
  sums.dtype = DType::float32;
  int64_t count = 1;
  for (const int64_t dim : result.dims) count *= dim;
  std::vector<float> memory(static_cast<size_t>(count), 0.0F);
  sums.data = reinterpret_cast<std::byte*>(memory.data());
  Windows(operation.node(conv_names(operation.type).windows))
      .for_each_product(x, w, y, [&](const IndexList& in, const IndexList& filter, const IndexList& out) {
        const IndexList& at = back ? in : out;
        sums.put(at, sums.at(at) + w.at(filter) * (back ? y.at(out) : x.at(in)));
      });
  for_each(result.dims, [&](const IndexList& at) { result.put(at, sums.at(at)); });
}

// ---- Functions of one or two operands, reductions, products of matrices; the result stands last ----

inline bool broadcasts(const IndexList& from, const IndexList& to) {
  if (from.size() != to.size()) return false;
  for (size_t axis = 0; axis < to.size(); ++axis) {
    if (from[axis] != to[axis] && from[axis] != 1) return false;
  }
  return true;
}

inline float applied(cudnnPointwiseMode_t mode, float x, float b) {
  switch (mode) {
    case CUDNN_POINTWISE_ADD:
      return x + b;
    case CUDNN_POINTWISE_SUB:
      return x - b;
    case CUDNN_POINTWISE_MUL:
      return x * b;
    case CUDNN_POINTWISE_DIV:
      return x / b;
    case CUDNN_POINTWISE_EXP:
      return std::exp(x);
    case CUDNN_POINTWISE_LOG:
      return std::log(x);
    default:
      return std::numeric_limits<float>::quiet_NaN();
  }
}

inline std::string problem_with_pointwise(const Descriptor& operation, const Tensors& tensors) {
  const Descriptor& how = operation.node(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
  if (how.one<cudnnDataType_t>(CUDNN_ATTR_POINTWISE_MATH_PREC) != CUDNN_DATA_FLOAT) return "computed not in float32";
  const auto mode = how.one<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
  if (std::isnan(applied(mode, 1, 1))) return "a function that nobody asks for";
  const bool is_unary = mode == CUDNN_POINTWISE_EXP || mode == CUDNN_POINTWISE_LOG;
  if (tensors.size() != (is_unary ? 2U : 3U)) return "a function with another number of operands";
  for (const FakeTensor& tensor : tensors) {
    if (!broadcasts(tensor.dims, tensors.back().dims)) return "operands that do not broadcast";
  }
  return "";
}

inline void compute_pointwise(const Descriptor& operation, const Tensors& tensors) {
  const auto mode =
      operation.node(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR).one<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
  for_each(tensors.back().dims, [&](const IndexList& at) {
    tensors.back().put(at, applied(mode, tensors[0].at(at), tensors.size() == 3 ? tensors[1].at(at) : 0));
  });
}

inline std::string problem_with_reduction(const Descriptor& operation, const Tensors& tensors) {
  const Descriptor& how = operation.node(CUDNN_ATTR_OPERATION_REDUCTION_DESC);
  if (how.one<cudnnDataType_t>(CUDNN_ATTR_REDUCTION_COMP_TYPE) != CUDNN_DATA_FLOAT) return "reduced not in float32";
  return broadcasts(tensors[1].dims, tensors[0].dims) ? "" : "a result that is no reduction";
}

inline void compute_reduction(const Descriptor& operation, const Tensors& tensors) {
  const auto by =
      operation.node(CUDNN_ATTR_OPERATION_REDUCTION_DESC).one<cudnnReduceTensorOp_t>(CUDNN_ATTR_REDUCTION_OPERATOR);
  const bool is_sum = by == CUDNN_REDUCE_TENSOR_ADD;
  const FakeTensor &x = tensors[0], &y = tensors[1];
  for_each(y.dims, [&](const IndexList& at) { y.put(at, is_sum ? 0 : -std::numeric_limits<float>::infinity()); });
  for_each(x.dims,
           [&](const IndexList& at) { y.put(at, is_sum ? y.at(at) + x.at(at) : std::max(y.at(at), x.at(at))); });
}

inline std::string problem_with_matmul(const Descriptor& operation, const Tensors& tensors) {
  const Descriptor& how = operation.node(CUDNN_ATTR_OPERATION_MATMUL_DESC);
  if (how.one<cudnnDataType_t>(CUDNN_ATTR_MATMUL_COMP_TYPE) != CUDNN_DATA_FLOAT) return "sums not in float32";
  const IndexList &a = tensors[0].dims, &b = tensors[1].dims, &c = tensors[2].dims;
  if (a.size() != 4 || b.size() != 4 || c.size() != 4) return "matrices of samples and heads are known";
  const bool fits =
      a[0] == c[0] && b[0] == c[0] && a[1] == c[1] && c[1] % b[1] == 0 && a[2] == c[2] && a[3] == b[2] && b[3] == c[3];
  return fits ? "" : "matrices that do not fit";
}

inline void compute_matmul(const Descriptor&, const Tensors& tensors) {
  const FakeTensor &a = tensors[0], &b = tensors[1], &c = tensors[2];
  const int64_t shared = c.dims[1] / b.dims[1];
  for_each(c.dims, [&](const IndexList& at) {
    float sum = 0;
    for (int64_t i = 0; i < a.dims[3]; ++i) {
      sum += a.at({at[0], at[1], at[2], i}) * b.at({at[0], at[1] / shared, i, at[3]});
    }
    c.put(at, sum);
  });
}

// ---- All of them ----

struct OperationKind {
  cudnnBackendDescriptorType_t type;
  std::vector<cudnnBackendAttributeName_t> tensors;
  std::string (*problem)(const Descriptor&, const Tensors&);
  void (*compute)(const Descriptor&, const Tensors&);
};

inline const std::vector<OperationKind>& operation_kinds() {
  static const std::vector<OperationKind> kinds = [] {
    std::vector<OperationKind> all{
        {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
         {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
          CUDNN_ATTR_OPERATION_POINTWISE_YDESC},
         problem_with_pointwise,
         compute_pointwise},
        {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
         {CUDNN_ATTR_OPERATION_REDUCTION_XDESC, CUDNN_ATTR_OPERATION_REDUCTION_YDESC},
         problem_with_reduction,
         compute_reduction},
        {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
         {CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_BDESC, CUDNN_ATTR_OPERATION_MATMUL_CDESC},
         problem_with_matmul,
         compute_matmul}};
    for (const auto type : {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                            CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR}) {
      const ConvNames names = conv_names(type);
      all.push_back({type, {names.x, names.w, names.y}, problem_with_conv, compute_conv});
    }
    return all;
  }();
  return kinds;
}

// Null for what is no operation.
inline const OperationKind* kind_of(const Descriptor& descriptor) {
  for (const OperationKind& kind : operation_kinds()) {
    if (kind.type == descriptor.type) return &kind;
  }
  return nullptr;
}

// Those that are there: of a function of one operand, one is not.
inline Tensors tensors_of(const Descriptor& operation) {
  Tensors tensors;
  for (const auto name : kind_of(operation)->tensors) {
    if (operation.attributes.count(name) == 1) tensors.emplace_back(operation.node(name));
  }
  return tensors;
}

}  // namespace parallax::runtime::fake_cudnn

#endif
