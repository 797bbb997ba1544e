// Queue<Cuda>: one stream of one GPU. Memory comes from the driver's pool in stream order; nothing here waits but
// synchronize() and copies to the host. Names no CUDA type, so that the host's compiler can read it.
#pragma once

#include <memory>
#include <string>

#include "runtime/device/devices.h"

namespace parallax::runtime {

// How many GPUs the driver offers, and why it offers none.
struct CudaDevices {
  int count = 0;
  std::string problem;  // "no NVIDIA driver found"; empty when count > 0
};
CudaDevices cuda_devices();

template <>
class Queue<Cuda> {
 public:
  // Errors: usage, when there is no such device.
  static Result<std::unique_ptr<Queue>> create(int device_index);
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // A tensor on the device, uninitialised; its memory goes back to the pool when its last owner lets go.
  Result<Tensor> allocate(DType dtype, const Shape& shape);

  Result<Tensor> to_device(const Tensor& host);
  Result<Tensor> to_host(const Tensor& device);
  Status synchronize();

  void* stream() const { return stream_; }  // a cudaStream_t
  int device_index() const { return device_index_; }

 private:
  Queue(int device_index, void* stream) : device_index_(device_index), stream_(stream) {}

  int device_index_;
  void* stream_;
};

// Primitives whose work does not depend on a functor.
Status fill(Queue<Cuda>& queue, const MutableView& out, const std::byte* host_element);  // null: zero
Status copy_bytes(Queue<Cuda>& queue, std::byte* target, const std::byte* source, size_t bytes);

}  // namespace parallax::runtime
