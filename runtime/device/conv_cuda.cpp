// Convolutions on CUDA by cuDNN. Plans are made once for each shape and kept with the queue.
#ifdef PX_WITH_CUDA

#include "runtime/device/conv_graph.h"
#include "runtime/device/library_conv.h"
#include "runtime/device/queue_cuda.h"

#ifdef PX_WITH_CUDNN

#include <cuda_runtime.h>

#include "runtime/device/library_cuda.h"

namespace parallax::runtime {

struct CudaConvolutions {
  cudnnHandle_t handle = nullptr;
  CudnnPlans plans{512};

  CudaConvolutions() = default;
  CudaConvolutions(const CudaConvolutions&) = delete;
  CudaConvolutions& operator=(const CudaConvolutions&) = delete;
  ~CudaConvolutions() {
    if (handle != nullptr) cudnn().cudnnDestroy(handle);
  }
};

namespace {

Status checked(cudnnStatus_t status) {
  if (status == CUDNN_STATUS_SUCCESS) return {};
  return execution_error(std::string("cuda: cuDNN: ") + cudnn().cudnnGetErrorString(status));
}

// Kept once it works.
Result<CudaConvolutions*> convolutions_of(Queue<Cuda>& queue) {
  CudaLibrary& library = queue.library();
  if (library.convolutions == nullptr) {
    PX_TRY(queue.refused_in_recording("start cuDNN"));
    auto made = std::make_shared<CudaConvolutions>();
    PX_TRY_CONTEXT("cannot start cuDNN", checked(cudnn().cudnnCreate(&made->handle)));
    PX_TRY_CONTEXT("cannot start cuDNN",
                   checked(cudnn().cudnnSetStream(made->handle, static_cast<cudaStream_t>(queue.stream()))));
    library.convolutions = std::move(made);
  }
  return library.convolutions.get();
}

Result<const CudnnChoice*> choice_for(Queue<Cuda>& queue, CudaConvolutions& convolutions, const LibraryConv& conv) {
  const bool tf32 = queue.options().tf32;
  CudnnKey key = key_of(conv, tf32);
  if (const CudnnChoice* known = convolutions.plans.find(key, queue.is_recording())) return known;
  PX_TRY(queue.refused_in_recording("make a plan of cuDNN"));
  CudnnChoice made = choose_conv_plan(cudnn(), {.handle = convolutions.handle}, conv, tf32);
  cudaGetLastError();  // what engines that were refused left behind is not for the next launch to tell
  return convolutions.plans.keep(std::move(key), std::move(made));
}

}  // namespace

template <>
Result<bool> library_conv(Queue<Cuda>& queue, const LibraryConv& conv) {
  if (!load_cudnn().ok() || !suits_cudnn(conv)) return false;  // describe_cuda says that it is not there
  CudaConvolutions* convolutions = PX_TRY(convolutions_of(queue));
  const CudnnChoice* choice = PX_TRY(choice_for(queue, *convolutions, conv));
  if (choice->plan == nullptr) return false;
  const int64_t bytes = choice->plan->workspace_bytes();
  Tensor workspace;  // whatever is launched after its end comes behind in the stream
  if (bytes > 0) workspace = PX_TRY(queue.allocate(DType::uint8, Shape{bytes}));
  PX_TRY(run_conv_plan(*choice->plan, convolutions->handle, conv, workspace.storage().get()));
  return true;
}

}  // namespace parallax::runtime

#else

namespace parallax::runtime {

template <>
Result<bool> library_conv(Queue<Cuda>&, const LibraryConv&) {
  return false;
}

}  // namespace parallax::runtime

#endif

#endif
