// SPDX-License-Identifier: Apache-2.0
// Streams of the stand-in by CUDA's functions: work waits until the host does, two streams are ordered by events alone,
// and a process with a problem ends with exit code 70.
#include <array>
#include <cstdlib>
#include <cstring>

#include <cuda_runtime.h>
#include <gtest/gtest.h>

namespace {

constexpr size_t kBytes = 64;
constexpr int kProblems = 70;
constexpr unsigned char kFresh = 0xFF, kSet = 7;

bool is_late() {
  const char* order = std::getenv("PTX_ORDER");
  return order == nullptr || std::strcmp(order, "late") == 0;
}

// A stream whose work sets memory of the device, and one that copies it to the host.
struct Streams {
  cudaStream_t kernels = nullptr, copies = nullptr;
  cudaEvent_t event = nullptr;
  cudaMemPool_t pool = nullptr;
  void* device = nullptr;
  unsigned char* host = nullptr;

  Streams() {
    cudaStreamCreateWithFlags(&kernels, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    const cudaMemPoolProps properties{};
    cudaMemPoolCreate(&pool, &properties);
    cudaMallocFromPoolAsync(&device, kBytes, pool, kernels);
    void* locked = nullptr;
    cudaHostAlloc(&locked, kBytes, cudaHostAllocDefault);
    host = static_cast<unsigned char*>(locked);
  }
  ~Streams() {
    cudaStreamDestroy(copies);
    cudaStreamDestroy(kernels);
    cudaEventDestroy(event);
    cudaFreeHost(host);
  }
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  void set() const { EXPECT_EQ(cudaMemsetAsync(device, kSet, kBytes, kernels), cudaSuccess); }
  void copies_wait() const {
    EXPECT_EQ(cudaEventRecord(event, kernels), cudaSuccess);
    EXPECT_EQ(cudaStreamWaitEvent(copies, event, 0), cudaSuccess);
  }
  void copy() const { EXPECT_EQ(cudaMemcpyAsync(host, device, kBytes, cudaMemcpyDeviceToHost, copies), cudaSuccess); }
};

TEST(Order, AnEventOrdersTwoStreams) {
  const Streams streams;
  streams.set();
  streams.copies_wait();
  streams.copy();
  EXPECT_EQ(cudaStreamSynchronize(streams.copies), cudaSuccess);
  EXPECT_EQ(streams.host[0], kSet);
}

TEST(Order, NothingElseDoes) {
  const Streams streams;
  streams.set();
  streams.copy();
  EXPECT_EQ(cudaStreamSynchronize(streams.copies), cudaSuccess);
  EXPECT_EQ(streams.host[0], is_late() ? kFresh : kSet);
}

TEST(Order, APageableSourceIsTakenAtTheCallAndALockedOneLater) {
  const Streams streams;
  std::array<unsigned char, kBytes> pageable{};
  pageable.fill(3);
  EXPECT_EQ(cudaMemcpyAsync(streams.device, pageable.data(), kBytes, cudaMemcpyHostToDevice, streams.kernels),
            cudaSuccess);
  pageable.fill(4);
  streams.copies_wait();
  streams.copy();
  EXPECT_EQ(cudaStreamSynchronize(streams.copies), cudaSuccess);
  EXPECT_EQ(streams.host[0], 3);
  EXPECT_EQ(cudaMemcpyAsync(streams.device, streams.host, kBytes, cudaMemcpyHostToDevice, streams.kernels),
            cudaSuccess);
  streams.host[0] = 5;
  EXPECT_EQ(cudaStreamSynchronize(streams.kernels), cudaSuccess);
  streams.host[0] = 0;
  streams.copy();
  EXPECT_EQ(cudaStreamSynchronize(streams.copies), cudaSuccess);
  EXPECT_EQ(streams.host[0], 5);
}

// cudaMemcpy of pageable memory is staged, and made on the default stream, for which this one does not wait.
TEST(Order, ACopyOfPageableMemoryMayBeUnderWayAfterCudaMemcpy) {
  const Streams streams;
  std::array<unsigned char, kBytes> pageable{};
  pageable.fill(3);
  EXPECT_EQ(cudaMemcpy(streams.device, pageable.data(), kBytes, cudaMemcpyHostToDevice), cudaSuccess);
  streams.copy();
  EXPECT_EQ(cudaStreamSynchronize(streams.copies), cudaSuccess);
  EXPECT_EQ(streams.host[0], is_late() ? kFresh : 3);
  EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  streams.copy();
  EXPECT_EQ(cudaStreamSynchronize(streams.copies), cudaSuccess);
  EXPECT_EQ(streams.host[0], 3);
}

TEST(Order, AnEventIsReachedAfterAFewQuestions) {
  const Streams streams;
  streams.set();
  EXPECT_EQ(cudaEventRecord(streams.event, streams.kernels), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(streams.event), cudaErrorNotReady);
  int questions = 1;
  while (cudaEventQuery(streams.event) == cudaErrorNotReady) ++questions;
  EXPECT_LT(questions, 10);
}

TEST(Order, AGraphRepeatsWhatWasCaptured) {
  const Streams streams;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  EXPECT_EQ(cudaStreamBeginCapture(streams.kernels, cudaStreamCaptureModeRelaxed), cudaSuccess);
  streams.set();
  EXPECT_EQ(cudaStreamEndCapture(streams.kernels, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  streams.copy();
  EXPECT_EQ(cudaStreamSynchronize(streams.copies), cudaSuccess);
  EXPECT_EQ(streams.host[0], kFresh) << "captured work is not done";
  EXPECT_EQ(cudaGraphLaunch(executable, streams.kernels), cudaSuccess);
  streams.copies_wait();
  streams.copy();
  EXPECT_EQ(cudaStreamSynchronize(streams.copies), cudaSuccess);
  EXPECT_EQ(streams.host[0], kSet);
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
}

// The copy waits for the kernels, but its source is freed in their order, not in its own.
TEST(OrderDeathTest, AFreeThatDoesNotWaitForTheCopyIsAProblem) {
  const auto free_too_early = [] {
    const Streams streams;
    streams.set();
    streams.copies_wait();
    streams.copy();
    cudaFreeAsync(streams.device, streams.kernels);
    cudaStreamSynchronize(streams.kernels);
    cudaStreamSynchronize(streams.copies);
    std::exit(0);
  };
  EXPECT_EXIT(free_too_early(), testing::ExitedWithCode(kProblems),
              "a copy reads: 64 bytes at 0x.* are in memory that was freed");
}

TEST(OrderDeathTest, WhatACaptureForbidsIsAProblem) {
  const auto free_in_a_capture = [] {
    const Streams streams;
    cudaStreamBeginCapture(streams.kernels, cudaStreamCaptureModeRelaxed);
    std::exit(cudaFreeAsync(streams.device, streams.kernels) == cudaSuccess ? 1 : 0);
  };
  EXPECT_EXIT(free_in_a_capture(), testing::ExitedWithCode(kProblems), "each launch of the graph would free it");
}

TEST(OrderDeathTest, ASecondFreeIsAProblem) {
  const auto free_twice = [] {
    const Streams streams;
    cudaFreeAsync(streams.device, streams.kernels);
    cudaFreeAsync(streams.device, streams.kernels);
    cudaStreamSynchronize(streams.kernels);
    std::exit(0);
  };
  EXPECT_EXIT(free_twice(), testing::ExitedWithCode(kProblems), "is freed and is no allocation");
}

}  // namespace
