// The devices as types: each primitive takes Queue<Device>, so that no symbol of one device can stand in for another's.
#pragma once

#include <cstddef>

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

// The device that this translation unit makes kernels for: sources of operators are compiled once for each.
#ifdef __CUDACC__
using CompiledDevice = Cuda;
#else
using CompiledDevice = Cpu;
#endif

// Where work is submitted and memory comes from. Specialised by queue_cpu.h and queue_cuda.h.
template <class Device>
class Queue;

// A payload being filled: what primitives write to.
struct MutableView {
  DType dtype = DType::undefined;
  Shape shape;
  std::byte* data = nullptr;

  int64_t element_count() const { return shape.element_count(); }
  size_t size_bytes() const { return byte_size(dtype, element_count()); }
  template <class T>
  T* as() const {
    PX_CHECK(dtype_of<T>() == dtype);
    return reinterpret_cast<T*>(data);
  }
  operator TensorView() const { return {dtype, shape, data, Device{}}; }
};

// The elements of a host view as T, without a bounds-carrying span: what inner loops want.
template <class T>
const T* data_as(const TensorView& view) {
  return view.as<T>().data();
}

}  // namespace parallax::runtime
