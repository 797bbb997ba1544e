// SPDX-License-Identifier: Apache-2.0
// cuBLAS and cublasLt, loaded by the first who multiplies: to map their half a gigabyte takes a tenth of a second,
// which no start of the program should pay that does not use a GPU, and the program runs where they are not installed.
#pragma once

#include <string>

#include <cublasLt.h>
#include <cublas_v2.h>

#include "inspector/base/result.h"

// clang-format off
#define PX_CUBLAS_FUNCTIONS(X) \
  X(cublasCreate) X(cublasDestroy) X(cublasGemmStridedBatchedEx_64) X(cublasGetProperty) X(cublasGetStatusString) \
  X(cublasSetStream)

#define PX_CUBLASLT_FUNCTIONS(X) \
  X(cublasLtCreate) X(cublasLtDestroy) X(cublasLtMatmul) X(cublasLtMatmulAlgoCheck) X(cublasLtMatmulAlgoGetHeuristic) \
  X(cublasLtMatmulDescCreate) X(cublasLtMatmulDescDestroy) X(cublasLtMatmulDescSetAttribute) \
  X(cublasLtMatmulPreferenceCreate) X(cublasLtMatmulPreferenceDestroy) X(cublasLtMatmulPreferenceSetAttribute) \
  X(cublasLtMatrixLayoutCreate) X(cublasLtMatrixLayoutDestroy) X(cublasLtMatrixLayoutSetAttribute)
// clang-format on

namespace parallax::runtime {

// The libraries' functions under their own names.
struct Cublas {
#define PX_MEMBER(name) decltype(&::name) name = nullptr;
  PX_CUBLAS_FUNCTIONS(PX_MEMBER)
  PX_CUBLASLT_FUNCTIONS(PX_MEMBER)
#undef PX_MEMBER
};

// Once in a process; every later call answers as the first. Errors: execution, when a library or a function of it is
// not there.
Status load_cublas();
// After load_cublas() went well.
const Cublas& cublas();
std::string cublas_version();  // "13.1.0", or "not found"

}  // namespace parallax::runtime
