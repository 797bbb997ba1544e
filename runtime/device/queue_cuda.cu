// The CUDA queue: device memory, copies, and the matrix products of cuBLAS.
#include <atomic>

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include "runtime/device/gpu/copy_kernel.h"
#include "runtime/device/gpu/launch_cuda.cuh"
#include "runtime/device/queue_cuda.h"

namespace parallax::runtime {

struct CudaStream {
  cudaStream_t handle = nullptr;
  std::atomic<int64_t> live_bytes{0};
  std::atomic<int64_t> peak_bytes{0};
  ~CudaStream() {
    if (handle != nullptr) cudaStreamDestroy(handle);
  }
};

struct CudaLibrary {
  cublasHandle_t handle = nullptr;
  ~CudaLibrary() {
    if (handle != nullptr) cublasDestroy(handle);
  }
};

namespace {

Error cuda_error(const char* what, cudaError_t error) {
  const std::string message = std::string("cuda: ") + what + ": " + cudaGetErrorString(error);
  return error == cudaErrorMemoryAllocation ? out_of_memory(message) : execution_error(message);
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
  int blas[3] = {};
  for (int part = 0; part < 3; ++part) {
    cublasGetProperty(static_cast<libraryPropertyType>(MAJOR_VERSION + part), &blas[part]);
  }
  return {std::string(properties.name) + ", compute capability " + std::to_string(properties.major) + "." +
              std::to_string(properties.minor),
          "CUDA " + version_text(runtime_version, 1000, 10) + ", cuBLAS " + std::to_string(blas[0]) + "." +
              std::to_string(blas[1]) + "." + std::to_string(blas[2])};
}

Queue<Cuda>::Queue(const CudaQueueOptions& options, std::shared_ptr<CudaStream> stream,
                   std::unique_ptr<CudaLibrary> library)
    : options_(options), stream_(std::move(stream)), library_(std::move(library)) {}

Result<std::unique_ptr<Queue<Cuda>>> Queue<Cuda>::create(const CudaQueueOptions& options) {
  const CudaDevices devices = cuda_devices();
  if (options.device_index < 0 || options.device_index >= devices.count) {
    return usage_error(
        "cuda: " + (devices.count == 0 ? devices.problem : "there is no GPU " + std::to_string(options.device_index)));
  }
  auto stream = std::make_shared<CudaStream>();
  cudaError_t error = cudaSetDevice(options.device_index);
  if (error == cudaSuccess) error = cudaStreamCreateWithFlags(&stream->handle, cudaStreamNonBlocking);
  if (error != cudaSuccess) return cuda_error("cannot make a stream", error);
  auto library = std::make_unique<CudaLibrary>();
  cublasStatus_t status = cublasCreate(&library->handle);
  if (status == CUBLAS_STATUS_SUCCESS) status = cublasSetStream(library->handle, stream->handle);
  if (status != CUBLAS_STATUS_SUCCESS) {
    return execution_error(std::string("cuda: cannot start cuBLAS: ") + cublasGetStatusString(status));
  }
  return std::unique_ptr<Queue<Cuda>>(new Queue<Cuda>(options, std::move(stream), std::move(library)));
}

Queue<Cuda>::~Queue() { cudaStreamSynchronize(stream_->handle); }

void* Queue<Cuda>::stream() const { return stream_->handle; }
int64_t Queue<Cuda>::peak_bytes() const { return stream_->peak_bytes; }
int64_t Queue<Cuda>::live_bytes() const { return stream_->live_bytes; }
void Queue<Cuda>::reset_peak() { stream_->peak_bytes = stream_->live_bytes.load(); }

Result<Tensor> Queue<Cuda>::allocate(DType dtype, const Shape& shape) {
  if (dtype == DType::string) return unsupported("strings do not lie on a GPU; --fallback=reference runs such nodes");
  const size_t bytes = std::max<size_t>(1, byte_size(dtype, shape.element_count()));
  const auto counted = static_cast<int64_t>(bytes);
  if (limit_bytes_ > 0 && live_bytes() + counted > limit_bytes_) {
    return out_of_memory(std::to_string(bytes) + " bytes more would exceed the memory limit: " +
                         std::to_string(live_bytes()) + " of " + std::to_string(limit_bytes_) + " bytes are in use");
  }
  void* memory = nullptr;
  const cudaError_t error = cudaMallocAsync(&memory, bytes, stream_->handle);
  if (error != cudaSuccess) return cuda_error("cannot allocate", error);
  stream_->live_bytes += counted;
  stream_->peak_bytes = std::max(stream_->peak_bytes.load(), stream_->live_bytes.load());
  // Freed in the order of the stream it was made for, which lives as long as any of its memory.
  std::shared_ptr<const std::byte> owner(static_cast<const std::byte*>(memory),
                                         [stream = stream_, counted](const std::byte* pointer) {
                                           cudaFreeAsync(const_cast<std::byte*>(pointer), stream->handle);
                                           stream->live_bytes -= counted;
                                         });
  return Tensor::wrap(dtype, shape, std::move(owner), {parallax::Device::Kind::cuda, options_.device_index});
}

Result<Tensor> Queue<Cuda>::to_device(const Tensor& host) {
  auto tensor = allocate(host.dtype(), host.shape());
  if (!tensor.ok()) return tensor;
  const cudaError_t error = cudaMemcpyAsync(tensor->storage().get(), host.view().data, host.size_bytes(),
                                            cudaMemcpyHostToDevice, stream_->handle);
  if (error != cudaSuccess) return cuda_error("cannot copy to the device", error);
  return tensor;
}

Result<Tensor> Queue<Cuda>::to_host(const Tensor& device) {
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
  const cudaError_t error = cudaStreamSynchronize(stream_->handle);
  if (error != cudaSuccess) return cuda_error("the stream failed", error);
  return {};
}

void copy_bytes(Queue<Cuda>& queue, std::byte* target, const std::byte* source, size_t bytes) {
  const cudaError_t error =
      cudaMemcpyAsync(target, source, bytes, cudaMemcpyDeviceToDevice, static_cast<cudaStream_t>(queue.stream()));
  if (error != cudaSuccess) queue.fail(cuda_error("cannot copy on the device", error));
}

void copy_region(Queue<Cuda>& queue, int64_t bytes_per_element, const Ints& dims, const StridedTarget& target,
                 const StridedSource& source) {
  copy_strided(queue, bytes_per_element, dims, target, source);
}

namespace {

// The distance between neighbours where the matrices of a batch stand evenly apart, else -1.
int64_t even_distance(const Ints& offsets) {
  const int64_t distance = offsets.size() < 2 ? 0 : offsets[1] - offsets[0];
  for (int64_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] - offsets[i - 1] != distance) return -1;
  }
  return distance < 0 ? -1 : distance;
}

struct GemmTypes {
  cudaDataType_t storage;
  cublasComputeType_t compute;
};

// cuBLAS counts columns first: row-major c = a b is its c^T = b^T a^T.
template <class C>
Status multiply(Queue<Cuda>& queue, const GemmProblem& problem, const GemmTypes& types, const C* a, const C* b, C* c) {
  if (problem.m * problem.n * problem.batch() == 0) return {};
  const int64_t a_distance = even_distance(problem.a_offsets);
  const int64_t b_distance = even_distance(problem.b_offsets);
  const bool even = a_distance >= 0 && b_distance >= 0;
  const C alpha = static_cast<C>(problem.alpha);
  const C beta = static_cast<C>(problem.beta);
  const int64_t calls = even ? 1 : problem.batch();
  const auto leading = [](int64_t columns) { return std::max<int64_t>(1, columns); };
  for (int64_t i = 0; i < calls; ++i) {
    const cublasStatus_t status = cublasGemmStridedBatchedEx_64(
        queue.library().handle, problem.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N,
        problem.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, problem.n, problem.m, problem.k, &alpha,
        b + problem.b_offsets[i], types.storage, leading(problem.transpose_b ? problem.k : problem.n), b_distance,
        a + problem.a_offsets[i], types.storage, leading(problem.transpose_a ? problem.m : problem.k), a_distance,
        &beta, c + i * problem.m * problem.n, types.storage, problem.n, problem.m * problem.n,
        even ? problem.batch() : 1, types.compute, CUBLAS_GEMM_DEFAULT);
    if (status != CUBLAS_STATUS_SUCCESS) {
      return execution_error(std::string("cuda: cuBLAS: ") + cublasGetStatusString(status));
    }
  }
  return {};
}

}  // namespace

Status gemm(Queue<Cuda>& queue, const GemmProblem& problem, const float* a, const float* b, float* c) {
  const bool tf32 = queue.options().tf32;
  return multiply(queue, problem, {CUDA_R_32F, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F}, a, b, c);
}

Status gemm(Queue<Cuda>& queue, const GemmProblem& problem, const double* a, const double* b, double* c) {
  return multiply(queue, problem, {CUDA_R_64F, CUBLAS_COMPUTE_64F}, a, b, c);
}

}  // namespace parallax::runtime
