// SPDX-License-Identifier: Apache-2.0
// OpContext<Device>: an OpCall with the queue it runs on; and the row that says which function runs which operator.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <list>
#include <span>
#include <string_view>

#include "runtime/device/cpu/queue_cpu.h"
#include "runtime/device/elements.h"
#include "runtime/ops/op_call.h"

namespace parallax::runtime {

template <class Device>
class OpContext : public OpCall {
 public:
  OpContext(const Node& node, std::span<const OpInput> inputs, uint64_t seed, Queue<Device>& queue,
            CallResult* result = nullptr)
      : OpCall(node, inputs, seed, result), queue_(queue) {}

  Queue<Device>& queue() { return queue_; }

  // A fresh output to be filled.
  Result<MutableView> make_output(int64_t index, DType dtype, const Shape& shape) {
    Tensor tensor = PX_TRY(queue_.allocate(dtype, shape));
    const MutableView view = writable(tensor);
    set_output(index, std::move(tensor));
    return view;
  }

  Result<MutableView> make_output(int64_t index, DType dtype, Result<Shape> shape) {
    const Shape known = PX_TRY(std::move(shape));
    return make_output(index, dtype, known);
  }

  // A fresh one too, for a function that writes element i only after it has read element i of each input in
  // `candidates`: the output takes over the buffer of one of them when that one has the very same shape and size and
  // nobody else will look at it.
  Result<MutableView> make_output_over(int64_t index, DType dtype, const Shape& shape,
                                       std::initializer_list<int64_t> candidates) {
    for (int64_t candidate : candidates) {
      if (!may_overwrite(candidate)) continue;
      const Tensor& old = input(candidate);
      if (!(old.shape() == shape) || bits_of(old.dtype()) != bits_of(dtype)) continue;
      set_output(index, Tensor::wrap(dtype, shape, old.storage(), old.device()));
      return MutableView{dtype, shape, old.storage().get(), old.device()};
    }
    return make_output(index, dtype, shape);
  }

  // `values` where kernels can read them, for the span of the call.
  Result<Elements<Device, const double>> table(std::vector<double> values) {
    real_tables_.push_back(std::move(values));
    if constexpr (GpuDevice<Device>) {
      scratch_.push_back(PX_TRY(queue_.to_device(Tensor::vector<double>(real_tables_.back()))));
      return Elements<Device, const double>{reinterpret_cast<const double*>(scratch_.back().view().data)};
    } else {
      return Elements<Device, const double>{real_tables_.back().data()};
    }
  }
  Result<Elements<Device, const int64_t>> table(Ints values) {
    tables_.push_back(std::move(values));
    if constexpr (GpuDevice<Device>) {
      scratch_.push_back(PX_TRY(queue_.to_device(Tensor::vector<int64_t>(tables_.back()))));
      return Elements<Device, const int64_t>{reinterpret_cast<const int64_t*>(scratch_.back().view().data)};
    } else {
      return Elements<Device, const int64_t>{tables_.back().data()};
    }
  }

  // A result that decides what runs next, or is an output the host makes.
  Result<Tensor> on_host(const Tensor& tensor) {
    if constexpr (GpuDevice<Device>) {
      if (!tensor.device().is_host()) return queue_.to_host(tensor);
    }
    return tensor;
  }
  // The tensor where kernels can read it: for functions that are handed whole values.
  Result<Tensor> resident(const Tensor& tensor) {
    if constexpr (GpuDevice<Device>) {
      if (tensor.device().is_host()) return queue_.to_device(tensor);
    }
    return tensor;
  }

  // Memory for the span of the call.
  Result<MutableView> scratch(DType dtype, const Shape& shape) {
    scratch_.push_back(PX_TRY(queue_.allocate(dtype, shape)));
    return writable(scratch_.back());
  }
  Result<MutableView> scratch(DType dtype, Result<Shape> shape) {
    const Shape known = PX_TRY(std::move(shape));
    return scratch(dtype, known);
  }

