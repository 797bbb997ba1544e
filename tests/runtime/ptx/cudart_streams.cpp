// SPDX-License-Identifier: Apache-2.0
// libcudart.so.13, second part: copies, streams, events and graphs.
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include <cuda_runtime.h>
#include <cuda_runtime_api.h>

#include "tests/runtime/ptx/device.h"

using namespace parallax::ptx;

namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

cudaError_t refused(const std::string& problem, cudaError_t error = cudaErrorInvalidValue) {
  device().note_problem(problem);
  device().take_problem();
  return error;
}
cudaError_t waited() { return device().take_problem() ? cudaErrorIllegalAddress : cudaSuccess; }

struct Event {
  std::shared_ptr<Point> point;  // null: it was never recorded
};

using Graph = std::shared_ptr<const Recorded>;

// Page-locked memory by its address: copies to and from it are made when the stream comes to them.
std::map<const std::byte*, size_t>& locked_memory() {
  static auto* memory = new std::map<const std::byte*, size_t>;
  return *memory;
}
bool is_locked(const void* memory) {
  const auto after = locked_memory().upper_bound(static_cast<const std::byte*>(memory));
  if (after == locked_memory().begin()) return false;
  return memory < std::prev(after)->first + std::prev(after)->second;
}

void copy(void* target, const void* source, size_t bytes, cudaMemcpyKind kind) {
  const std::pair<const void*, bool> sides[] = {{target, kind != cudaMemcpyDeviceToHost},
                                                {source, kind != cudaMemcpyHostToDevice}};
  for (const auto& [memory, is_on_device] : sides) {
    const auto address = reinterpret_cast<uint64_t>(memory);
    const std::string which = memory == target ? "a copy writes: " : "a copy reads: ";
    if (bytes == 0) continue;
    if (is_on_device && !device_memory().holds(address, bytes))
      return device().note_problem(which + device_memory().explain(address, bytes));
    if (!is_on_device && device_memory().owns(memory))
      return device().note_problem(which + "memory of the device where the kind of copy has the host's");
  }
  std::memmove(target, source, bytes);
}

void count_copy(size_t bytes, cudaMemcpyKind kind) {
  StandInCounts& counts = device().counts();
  if (kind == cudaMemcpyHostToDevice) {
    ++counts.copies_to_device;
    counts.bytes_to_device += static_cast<int64_t>(bytes);
  } else if (kind == cudaMemcpyDeviceToHost) {
    ++counts.copies_to_host;
    counts.bytes_to_host += static_cast<int64_t>(bytes);
  } else {
    ++counts.copies_on_device;
  }
}

// From pageable memory a copy is staged before the call returns, and made later; one to pageable memory is made before
// it returns (CUDA, "API synchronization behavior").
cudaError_t start_copy(void* target, const void* source, size_t bytes, cudaMemcpyKind kind, Stream& stream) {
  if (stream.recording != nullptr && kind != cudaMemcpyDeviceToDevice)
    return refused("a copy between the host and the device is captured", cudaErrorStreamCaptureUnsupported);
  if (stream.recording == nullptr) count_copy(bytes, kind);
  if (kind == cudaMemcpyHostToDevice && !is_locked(source)) {
    const auto staged = std::make_shared<std::string>(static_cast<const char*>(source), bytes);
    device().submit(stream, {[=] { copy(target, staged->data(), bytes, kind); }, nullptr, nullptr, false});
    return cudaSuccess;
  }
  device().submit(stream, {[=] { copy(target, source, bytes, kind); }, nullptr, nullptr, false});
  if (kind != cudaMemcpyDeviceToHost || is_locked(target)) return cudaSuccess;
  device().wait(stream);
  return waited();
}

}  // namespace

