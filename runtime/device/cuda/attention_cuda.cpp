// SPDX-License-Identifier: Apache-2.0
// Attention on CUDA by cuDNN.
#ifdef PX_WITH_CUDA

#include "runtime/device/cuda/attention_graph.h"
#include "runtime/device/cuda/dnn_cuda.h"
#include "runtime/device/cuda/queue_cuda.h"
#include "runtime/device/gpu/attention/library_attention.h"

namespace parallax::runtime {

#ifdef PX_WITH_CUDNN

template <>
Result<bool> library_attention(Queue<Cuda>& queue, const LibraryAttention& attention) {
  if (!load_cudnn().ok()) return false;  // describe_cuda says that it is not there
  const std::optional<AttentionOffsets> locations = suits_cudnn(attention, cudnn().cudnnGetVersion());
  if (!locations.has_value()) return false;
  CudaDnn* dnn = PX_TRY(dnn_of(queue));
  const CudnnPlan* plan = PX_TRY(plan_of(queue, *dnn, key_of(attention, *locations), [&](const CudnnTarget& target) {
    return choose_attention_plan(cudnn(), target, attention, *locations);
  }));
  if (plan == nullptr) return false;
  const int64_t rows = attention.samples * attention.heads * attention.problem.queries;
  const Tensor log_sums = PX_TRY(queue.allocate(DType::float32, Shape{rows}));
  const Tensor workspace = PX_TRY(workspace_of(queue, *plan));
  PX_TRY(run_attention_plan(*plan, dnn->handle, attention, *locations,
                            {log_sums.storage().get(), workspace.storage().get()}));
  return true;
}

#else

template <>
Result<bool> library_attention(Queue<Cuda>&, const LibraryAttention&) {
  return false;
}

#endif

}  // namespace parallax::runtime

#endif