 private:
  Queue<Device>& queue_;
  std::vector<Tensor> scratch_;
  std::list<Ints> tables_;
  std::list<std::vector<double>> real_tables_;
};

template <class Device>
using Kernel = Status (*)(OpContext<Device>& op);

constexpr uint32_t dtype_bit(DType dtype) { return uint32_t{1} << static_cast<uint32_t>(dtype); }
constexpr uint32_t dtype_bits(std::initializer_list<DType> dtypes) {
  uint32_t bits = 0;
  for (DType dtype : dtypes) bits |= dtype_bit(dtype);
  return bits;
}
constexpr uint32_t kFloats = dtype_bits({DType::float32, DType::float64, DType::float16, DType::bfloat16});
constexpr uint32_t kNarrowFloats = kFloats & ~dtype_bit(DType::float64);
constexpr uint32_t kBytes = dtype_bits({DType::int8, DType::uint8});
constexpr uint32_t kInts = dtype_bits(
    {DType::int8, DType::int16, DType::int32, DType::int64, DType::uint8, DType::uint16, DType::uint32, DType::uint64});
constexpr uint32_t kReals = kFloats | kInts;
constexpr uint32_t kBool = dtype_bit(DType::bool_);
constexpr uint32_t kFloat8 = dtype_bits(
    {DType::float8e4m3fn, DType::float8e4m3fnuz, DType::float8e5m2, DType::float8e5m2fnuz, DType::float8e8m0});
constexpr uint32_t kSubByte = dtype_bits({DType::int4, DType::uint4, DType::int2, DType::uint2, DType::float4e2m1});
constexpr uint32_t kComplex = dtype_bits({DType::complex64, DType::complex128});
constexpr uint32_t kMovable = kReals | kBool | kFloat8 | kComplex;  // whole bytes: can be moved without being read
constexpr uint32_t kAnyTensor = kMovable | kSubByte;
constexpr uint32_t kAnything = ~uint32_t{0};

// The kind of the arguments: tensors of a listed type, or whole values (sequences, optionals) that the function
// inspects.
enum class Arguments : uint8_t { tensors, values };

// The treatment of channels-last inputs (device/channels_last.h) by a function. Others are given them row-major.
struct OrderRule {
  // Element i of its outputs depends on the elements i of its broadcast inputs alone: it is given them in the order
  // they have, under the shape of that order, and its outputs have it too.
  bool is_elementwise = false;
  uint32_t channels_last_inputs = 0;  // a bit for each input that it takes channels last, marked so
};

// One operator on one device. Rows of an operator are tried in order; the first that fits runs.
template <class Device>
struct KernelRow {
  std::string_view op;
  uint32_t dtypes = kFloats;     // of the input `dtype_input`
  Kernel<Device> run = nullptr;  // null: not on this device
  int64_t since_first = 1;       // range of the schema's since-version
  int64_t since_last = INT64_MAX;
  int64_t dtype_input = 0;
  Arguments arguments = Arguments::tensors;
  std::string_view domain = "ai.onnx";
  bool (*supports)(const Node& node) = nullptr;  // null: all nodes
  uint32_t host_inputs = 0;                      // a bit for each input whose content the function reads on the host
  OrderRule order = {};
};

// The row of a function that reads these inputs on the host: shapes, axes, sizes. On a GPU they are copied there.
template <class Device>
constexpr KernelRow<Device> reads_on_host(std::initializer_list<int> inputs, KernelRow<Device> row) {
  for (int input : inputs) row.host_inputs |= uint32_t{1} << input;
  return row;
}

template <class Device>
constexpr KernelRow<Device> of_microsoft(KernelRow<Device> row) {
  row.domain = "com.microsoft";
  return row;
}

template <class Device>
constexpr KernelRow<Device> elementwise(KernelRow<Device> row) {
  row.order.is_elementwise = true;
  return row;
}

template <class Device, size_t kCount>
constexpr std::array<KernelRow<Device>, kCount> elementwise_rows(const KernelRow<Device> (&rows)[kCount]) {
  std::array<KernelRow<Device>, kCount> made{};
  for (size_t index = 0; index < kCount; ++index) made[index] = elementwise(rows[index]);
  return made;
}

template <class Device>
constexpr KernelRow<Device> takes_channels_last(std::initializer_list<int> inputs, KernelRow<Device> row) {
  for (int input : inputs) row.order.channels_last_inputs |= uint32_t{1} << input;
  return row;
}

// The function for a row that only the host has: GPU devices see no function, and skip the row.
#define PX_ON_HOST(function)                        \
  [] {                                              \
    if constexpr (GpuDevice<Device>)                \
      return static_cast<Kernel<Device>>(nullptr);  \
    else                                            \
      return static_cast<Kernel<Device>>(function); \
  }()

}  // namespace parallax::runtime
