// SPDX-License-Identifier: Apache-2.0
// The handle and the plans of cuDNN, made when they are first asked for.
#if defined(PX_WITH_CUDA) && defined(PX_WITH_CUDNN)

#include "runtime/device/cuda/dnn_cuda.h"

#include <cuda_runtime.h>

#include "runtime/device/cuda/library_cuda.h"

namespace parallax::runtime {
namespace {

Status succeeded(cudnnStatus_t status) {
  if (status == CUDNN_STATUS_SUCCESS) return {};
  return execution_error(std::string("cuda: cuDNN: ") + cudnn().cudnnGetErrorString(status));
}

}  // namespace

CudaDnn::~CudaDnn() {
  if (handle != nullptr) cudnn().cudnnDestroy(handle);
}

Result<CudaDnn*> dnn_of(Queue<Cuda>& queue) {
  CudaLibrary& library = queue.library();
  if (library.dnn == nullptr) {
    PX_TRY(queue.refused_in_recording("start cuDNN"));
    auto made = std::make_shared<CudaDnn>();
    PX_TRY_CONTEXT("cannot start cuDNN", succeeded(cudnn().cudnnCreate(&made->handle)));
    PX_TRY_CONTEXT("cannot start cuDNN",
                   succeeded(cudnn().cudnnSetStream(made->handle, static_cast<cudaStream_t>(queue.stream()))));
    library.dnn = std::move(made);
  }
  return library.dnn.get();
}

Result<const CudnnPlan*> plan_of(Queue<Cuda>& queue, CudaDnn& dnn, CudnnKey key,
                                 const std::function<CudnnChoice(const CudnnTarget& target)>& choose) {
  if (const CudnnChoice* known = dnn.plans.find(key, queue.is_recording())) return known->plan.get();
  PX_TRY(queue.refused_in_recording("make a plan of cuDNN"));
  // The oldest plan may be dropped, whose kernels have to have run.
  if (dnn.plans.is_full()) PX_TRY(queue.synchronize());
  CudnnChoice made = choose({.handle = dnn.handle});
  cudaGetLastError();  // errors of refused engines must not show at the next launch
  return dnn.plans.keep(std::move(key), std::move(made))->plan.get();
}

Result<Tensor> workspace_of(Queue<Cuda>& queue, const CudnnPlan& plan) {
  const int64_t bytes = plan.workspace_bytes();
  return bytes == 0 ? Result<Tensor>(Tensor()) : queue.allocate(DType::uint8, Shape{bytes});
}

}  // namespace parallax::runtime

#endif
