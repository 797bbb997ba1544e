// SPDX-License-Identifier: Apache-2.0
// Queue<Cuda>: one stream of one GPU. Memory comes from the driver's pool in stream order; nothing here waits but
// synchronize() and copies to the host. Names no CUDA type, so that the host's compiler can read it.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "runtime/device/cpu/copy.h"
#include "runtime/device/cpu/products/gemm.h"
#include "runtime/device/gpu/queue_gpu.h"

namespace parallax::runtime {

// How many GPUs the driver offers, and why it offers none.
struct CudaDevices {
  int count = 0;
  std::string problem;  // "no NVIDIA driver found"; empty when count > 0
};
CudaDevices cuda_devices();

struct CudaDescription {
  std::string name;      // "NVIDIA H100 PCIe, compute capability 9.0"
  std::string versions;  // "CUDA 13.0, cuBLAS 13.0.2, cuDNN 9.19.0"
};
CudaDescription describe_cuda(int device_index);

struct CudaQueueOptions {
  int device_index = 0;
  bool tf32 = false;  // products of float32 may round their operands to TF32
};

// "cuda: WHAT: ..." with the text of a cudaError_t. Where a kernel that was launched before may be to blame, it tells
// so, and how to find that kernel.
Error cuda_error(const char* what, int error);

struct CudaStream;   // a cudaStream_t, destroyed when the last memory that is freed in its order has gone
struct CudaLibrary;  // handles of cuBLAS

template <>
class Queue<Cuda> : public GpuQueueBase {
 public:
  static constexpr int kThreads = 256;               // of a block
  static constexpr int64_t kMaxBlocks = 4096;        // of a launch: threads then take several items each
  static constexpr int64_t kMostNarrow = INT32_MAX;  // elements of a launch that counts in 32 bits

  // Errors: usage, when there is no such device.
  static Result<std::unique_ptr<Queue>> create(const CudaQueueOptions& options);
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // A tensor on the device, uninitialized; its memory goes back to the pool when its last owner lets go.
  // In a planned run it is stored where the plan says.
  Result<Tensor> allocate(DType dtype, const Shape& shape);
  // For planned runs; null where it would break the limit, or the driver has no more.
  std::shared_ptr<std::byte> make_block(int64_t bytes);

  Result<Tensor> to_device(const Tensor& host);
  Result<Tensor> to_host(const Tensor& device);
  Status upload(const Tensor& host, const Tensor& device);  // into memory that is there
  Status synchronize();

  // As a CUDA graph. end_recording also where an error came between.
  Status begin_recording();
  Result<std::unique_ptr<Recording>> end_recording();
  Status replay(const Recording& recording);

  void set_limit(int64_t bytes) { limit_bytes_ = bytes; }  // of live tensors, weights included; 0: none
  bool has_limit() const { return limit_bytes_ > 0; }
  int64_t peak_bytes() const;
  int64_t live_bytes() const;
  void reset_peak();

  void* stream() const;  // a cudaStream_t
  CudaLibrary& library() { return *library_; }
  const CudaQueueOptions& options() const { return options_; }

 private:
  Queue(const CudaQueueOptions& options, std::shared_ptr<CudaStream> stream, std::unique_ptr<CudaLibrary> library);
  Result<std::byte*> take(int64_t bytes);                              // counted as live
  Result<Tensor> allocate_alongside(DType dtype, const Shape& shape);  // for the recording

  CudaQueueOptions options_;
  int64_t limit_bytes_ = 0;
  std::shared_ptr<CudaStream> stream_;
  std::unique_ptr<CudaLibrary> library_;
};

// Primitives that are calls of the driver or of cuBLAS.
void copy_bytes(Queue<Cuda>& queue, std::byte* target, const std::byte* source, size_t bytes);
// Kernels that know no functor (gpu/copy_kernel.h).
void copy_strided(Queue<Cuda>& queue, int64_t bytes_per_element, const Ints& dims, const StridedTarget& target,
                  const StridedSource& source);
void choose(Queue<Cuda>& queue, const MutableView& out, const std::array<TensorView, 3>& in);
void fill(Queue<Cuda>& queue, const MutableView& out, const std::byte* element);
// map of Same by way of C: float, double, int64_t, uint64_t or uint8_t (gpu/map_kernel.h).
template <class C>
void convert_elements(Queue<Cuda>& queue, const MutableView& out, const TensorView& in);
Status gemm(Queue<Cuda>& queue, const GemmProblem& problem, const float* a, const float* b, float* c);
Status gemm(Queue<Cuda>& queue, const GemmProblem& problem, const double* a, const double* b, double* c);

}  // namespace parallax::runtime
