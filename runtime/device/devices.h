// SPDX-License-Identifier: Apache-2.0
// The devices as types: each primitive takes Queue<Device>, so that no symbol of one device can stand in for another's.
#pragma once

#include <cstddef>
#include <type_traits>

#include "inspector/tensor/tensor.h"

// A function that both compilers see: the host's always, nvcc's for the device.
#ifdef __CUDACC__
#define PX_HD __host__ __device__
#else
#define PX_HD
#endif

namespace parallax::runtime {

struct Cpu {};
struct Cuda {};
struct Emulated {};  // tests: a GPU's launch model run by the host

// A device whose memory the host does not read and whose loops are kernels (runtime/device/gpu).
template <class Device>
concept GpuDevice = std::is_same_v<Device, Cuda> || std::is_same_v<Device, Emulated>;

// The device that this translation unit makes kernels for: sources of operators are compiled once for each.
#if defined(PX_COMPILED_DEVICE)
using CompiledDevice = PX_COMPILED_DEVICE;
#elif defined(__CUDACC__)
using CompiledDevice = Cuda;
#else
using CompiledDevice = Cpu;
#endif

// The queue that work is submitted to and memory comes from. Specialized by queue_cpu.h, queue_cuda.h and the tests.
template <class Device>
class Queue;

// A payload being filled: what primitives write to.
struct MutableView {
  DType dtype = DType::undefined;
  Shape shape;
  std::byte* data = nullptr;
  parallax::Device device = {};

  int64_t element_count() const { return shape.element_count(); }
  size_t size_bytes() const { return byte_size(dtype, element_count()); }
  template <class T>
  T* as() const {
    PX_CHECK(dtype_of<T>() == dtype);
    return reinterpret_cast<T*>(data);
  }
  operator TensorView() const { return {dtype, shape, data, device}; }
};

// The payload of a tensor that the caller has just made, or alone owns.
inline MutableView writable(const Tensor& tensor) {
  return {tensor.dtype(), tensor.shape(), tensor.storage().get(), tensor.device()};
}

// The elements of a host view as T, without a bounds-carrying span: what inner loops want.
template <class T>
const T* data_as(const TensorView& view) {
  return view.as<T>().data();
}

// A payload without its shape: what loops and kernels are handed by value.
struct Source {
  const std::byte* data = nullptr;
  DType dtype = DType::undefined;
};
struct Target {
  std::byte* data = nullptr;
  DType dtype = DType::undefined;
  PX_HD explicit operator bool() const { return data != nullptr; }
};
inline Source source_of(const TensorView& view) { return {view.data, view.dtype}; }
inline Target target_of(const MutableView& view) { return {view.data, view.dtype}; }

}  // namespace parallax::runtime
