// The CUDA queue: device memory, copies, fills.
#include <cstring>

#include "runtime/device/cuda_primitives.cuh"
#include "runtime/device/queue_cuda.h"

namespace parallax::runtime {
namespace {

Error cuda_error(const char* what, cudaError_t error) {
  const std::string message = std::string("cuda: ") + what + ": " + cudaGetErrorString(error);
  return error == cudaErrorMemoryAllocation ? out_of_memory(message) : execution_error(message);
}

struct Nowhere {  // an index map without sources: all fill
  __device__ int64_t operator()(int64_t) const { return -1; }
};

struct Wide {
  uint64_t words[2];
};

template <class T>
Status fill_as(Queue<Cuda>& queue, const MutableView& out, const std::byte* host_element) {
  T element{};
  if (host_element != nullptr) std::memcpy(&element, host_element, sizeof(T));
  return cuda::index_map<T>(queue, Nowhere{}, out, nullptr, element);
}

}  // namespace

CudaDevices cuda_devices() {
  CudaDevices devices;
  const cudaError_t error = cudaGetDeviceCount(&devices.count);
  if (error == cudaErrorInsufficientDriver || error == cudaErrorNoDevice) {
    devices.count = 0;
    devices.problem = error == cudaErrorNoDevice ? "no NVIDIA GPU found" : "no NVIDIA driver found";
  } else if (error != cudaSuccess) {
    devices.count = 0;
    devices.problem = cudaGetErrorString(error);
  }
  return devices;
}

Result<std::unique_ptr<Queue<Cuda>>> Queue<Cuda>::create(int device_index) {
  const CudaDevices devices = cuda_devices();
  if (device_index < 0 || device_index >= devices.count) {
    return usage_error("cuda: " +
                       (devices.count == 0 ? devices.problem : "there is no GPU " + std::to_string(device_index)));
  }
  cudaStream_t stream = nullptr;
  cudaError_t error = cudaSetDevice(device_index);
  if (error == cudaSuccess) error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  if (error != cudaSuccess) return cuda_error("cannot make a stream", error);
  return std::unique_ptr<Queue<Cuda>>(new Queue<Cuda>(device_index, stream));
}

Queue<Cuda>::~Queue() {
  cudaStreamSynchronize(static_cast<cudaStream_t>(stream_));
  cudaStreamDestroy(static_cast<cudaStream_t>(stream_));
}

Result<Tensor> Queue<Cuda>::allocate(DType dtype, const Shape& shape) {
  if (dtype == DType::string) return unsupported("strings do not lie on a GPU");
  void* memory = nullptr;
  const size_t bytes = byte_size(dtype, shape.element_count());
  const cudaError_t error = cudaMallocAsync(&memory, bytes == 0 ? 1 : bytes, static_cast<cudaStream_t>(stream_));
  if (error != cudaSuccess) return cuda_error("cannot allocate", error);
  // Freed in the order of the default stream: the owner may outlive the queue.
  std::shared_ptr<const std::byte> owner(static_cast<const std::byte*>(memory), [](const std::byte* pointer) {
    cudaFreeAsync(const_cast<std::byte*>(pointer), nullptr);
  });
  return Tensor::wrap(dtype, shape, std::move(owner), {Device::Kind::cuda, device_index_});
}

Result<Tensor> Queue<Cuda>::to_device(const Tensor& host) {
  auto tensor = allocate(host.dtype(), host.shape());
  if (!tensor.ok()) return tensor;
  const cudaError_t error = cudaMemcpyAsync(tensor->storage().get(), host.view().data, host.size_bytes(),
                                            cudaMemcpyHostToDevice, static_cast<cudaStream_t>(stream_));
  if (error != cudaSuccess) return cuda_error("cannot copy to the device", error);
  return tensor;
}

Result<Tensor> Queue<Cuda>::to_host(const Tensor& device) {
  auto tensor = Tensor::allocate(device.dtype(), device.shape());
  if (!tensor.ok()) return tensor;
  const cudaError_t error = cudaMemcpyAsync(tensor->mutable_data(), device.view().data, device.size_bytes(),
                                            cudaMemcpyDeviceToHost, static_cast<cudaStream_t>(stream_));
  if (error != cudaSuccess) return cuda_error("cannot copy to the host", error);
  Status done = synchronize();
  if (!done.ok()) return std::move(done).error();
  return tensor;
}

Status Queue<Cuda>::synchronize() {
  const cudaError_t error = cudaStreamSynchronize(static_cast<cudaStream_t>(stream_));
  if (error != cudaSuccess) return cuda_error("the stream failed", error);
  return {};
}

Status fill(Queue<Cuda>& queue, const MutableView& out, const std::byte* host_element) {
  switch (bits_of(out.dtype)) {
    case 8:
      return fill_as<uint8_t>(queue, out, host_element);
    case 16:
      return fill_as<uint16_t>(queue, out, host_element);
    case 32:
      return fill_as<uint32_t>(queue, out, host_element);
    case 64:
      return fill_as<uint64_t>(queue, out, host_element);
    case 128:
      return fill_as<Wide>(queue, out, host_element);
    default:
      return unsupported("packed types have no fill on a GPU");
  }
}

Status copy_bytes(Queue<Cuda>& queue, std::byte* target, const std::byte* source, size_t bytes) {
  const cudaError_t error =
      cudaMemcpyAsync(target, source, bytes, cudaMemcpyDeviceToDevice, static_cast<cudaStream_t>(queue.stream()));
  if (error != cudaSuccess) return cuda_error("cannot copy on the device", error);
  return {};
}

}  // namespace parallax::runtime
