// SPDX-License-Identifier: Apache-2.0
// libcudart.so.13 without a GPU: kernels are launched by the interpreter, streams and events are the device's. The
// functions are those that this tree's program and CUB call; a program that needs another one does not start.
#include <cstring>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include <cuda_runtime.h>
#include <cuda_runtime_api.h>

#include "tests/runtime/ptx/device.h"
#include "tests/runtime/ptx/module.h"

using namespace parallax::ptx;

namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

std::map<const void*, std::string>& kernel_names() {
  static auto* names = new std::map<const void*, std::string>;  // filled before main
  return *names;
}

cudaError_t& last_error() {
  thread_local cudaError_t error = cudaSuccess;
  return error;
}
cudaError_t refused(cudaError_t error) { return last_error() = error; }
cudaError_t refused(cudaError_t error, const std::string& problem) {
  device().note_problem(problem);
  device().take_problem();
  return last_error() = error;
}
// The answer of a call that waits: problems of the work that has run by now.
cudaError_t waited() { return device().take_problem() ? refused(cudaErrorIllegalAddress) : cudaSuccess; }

constexpr size_t kSharedBytes = 49152, kMostSharedBytes = 232448;  // of a block: without being asked; at most

// The shared memory that cudaFuncSetAttribute allows kernels.
std::map<const void*, size_t>& shared_limits() {
  static auto* limits = new std::map<const void*, size_t>;
  return *limits;
}

// Parameters as the kernel has them, taken at the launch.
std::vector<std::byte> taken(const Function& kernel, void** arguments) {
  std::vector<std::byte> bytes(static_cast<size_t>(kernel.parameter_bytes));
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    const Parameter& parameter = kernel.parameters[i];
    std::memcpy(bytes.data() + parameter.offset, arguments[i], static_cast<size_t>(parameter.bytes));
  }
  return bytes;
}

cudaError_t launch(const void* host_function, const Launch& size, void** arguments, cudaStream_t handle) {
  const Lock lock(device().mutex());
  const auto named = kernel_names().find(host_function);
  Function* kernel = named == kernel_names().end() ? nullptr : find_kernel(named->second);
  if (kernel == nullptr) {
    const std::string name = named == kernel_names().end() ? "that is not registered" : named->second;
    return refused(cudaErrorInvalidDeviceFunction, "no PTX file has the kernel " + name);
  }
  if (size.shared_bytes > kSharedBytes && size.shared_bytes > shared_limits()[host_function])
    return refused(cudaErrorInvalidValue, "kernel " + named->second + " is launched with " +
                                              std::to_string(size.shared_bytes) +
                                              " bytes of shared memory, which cudaFuncSetAttribute has not allowed it");
  Stream& stream = *device().stream_of(handle);
  StandInCounts& counts = device().counts();
  ++(stream.recording == nullptr ? counts.launches : counts.recorded_launches);
  const auto run = [kernel, size, bytes = taken(*kernel, arguments)] {
    LaunchWork work;
    const std::string problem = run_kernel(*kernel, size, bytes, device().checks_races(), work);
    device().note_launch(kernel->name, work);
    if (!problem.empty()) device().note_problem(problem);
  };
  device().submit(stream, {run, nullptr, nullptr, true});
  return cudaSuccess;
}

Launch launch_of(dim3 grid, dim3 block, size_t shared_bytes) {
  return {{grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared_bytes};
}

struct Configuration {
  dim3 grid, block;
  size_t shared_bytes;
  cudaStream_t stream;
};
std::vector<Configuration>& configurations() {
  thread_local std::vector<Configuration> pushed;
  return pushed;
}

// Streams of the memory that cudaMallocFromPoolAsync gave; what a queue announces of its values is in their order.
std::map<const void*, Stream*>& streams_of_memory() {
  static auto* streams = new std::map<const void*, Stream*>;
  return *streams;
}

cudaError_t allocate(void** memory, size_t bytes) {
  ++device().counts().allocations;
  *memory = device_memory().allocate(bytes);
  return *memory == nullptr ? refused(cudaErrorMemoryAllocation) : cudaSuccess;
}
void release(void* memory) {
  const std::string problem = device_memory().free(memory);
  if (!problem.empty()) device().note_problem(problem);
}

}  // namespace

extern "C" {

// ---- What nvcc's host code calls ----
void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}
void __cudaRegisterFunction(void**, const char* host, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {
  kernel_names()[host] = name;
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, CUstream_st* stream) {
  configurations().push_back({grid, block, shared_bytes, stream});
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes, void* stream) {
  const Configuration last = configurations().back();
  configurations().pop_back();
  *grid = last.grid;
  *block = last.block;
  *shared_bytes = last.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = last.stream;
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(host));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                               cudaStream_t stream) {
  return launch(kernel, launch_of(grid, block, shared_bytes), arguments, stream);
}

