// SPDX-License-Identifier: Apache-2.0
// Launches on a GPU: CUDA's own names for what kernels may use. Only nvcc reads it.
#pragma once

#include <cuda_runtime.h>

#include "runtime/device/cuda/matrix_units.cuh"
#include "runtime/device/cuda/queue_cuda.h"
#include "runtime/device/gpu/launch.h"

namespace parallax::runtime {
namespace gpu {

template <class T>
struct SharedCuda {
  T* data;
  __device__ T& operator[](int64_t index) const { return data[index]; }
  template <class W>
  __device__ W& at(int byte) const {
    return *reinterpret_cast<W*>(reinterpret_cast<std::byte*>(data) + byte);
  }
};

class LaunchCuda : public MatrixUnits {
 public:
  __device__ int64_t block() const { return blockIdx.x; }
  __device__ int64_t blocks() const { return gridDim.x; }
  __device__ int thread() const { return static_cast<int>(threadIdx.x); }
  __device__ int threads() const { return static_cast<int>(blockDim.x); }

  template <class T>
  __device__ SharedCuda<T> shared(int count) {
    extern __shared__ double2 block_memory[];
    used_ = (used_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    auto* data = reinterpret_cast<T*>(reinterpret_cast<std::byte*>(block_memory) + used_);
    used_ += static_cast<size_t>(count) * sizeof(T);
    return {data};
  }

  __device__ void barrier() { __syncthreads(); }
  template <class T>
  __device__ T shuffle_down(T value, int lanes) {
    return __shfl_down_sync(~0U, value, lanes);
  }
  template <class T>
  __device__ T shuffle_xor(T value, int lanes) {
    return __shfl_xor_sync(~0U, value, lanes);
  }
  __device__ uint32_t ballot(bool flag) { return __ballot_sync(~0U, flag); }
  __device__ void atomic_add(uint32_t* pointer, uint32_t value) { atomicAdd(pointer, value); }

 private:
  size_t used_ = 0;
};

template <class Kernel>
__global__ void run_kernel(const __grid_constant__ Kernel kernel) {
  LaunchCuda launch;
  kernel(launch);
}

// A kernel with kLeastBlocks gets as many registers as let so many blocks of its kThreads run on a multiprocessor.
template <class Kernel>
__global__ void __launch_bounds__(Kernel::kThreads, Kernel::kLeastBlocks)
    run_bounded_kernel(const __grid_constant__ Kernel kernel) {
  LaunchCuda launch;
  kernel(launch);
}

template <class Kernel>
auto entry_of() {
  if constexpr (requires { Kernel::kLeastBlocks; }) {
    return run_bounded_kernel<Kernel>;
  } else {
    return run_kernel<Kernel>;
  }
}

}  // namespace gpu

// Shared memory of a block: what a kernel has without being asked, and the most that it can be given.
constexpr size_t kSharedBytes = size_t{48} << 10;
inline int64_t most_shared_bytes(const Queue<Cuda>& queue) {
  int bytes = 0;
  const auto attribute = cudaDevAttrMaxSharedMemoryPerBlockOptin;
  if (cudaDeviceGetAttribute(&bytes, attribute, queue.options().device_index) != cudaSuccess) return kSharedBytes;
  return bytes;
}

// Every launch is checked here; the queue reports failures.
template <class Kernel>
void launch(Queue<Cuda>& queue, const Kernel& kernel, const gpu::LaunchSize& size) {
  const auto entry = gpu::entry_of<Kernel>();
  if (size.shared_bytes > kSharedBytes) {
    cudaFuncSetAttribute(entry, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(size.shared_bytes));
  }
  entry<<<static_cast<unsigned>(size.blocks), static_cast<unsigned>(size.threads), size.shared_bytes,
          static_cast<cudaStream_t>(queue.stream())>>>(kernel);
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) {
    queue.fail(cuda_error(Kernel::kName, error));
  }
}

}  // namespace parallax::runtime
