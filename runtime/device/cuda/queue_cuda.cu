// SPDX-License-Identifier: Apache-2.0
// The CUDA queue: device memory and copies.
#include <algorithm>
#include <atomic>
#include <iterator>

#include <cuda_runtime.h>

#include "runtime/device/cuda/copies_cuda.h"
#include "runtime/device/cuda/cublas.h"
#include "runtime/device/cuda/cudnn.h"
#include "runtime/device/cuda/launch_cuda.cuh"
#include "runtime/device/cuda/library_cuda.h"
#include "runtime/device/cuda/value_regions.h"
#include "runtime/device/gpu/copy_kernel.h"
#include "runtime/device/gpu/statistics_kernel.h"

namespace parallax::runtime {

struct CudaStream {
  cudaStream_t handle = nullptr;
  cudaMemPool_t pool = nullptr;  // its memory; what is freed stays there for the next run
  std::atomic<int64_t> live_bytes{0};
  std::atomic<int64_t> peak_bytes{0};
  ~CudaStream() {
    if (handle != nullptr) cudaStreamDestroy(handle);
    if (pool != nullptr) cudaMemPoolDestroy(pool);
  }
};

namespace {

// Errors of kernels, which any later call reports. All later work of the process fails likewise.
bool is_late(cudaError_t error) {
  constexpr cudaError_t kLate[] = {cudaErrorIllegalAddress,      cudaErrorLaunchFailure, cudaErrorMisalignedAddress,
                                   cudaErrorInvalidAddressSpace, cudaErrorInvalidPc,     cudaErrorIllegalInstruction,
                                   cudaErrorHardwareStackError,  cudaErrorLaunchTimeout, cudaErrorAssert};
  return std::ranges::find(kLate, error) != std::end(kLate);
}

}  // namespace

Error cuda_error(const char* what, int code) {
  const auto error = static_cast<cudaError_t>(code);
  std::string message = std::string("cuda: ") + what + ": " + cudaGetErrorString(error);
  if (error == cudaErrorMemoryAllocation) return out_of_memory(message);
  if (is_late(error) && !waits_for_each_node()) {
    message += std::string(", at or before this point: kernels run later than they are launched; ") + kWaitForEachNode +
               "=1 waits for each node, and names the one that fails";
  }
  return execution_error(message);
}

namespace {

// By a stream that is waited for: cudaMemcpy may return while pageable memory is still on its way, on the default
// stream, for which the kernels' stream does not wait.
cudaError_t copy_to_device_now(void* target, const TensorView& source) {
  cudaStream_t stream = nullptr;
  cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  if (error != cudaSuccess) return error;
  error = cudaMemcpyAsync(target, source.data, source.size_bytes(), cudaMemcpyHostToDevice, stream);
  if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
  cudaStreamDestroy(stream);
  return error;
}

// A pool that gives nothing back to the driver before it ends: with the default one every wait would.
cudaError_t make_pool(int device_index, cudaMemPool_t* pool) {
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = device_index;
  const cudaError_t error = cudaMemPoolCreate(pool, &properties);
  if (error != cudaSuccess) return error;
  uint64_t kept_bytes = UINT64_MAX;
  return cudaMemPoolSetAttribute(*pool, cudaMemPoolAttrReleaseThreshold, &kept_bytes);
}

void release(CudaStream& stream, std::byte* memory, int64_t bytes) {
  cudaFreeAsync(memory, stream.handle);
  stream.live_bytes -= bytes;
}

std::string version_text(int version, int major_unit, int minor_unit) {
  return std::to_string(version / major_unit) + "." + std::to_string(version % major_unit / minor_unit);
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

CudaDescription describe_cuda(int device_index) {
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, device_index) != cudaSuccess) return {"an unknown GPU", ""};
  int runtime_version = 0;
  cudaRuntimeGetVersion(&runtime_version);
  return {std::string(properties.name) + ", compute capability " + std::to_string(properties.major) + "." +
              std::to_string(properties.minor),
          "CUDA " + version_text(runtime_version, 1000, 10) + ", cuBLAS " + cublas_version() + ", cuDNN " +
              cudnn_version()};
}

Queue<Cuda>::Queue(const CudaQueueOptions& options, std::shared_ptr<CudaStream> stream,
                   std::unique_ptr<CudaLibrary> library)
    : GpuQueueBase(announcing_watch()), options_(options), stream_(std::move(stream)), library_(std::move(library)) {}

Result<std::unique_ptr<Queue<Cuda>>> Queue<Cuda>::create(const CudaQueueOptions& options) {
  const CudaDevices devices = cuda_devices();
  if (options.device_index < 0 || options.device_index >= devices.count) {
    return usage_error("cuda: " + (devices.count == 0 ? devices.problem
                                                      : "there is no GPU " + std::to_string(options.device_index) +
                                                            "; the last one is " + std::to_string(devices.count - 1)));
  }
  auto stream = std::make_shared<CudaStream>();
  cudaError_t error = cudaSetDevice(options.device_index);
  if (error == cudaSuccess) error = cudaStreamCreateWithFlags(&stream->handle, cudaStreamNonBlocking);
  if (error != cudaSuccess) return cuda_error("cannot make a stream", error);
  error = make_pool(options.device_index, &stream->pool);
  if (error != cudaSuccess) return cuda_error("cannot make a pool of memory", error);
  auto library = PX_TRY(open_library(stream->handle));
  return std::unique_ptr<Queue<Cuda>>(new Queue<Cuda>(options, std::move(stream), std::move(library)));
}

Queue<Cuda>::~Queue() { cudaStreamSynchronize(stream_->handle); }

void* Queue<Cuda>::stream() const { return stream_->handle; }
int64_t Queue<Cuda>::peak_bytes() const { return stream_->peak_bytes; }
int64_t Queue<Cuda>::live_bytes() const { return stream_->live_bytes; }
void Queue<Cuda>::reset_peak() { stream_->peak_bytes = stream_->live_bytes.load(); }

Result<std::byte*> Queue<Cuda>::take(int64_t bytes) {
  Status allowed = refused_in_recording("take memory");
  if (!allowed.ok()) return std::move(allowed).error();
  if (limit_bytes_ > 0 && live_bytes() + bytes > limit_bytes_) {
    return out_of_memory(std::to_string(bytes) + " bytes more would exceed the memory limit: " +
                         std::to_string(live_bytes()) + " of " + std::to_string(limit_bytes_) + " bytes are in use");
  }
  void* memory = nullptr;
  const cudaError_t error =
      cudaMallocFromPoolAsync(&memory, static_cast<size_t>(bytes), stream_->pool, stream_->handle);
  if (error != cudaSuccess) return cuda_error("cannot allocate", error);
  stream_->live_bytes += bytes;
  stream_->peak_bytes = std::max(stream_->peak_bytes.load(), stream_->live_bytes.load());
  return static_cast<std::byte*>(memory);
}

Result<Tensor> Queue<Cuda>::allocate(DType dtype, const Shape& shape) {
  if (dtype == DType::string) return unsupported("strings cannot be on a GPU; --fallback=reference runs such nodes");
  const parallax::Device device{parallax::Device::Kind::cuda, options_.device_index};
  const size_t bytes = std::max<size_t>(1, byte_size(dtype, shape.element_count()));
  if (auto location = memory_->location(bytes)) return Tensor::wrap(dtype, shape, std::move(location), device);
  if (is_recording()) return allocate_alongside(dtype, shape);
  const auto counted = static_cast<int64_t>(bytes);
  auto memory = take(counted);
  if (!memory.ok()) return std::move(memory).error();
  // Freed in the order of the stream it was made for, which lives as long as any of its memory.
  std::shared_ptr<const std::byte> owner(*memory, [stream = stream_, counted, runs = memory_,
                                                   request = memory_->note_request(bytes)](const std::byte* pointer) {
    release(*stream, const_cast<std::byte*>(pointer), counted);
    runs->note_return(request);
  });
  return Tensor::wrap(dtype, shape, std::move(owner), device);
}

std::shared_ptr<std::byte> Queue<Cuda>::make_block(int64_t bytes) {
  auto memory = take(bytes);
  if (!memory.ok()) return nullptr;
  announce_block(*memory, bytes);
  return {*memory, [stream = stream_, bytes](std::byte* pointer) {
            retract_block(pointer);
            release(*stream, pointer, bytes);
          }};
}

Result<Tensor> Queue<Cuda>::to_device(const Tensor& host) {
  if (is_recording()) {                                         // at once, and not as a part of what is recorded
    const auto planned = memory_->location(host.size_bytes());  // counts among the requests of the step
    auto tensor = allocate_alongside(host.dtype(), host.shape());
    if (!tensor.ok()) return tensor;
    const cudaError_t error = copy_to_device_now(tensor->storage().get(), host.view());
    if (error != cudaSuccess) return cuda_error("cannot copy to the device", error);
    return tensor;
  }
  auto tensor = allocate(host.dtype(), host.shape());
  if (!tensor.ok()) return tensor;
  Status copied = upload(host, *tensor);
  if (!copied.ok()) return std::move(copied).error();
  return tensor;
}

Result<Tensor> Queue<Cuda>::allocate_alongside(DType dtype, const Shape& shape) {
  const size_t bytes = std::max<size_t>(1, byte_size(dtype, shape.element_count()));
  Status allowed = check_own(static_cast<int64_t>(bytes));
  if (!allowed.ok()) return std::move(allowed).error();
  void* memory = nullptr;
  const cudaError_t error = cudaMalloc(&memory, bytes);
  if (error != cudaSuccess) return cuda_error("cannot allocate", error);
  const std::shared_ptr<const std::byte> owner(static_cast<const std::byte*>(memory), [](const std::byte* pointer) {
    cudaFree(const_cast<std::byte*>(pointer));
  });
  return keep(Tensor::wrap(dtype, shape, owner, {parallax::Device::Kind::cuda, options_.device_index}));
}

Status Queue<Cuda>::upload(const Tensor& host, const Tensor& device) {
  const cudaError_t error = cudaMemcpyAsync(device.storage().get(), host.view().data, host.size_bytes(),
                                            cudaMemcpyHostToDevice, stream_->handle);
  if (error != cudaSuccess) return cuda_error("cannot copy to the device", error);
  return {};
}

Result<Tensor> Queue<Cuda>::to_host(const Tensor& device) {
  Status allowed = refused_in_recording("bring values to the host");
  if (!allowed.ok()) return std::move(allowed).error();
  auto tensor = Tensor::allocate(device.dtype(), device.shape());
  if (!tensor.ok()) return tensor;
  const cudaError_t error = cudaMemcpyAsync(tensor->mutable_data(), device.view().data, device.size_bytes(),
                                            cudaMemcpyDeviceToHost, stream_->handle);
  if (error != cudaSuccess) return cuda_error("cannot copy to the host", error);
  Status done = synchronize();
  if (!done.ok()) return std::move(done).error();
  return tensor;
}

Status Queue<Cuda>::synchronize() {
  Status allowed = refused_in_recording("wait for the device");
  if (!allowed.ok()) return allowed;
  const cudaError_t error = cudaStreamSynchronize(stream_->handle);
  if (error != cudaSuccess) return cuda_error("the stream failed", error);
  return {};
}

namespace {

struct CudaRecording final : Recording {
  ~CudaRecording() override {
    if (executable != nullptr) cudaGraphExecDestroy(executable);
    if (graph != nullptr) cudaGraphDestroy(graph);
  }
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
};

}  // namespace

Status Queue<Cuda>::begin_recording() {
  auto locations = allocate(DType::int64, Shape{kMostChecks});
  if (!locations.ok()) return std::move(locations).error();
  set_checks(std::move(*locations));
  const cudaError_t error = cudaStreamBeginCapture(stream_->handle, cudaStreamCaptureModeRelaxed);
  if (error != cudaSuccess) return cuda_error("cannot record", error);
  set_recording(true);
  return {};
}

Result<std::unique_ptr<Recording>> Queue<Cuda>::end_recording() {
  set_recording(false);
  auto recording = std::make_unique<CudaRecording>();
  cudaError_t error = cudaStreamEndCapture(stream_->handle, &recording->graph);
  if (error == cudaSuccess) error = cudaGraphInstantiate(&recording->executable, recording->graph, 0);
  if (error == cudaSuccess) return std::unique_ptr<Recording>(std::move(recording));
  cudaGetLastError();  // reported here, and not by the next launch
  return cuda_error("cannot record", error);
}

Status Queue<Cuda>::replay(const Recording& recording) {
  const cudaError_t error = cudaGraphLaunch(static_cast<const CudaRecording&>(recording).executable, stream_->handle);
  if (error != cudaSuccess) return cuda_error("cannot replay", error);
  return {};
}

void copy_bytes(Queue<Cuda>& queue, std::byte* target, const std::byte* source, size_t bytes) {
  const cudaError_t error =
      cudaMemcpyAsync(target, source, bytes, cudaMemcpyDeviceToDevice, static_cast<cudaStream_t>(queue.stream()));
  if (error != cudaSuccess) queue.fail(cuda_error("cannot copy on the device", error));
}

Result<Tensor> chunk_statistics(Queue<Cuda>& queue, const TensorView& view, ElementOrder order) {
  return chunk_statistics_by_kernel(queue, view, order);
}

void copy_strided(Queue<Cuda>& queue, int64_t bytes_per_element, const Ints& dims, const StridedTarget& target,
                  const StridedSource& source) {
  gpu::copy_strided_by_kernel(queue, bytes_per_element, dims, target, source);
}

void choose(Queue<Cuda>& queue, const MutableView& out, const std::array<TensorView, 3>& in) {
  gpu::choose_by_kernel(queue, out, in);
}

void fill(Queue<Cuda>& queue, const MutableView& out, const std::byte* element) {
  gpu::fill_by_kernel(queue, out, element);
}

template <class C>
void convert_elements(Queue<Cuda>& queue, const MutableView& out, const TensorView& in) {
  gpu::map_by_kernel<C, C>(queue, Same{}, out, std::array<TensorView, 1>{in});
}
template void convert_elements<float>(Queue<Cuda>& queue, const MutableView& out, const TensorView& in);
template void convert_elements<double>(Queue<Cuda>& queue, const MutableView& out, const TensorView& in);
template void convert_elements<int64_t>(Queue<Cuda>& queue, const MutableView& out, const TensorView& in);
template void convert_elements<uint64_t>(Queue<Cuda>& queue, const MutableView& out, const TensorView& in);
template void convert_elements<uint8_t>(Queue<Cuda>& queue, const MutableView& out, const TensorView& in);

}  // namespace parallax::runtime
