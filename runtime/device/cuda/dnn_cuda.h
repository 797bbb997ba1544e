// SPDX-License-Identifier: Apache-2.0
// The cuDNN state of a CUDA queue: its handle, and its plans. For sources of this folder alone.
#pragma once

#include "runtime/device/cuda/cudnn_graph.h"

#ifdef PX_WITH_CUDNN

#include <functional>

#include "runtime/device/cuda/queue_cuda.h"

namespace parallax::runtime {

struct CudaDnn {
  cudnnHandle_t handle = nullptr;
  CudnnPlans plans{512};

  CudaDnn() = default;
  CudaDnn(const CudaDnn&) = delete;
  CudaDnn& operator=(const CudaDnn&) = delete;
  ~CudaDnn();
};

// Kept once it works. After load_cudnn() went well.
Result<CudaDnn*> dnn_of(Queue<Cuda>& queue);
// The plan of `key`, which `choose` makes when it is asked for the first time: null where there is none. While the
// queue records nothing is made, and so refused.
Result<const CudnnPlan*> plan_of(Queue<Cuda>& queue, CudaDnn& dnn, CudnnKey key,
                                 const std::function<CudnnChoice(const CudnnTarget& target)>& choose);
// Memory for the plan to work in, until it is dropped: whatever is launched after that comes after it in the stream.
Result<Tensor> workspace_of(Queue<Cuda>& queue, const CudnnPlan& plan);

}  // namespace parallax::runtime

#endif