extern "C" {

// ---- Copies ----
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  const Lock lock(device().mutex());
  if (posix_memalign(memory, 4096, bytes) != 0) return cudaErrorMemoryAllocation;
  locked_memory()[static_cast<std::byte*>(*memory)] = bytes;
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
  const Lock lock(device().mutex());
  device().wait_for_all();
  locked_memory().erase(static_cast<std::byte*>(memory));
  std::free(memory);
  return waited();
}
cudaError_t cudaMemcpyAsync(void* target, const void* source, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  const Lock lock(device().mutex());
  return start_copy(target, source, bytes, kind, *device().stream_of(stream));
}
// On the default stream, for which streams that do not block with it do not wait.
cudaError_t cudaMemcpy(void* target, const void* source, size_t bytes, cudaMemcpyKind kind) {
  const Lock lock(device().mutex());
  Stream& stream = *device().stream_of(nullptr);
  device().wait(stream);
  const cudaError_t error = start_copy(target, source, bytes, kind, stream);
  const bool is_staged = kind == cudaMemcpyHostToDevice && !is_locked(source);
  if (error == cudaSuccess && !is_staged) device().wait(stream);
  return error == cudaSuccess ? waited() : error;
}
cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  const Lock lock(device().mutex());
  const auto set = [=] {
    const auto address = reinterpret_cast<uint64_t>(memory);
    if (bytes > 0 && !device_memory().holds(address, bytes))
      return device().note_problem("cudaMemsetAsync: " + device_memory().explain(address, bytes));
    std::memset(memory, value, bytes);
  };
  device().submit(*device().stream_of(stream), {set, nullptr, nullptr, false});
  return cudaSuccess;
}

// ---- Streams and events ----
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  const Lock lock(device().mutex());
  *stream = reinterpret_cast<cudaStream_t>(device().make_stream());
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const Lock lock(device().mutex());
  device().end_stream(device().stream_of(stream));
  return waited();
}
cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  const Lock lock(device().mutex());
  Stream& stream = *device().stream_of(handle);
  if (stream.recording != nullptr)
    return refused("the host waits for a stream that is captured", cudaErrorStreamCaptureUnsupported);
  ++device().counts().waits;
  device().wait(stream);
  return waited();
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = reinterpret_cast<cudaEvent_t>(new Event);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete reinterpret_cast<Event*>(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
  const Lock lock(device().mutex());
  Stream* stream = device().stream_of(handle);
  if (stream->recording != nullptr)
    return refused("an event is recorded in a stream that is captured", cudaErrorStreamCaptureUnsupported);
  auto point = std::make_shared<Point>();
  point->stream = stream;
  reinterpret_cast<Event*>(event)->point = point;
  device().submit(*stream, {nullptr, nullptr, point, false});
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const Lock lock(device().mutex());
  const std::shared_ptr<Point>& point = reinterpret_cast<Event*>(event)->point;
  if (point == nullptr || device().fault() == Fault::skipped_event) return cudaSuccess;
  device().submit(*device().stream_of(stream), {nullptr, point, nullptr, false});
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const Lock lock(device().mutex());
  const std::shared_ptr<Point>& point = reinterpret_cast<Event*>(event)->point;
  if (point != nullptr && !device().ask(point)) return cudaErrorNotReady;
  return waited();
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const Lock lock(device().mutex());
  const std::shared_ptr<Point>& point = reinterpret_cast<Event*>(event)->point;
  if (point == nullptr) return cudaSuccess;
  ++device().counts().waits;
  device().wait(point);
  return waited();
}

// ---- Graphs: what was captured of one stream, in its order ----
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  const Lock lock(device().mutex());
  device().stream_of(stream)->recording = std::make_unique<Recorded>();
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const Lock lock(device().mutex());
  std::shared_ptr<const Recorded> recorded = std::move(device().stream_of(stream)->recording);
  *graph = reinterpret_cast<cudaGraph_t>(new Graph(std::move(recorded)));
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  *executable = reinterpret_cast<cudaGraphExec_t>(new Graph(*reinterpret_cast<Graph*>(graph)));
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t handle) {
  const Lock lock(device().mutex());
  const Graph graph = *reinterpret_cast<Graph*>(executable);
  Stream& stream = *device().stream_of(handle);
  ++device().counts().graph_launches;
  const auto run = [graph] {
    for (const Work& work : *graph) {
      if (work.run) work.run();
      if (work.is_launch) ++device().counts().replayed_launches;
    }
  };
  device().submit(stream, {run, nullptr, nullptr, false});
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete reinterpret_cast<Graph*>(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete reinterpret_cast<Graph*>(executable);
  return cudaSuccess;
}

}  // extern "C"
