// SPDX-License-Identifier: Apache-2.0
// The copies of a CUDA queue to the host: a stream of their own and an event for each that is under way. No kernel is
// here, so that the host's compiler does.
#ifdef PX_WITH_CUDA

#include "runtime/device/cuda/copies_cuda.h"

#include <deque>
#include <vector>

#include <cuda_runtime.h>

#include "runtime/device/cuda/library_cuda.h"

namespace parallax::runtime {

struct CudaCopies {
  cudaStream_t stream = nullptr;
  cudaEvent_t submitted = nullptr;    // all that was, on the stream of the kernels
  std::deque<cudaEvent_t> under_way;  // one a ticket, in order
  std::vector<cudaEvent_t> spare;
  int64_t first_ticket = 0;  // of `under_way`

  CudaCopies() = default;
  CudaCopies(const CudaCopies&) = delete;
  CudaCopies& operator=(const CudaCopies&) = delete;
  ~CudaCopies() {
    if (stream != nullptr) cudaStreamSynchronize(stream);
    for (const cudaEvent_t event : under_way) cudaEventDestroy(event);
    for (const cudaEvent_t event : spare) cudaEventDestroy(event);
    if (submitted != nullptr) cudaEventDestroy(submitted);
    if (stream != nullptr) cudaStreamDestroy(stream);
  }
};

namespace {

Status checked(const char* what, cudaError_t error) {
  if (error == cudaSuccess) return {};
  return cuda_error(what, error);
}

Result<std::shared_ptr<CudaCopies>> make_copies() {
  auto copies = std::make_shared<CudaCopies>();
  PX_TRY(checked("cannot make a stream for copies", cudaStreamCreateWithFlags(&copies->stream, cudaStreamNonBlocking)));
  PX_TRY(checked("cannot make an event", cudaEventCreateWithFlags(&copies->submitted, cudaEventDisableTiming)));
  return copies;
}

Result<cudaEvent_t> take_event(CudaCopies& copies) {
  cudaEvent_t event = nullptr;
  if (copies.spare.empty()) {
    PX_TRY(checked("cannot make an event", cudaEventCreateWithFlags(&event, cudaEventDisableTiming)));
  } else {
    event = copies.spare.back();
    copies.spare.pop_back();
  }
  return event;
}

}  // namespace

Result<std::shared_ptr<std::byte>> host_memory(Queue<Cuda>&, size_t bytes) {
  void* memory = nullptr;
  PX_TRY(checked("cannot lock memory of the host", cudaHostAlloc(&memory, bytes, cudaHostAllocDefault)));
  return std::shared_ptr<std::byte>(static_cast<std::byte*>(memory), [](std::byte* locked) { cudaFreeHost(locked); });
}

Result<int64_t> start_copy_to_host(Queue<Cuda>& queue, std::byte* target, const std::byte* source, size_t bytes) {
  std::shared_ptr<CudaCopies>& made = queue.library().copies;
  if (made == nullptr) made = PX_TRY(make_copies());
  CudaCopies& copies = *made;
  const auto kernels = static_cast<cudaStream_t>(queue.stream());
  const cudaEvent_t done = PX_TRY(take_event(copies));
  copies.under_way.push_back(done);
  PX_TRY(checked("cannot record an event", cudaEventRecord(copies.submitted, kernels)));
  PX_TRY(checked("cannot wait for an event", cudaStreamWaitEvent(copies.stream, copies.submitted, 0)));
  PX_TRY(checked("cannot copy to the host",
                 cudaMemcpyAsync(target, source, bytes, cudaMemcpyDeviceToHost, copies.stream)));
  PX_TRY(checked("cannot record an event", cudaEventRecord(done, copies.stream)));
  return copies.first_ticket + static_cast<int64_t>(copies.under_way.size()) - 1;
}

Result<bool> is_copied(Queue<Cuda>& queue, int64_t ticket) {
  CudaCopies& copies = *queue.library().copies;
  while (ticket >= copies.first_ticket) {
    const cudaError_t state = cudaEventQuery(copies.under_way.front());
    if (state == cudaErrorNotReady) {
      cudaGetLastError();  // no failure, and not to be taken for one of the next launch
      return false;
    }
    PX_TRY(checked("a copy to the host failed", state));
    copies.spare.push_back(copies.under_way.front());
    copies.under_way.pop_front();
    ++copies.first_ticket;
  }
  return true;
}

Status wait_copied(Queue<Cuda>& queue, int64_t ticket) {
  if (PX_TRY(is_copied(queue, ticket))) return {};
  const CudaCopies& copies = *queue.library().copies;
  const auto location = static_cast<size_t>(ticket - copies.first_ticket);
  return checked("a copy to the host failed", cudaEventSynchronize(copies.under_way[location]));
}

}  // namespace parallax::runtime

#endif
