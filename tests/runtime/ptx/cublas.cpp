// SPDX-License-Identifier: Apache-2.0
// libcublas.so.13 by plain loops, in the order of its stream: the one product that the runtime asks it for.
#include <cublas_v2.h>

#include "tests/runtime/ptx/product_loops.h"

using parallax::ptx::Product;
using parallax::ptx::submit_product;

struct cublasContext {
  cudaStream_t stream = nullptr;
};

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  *handle = new cublasContext;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetProperty(libraryPropertyType part, int* value) {
  *value = part == MAJOR_VERSION ? CUBLAS_VER_MAJOR : part == MINOR_VERSION ? CUBLAS_VER_MINOR : CUBLAS_VER_PATCH;
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? "success" : "the stand-in of cuBLAS does not know this product";
}

cublasStatus_t cublasGemmStridedBatchedEx_64(cublasHandle_t handle, cublasOperation_t a_operation,
                                             cublasOperation_t b_operation, int64_t m, int64_t n, int64_t k,
                                             const void* alpha, const void* a, cudaDataType a_type, int64_t a_leading,
                                             long long a_stride, const void* b, cudaDataType b_type, int64_t b_leading,
                                             long long b_stride, const void* beta, void* c, cudaDataType c_type,
                                             int64_t c_leading, long long c_stride, int64_t batch, cublasComputeType_t,
                                             cublasGemmAlgo_t) {
  if (a_type != c_type || b_type != c_type || (c_type != CUDA_R_32F && c_type != CUDA_R_64F))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  Product product;
  product.a = {a_operation != CUBLAS_OP_N, a_leading, a_stride};
  product.b = {b_operation != CUBLAS_OP_N, b_leading, b_stride};
  product.c = {false, c_leading, c_stride};
  product.m = m;
  product.n = n;
  product.k = k;
  product.batch = batch;
  const bool is_double = c_type == CUDA_R_64F;
  product.alpha =
      is_double ? *static_cast<const double*>(alpha) : static_cast<double>(*static_cast<const float*>(alpha));
  product.beta = is_double ? *static_cast<const double*>(beta) : static_cast<double>(*static_cast<const float*>(beta));
  (is_double ? submit_product<double> : submit_product<float>)(handle->stream, "cublasGemmStridedBatchedEx", product,
                                                               {a, b, c, c});
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
