// SPDX-License-Identifier: Apache-2.0
// Convolutions on CUDA by cuDNN.
#ifdef PX_WITH_CUDA

#include "runtime/device/cuda/conv_graph.h"
#include "runtime/device/cuda/dnn_cuda.h"
#include "runtime/device/cuda/queue_cuda.h"
#include "runtime/device/gpu/library_conv.h"

namespace parallax::runtime {

#ifdef PX_WITH_CUDNN

template <>
Result<bool> library_conv(Queue<Cuda>& queue, const LibraryConv& conv) {
  if (!load_cudnn().ok() || !suits_cudnn(conv)) return false;  // describe_cuda says that it is not there
  CudaDnn* dnn = PX_TRY(dnn_of(queue));
  const bool tf32 = queue.options().tf32;
  const CudnnPlan* plan = PX_TRY(plan_of(queue, *dnn, key_of(conv, tf32), [&](const CudnnTarget& target) {
    return choose_conv_plan(cudnn(), target, conv, tf32);
  }));
  if (plan == nullptr) return false;
  const Tensor workspace = PX_TRY(workspace_of(queue, *plan));
  PX_TRY(run_conv_plan(*plan, dnn->handle, conv, workspace.storage().get()));
  return true;
}

#else

template <>
Result<bool> library_conv(Queue<Cuda>&, const LibraryConv&) {
  return false;
}

#endif

}  // namespace parallax::runtime

#endif