// ---- The device ----
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* index) {
  *index = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int index) { return index == 0 ? cudaSuccess : refused(cudaErrorInvalidDevice); }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::strncpy(properties->name, "PTX interpreter", sizeof properties->name - 1);
  properties->major = 9;
  properties->multiProcessorCount = 4;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  static const std::map<cudaDeviceAttr, int> kAttributes = {{cudaDevAttrMultiProcessorCount, 4},
                                                            {cudaDevAttrComputeCapabilityMajor, 9},
                                                            {cudaDevAttrComputeCapabilityMinor, 0},
                                                            {cudaDevAttrMaxSharedMemoryPerBlock, kSharedBytes},
                                                            {cudaDevAttrMaxSharedMemoryPerBlockOptin, kMostSharedBytes},
                                                            {cudaDevAttrMaxSharedMemoryPerMultiprocessor, 233472},
                                                            {cudaDevAttrMaxGridDimX, INT32_MAX},
                                                            {cudaDevAttrMaxGridDimY, 65535},
                                                            {cudaDevAttrMaxGridDimZ, 65535},
                                                            {cudaDevAttrMaxThreadsPerBlock, 1024},
                                                            {cudaDevAttrMaxBlockDimX, 1024},
                                                            {cudaDevAttrMaxBlockDimY, 1024},
                                                            {cudaDevAttrMaxBlockDimZ, 64},
                                                            {cudaDevAttrWarpSize, 32}};
  const auto found = kAttributes.find(attribute);
  if (found == kAttributes.end())
    return refused(cudaErrorInvalidValue, "cudaDeviceGetAttribute is asked for attribute " + std::to_string(attribute) +
                                              ", which the stand-in does not know");
  *value = found->second;
  return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  *attributes = {};
  attributes->maxThreadsPerBlock = 1024;
  attributes->numRegs = 32;
  attributes->ptxVersion = attributes->binaryVersion = 90;
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  const Lock lock(device().mutex());
  const bool is_known = attribute == cudaFuncAttributeMaxDynamicSharedMemorySize && value >= 0;
  if (!is_known || static_cast<size_t>(value) > kMostSharedBytes)
    return refused(cudaErrorInvalidValue, "cudaFuncSetAttribute is asked for " + std::to_string(value) +
                                              " of attribute " + std::to_string(attribute) +
                                              "; it knows the size of dynamic shared memory alone");
  shared_limits()[function] = static_cast<size_t>(value);
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*, int, size_t, unsigned) {
  *blocks = 2;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

// ---- Errors: the text of the last problem is the error's ----
const char* cudaGetErrorString(cudaError_t error) {
  if (error == cudaSuccess) return "no error";
  if (error == cudaErrorMemoryAllocation) return "out of memory";
  if (error == cudaErrorNotReady) return "device not ready";
  const std::string& problem = device().last_problem();
  return problem.empty() ? "invalid argument" : problem.c_str();
}
cudaError_t cudaGetLastError() { return std::exchange(last_error(), cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return last_error(); }

// ---- Memory ----
cudaError_t cudaMalloc(void** memory, size_t bytes) {
  const Lock lock(device().mutex());
  return allocate(memory, bytes);
}
cudaError_t cudaFree(void* memory) {
  const Lock lock(device().mutex());
  if (memory == nullptr) return cudaSuccess;
  device().wait_for_all();
  release(memory);
  return waited();
}
cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps*) {
  static char only = 0;
  *pool = reinterpret_cast<cudaMemPool_t>(&only);
  return cudaSuccess;
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t) { return cudaSuccess; }
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) { return cudaSuccess; }
cudaError_t cudaMallocFromPoolAsync(void** memory, size_t bytes, cudaMemPool_t, cudaStream_t handle) {
  const Lock lock(device().mutex());
  Stream* stream = device().stream_of(handle);
  if (stream->recording != nullptr)
    return refused(cudaErrorStreamCaptureUnsupported, "memory is taken from a pool while its stream is captured");
  const cudaError_t error = allocate(memory, bytes);
  streams_of_memory()[*memory] = stream;
  return error;
}
cudaError_t cudaFreeAsync(void* memory, cudaStream_t handle) {
  const Lock lock(device().mutex());
  Stream* stream = device().stream_of(handle);
  if (stream->recording != nullptr)
    return refused(cudaErrorStreamCaptureUnsupported,
                   "cudaFreeAsync is called while its stream is captured: each launch of the graph would free it");
  streams_of_memory().erase(memory);
  if (device().fault() == Fault::early_free) {
    release(memory);
  } else {
    device().submit(*stream, {[memory] { release(memory); }, nullptr, nullptr, false});
  }
  return cudaSuccess;
}

}  // extern "C"

namespace parallax::ptx {

Stream* stream_of_memory(const void* memory) {
  const auto found = streams_of_memory().find(memory);
  return found == streams_of_memory().end() ? nullptr : found->second;
}

}  // namespace parallax::ptx
