// SPDX-License-Identifier: Apache-2.0
// The state of a CUDA queue: handles of NVIDIA's libraries, and pending copies. For sources of this folder alone.
#pragma once

#include <array>
#include <map>
#include <optional>

#include <cublasLt.h>
#include <cublas_v2.h>

#include "runtime/device/cuda/queue_cuda.h"

namespace parallax::runtime {

struct CudaCopies;  // copies_cuda.cpp
struct CudaDnn;     // dnn_cuda.h

// All that the choice of an algorithm depends on.
using ProductKey = std::array<int64_t, 16>;

struct CudaLibrary {
  cublasHandle_t handle = nullptr;
  cublasLtHandle_t light = nullptr;
  void* workspace = nullptr;  // of products by cublasLt, which run one after the other
  std::map<ProductKey, std::optional<cublasLtMatmulAlgo_t>> algorithms;  // none: the library has no way to do it
  std::shared_ptr<CudaCopies> copies;                                    // made by the first copy to the host
  std::shared_ptr<CudaDnn> dnn;                                          // made by the first who asks cuDNN

  CudaLibrary() = default;
  CudaLibrary(const CudaLibrary&) = delete;
  CudaLibrary& operator=(const CudaLibrary&) = delete;
  ~CudaLibrary();
};

Result<std::unique_ptr<CudaLibrary>> open_library(void* stream);

}  // namespace parallax::runtime
