// SPDX-License-Identifier: Apache-2.0
// libcublasLt.so.13 by plain loops: products of float32 with nothing after them but a matrix that is added. For all
// others it has descriptors and no algorithm: the runtime then goes its other way.
#include <cublasLt.h>

#include "tests/runtime/ptx/product_loops.h"

namespace {

struct Operation {
  cublasOperation_t a = CUBLAS_OP_N, b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
};
struct Layout {
  cudaDataType type;
  int64_t rows, columns, leading;
  int64_t stride = 0;
  int32_t batch = 1;
};

// The library's handles, by address.
template <class Described, class Handle>
Described& described(Handle handle) {
  return *reinterpret_cast<Described*>(handle);
}
template <class Handle, class Described>
cublasStatus_t make(Handle* handle, const Described& first) {
  *handle = reinterpret_cast<Handle>(new Described(first));
  return CUBLAS_STATUS_SUCCESS;
}
template <class Described, class Handle>
cublasStatus_t destroy(Handle handle) {
  delete reinterpret_cast<Described*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}

// Nothing is asked of a handle or a preference.
struct Nothing {};

template <class T>
T read(const void* value) {
  return *static_cast<const T*>(value);
}

parallax::ptx::Matrix matrix_of(const Layout& layout, cublasOperation_t operation) {
  return {operation != CUBLAS_OP_N, layout.leading, layout.stride};
}

}  // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) { return make(handle, Nothing{}); }
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { return destroy<Nothing>(handle); }
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void* beta, const void* c, cublasLtMatrixLayout_t, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t*, void*, size_t,
                              cudaStream_t stream) {
  const auto& [a_operation, b_operation, epilogue] = described<Operation>(operation);
  const Layout& result = described<Layout>(d_layout);
  const Layout& first = described<Layout>(a_layout);
  parallax::ptx::Product product;
  product.a = matrix_of(first, a_operation);
  product.b = matrix_of(described<Layout>(b_layout), b_operation);
  product.c = matrix_of(result, CUBLAS_OP_N);
  product.m = result.rows;
  product.n = result.columns;
  product.k = a_operation == CUBLAS_OP_N ? first.columns : first.rows;
  product.batch = result.batch;
  product.alpha = static_cast<double>(read<float>(alpha));
  product.beta = static_cast<double>(read<float>(beta));
  parallax::ptx::submit_product<float>(stream, "cublasLtMatmul", product, {a, b, c, d});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                       const cublasLtMatmulAlgo_t*, cublasLtMatmulHeuristicResult_t*) {
  return CUBLAS_STATUS_NOT_SUPPORTED;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t result, cublasLtMatmulPreference_t, int,
                                              cublasLtMatmulHeuristicResult_t* found, int* count) {
  const bool is_known = described<Operation>(operation).epilogue == CUBLASLT_EPILOGUE_DEFAULT &&
                        described<Layout>(result).type == CUDA_R_32F;
  *count = is_known ? 1 : 0;
  if (is_known) *found = {};
  return is_known ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* descriptor, cublasComputeType_t, cudaDataType_t) {
  return make(descriptor, Operation{});
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t descriptor) { return destroy<Operation>(descriptor); }
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t descriptor, cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t) {
  auto& operation = described<Operation>(descriptor);
  if (attribute == CUBLASLT_MATMUL_DESC_TRANSA) operation.a = read<cublasOperation_t>(value);
  if (attribute == CUBLASLT_MATMUL_DESC_TRANSB) operation.b = read<cublasOperation_t>(value);
  if (attribute == CUBLASLT_MATMUL_DESC_EPILOGUE) operation.epilogue = read<cublasLtEpilogue_t>(value);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return make(preference, Nothing{});
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return destroy<Nothing>(preference);
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t,
                                                    const void*, size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t leading) {
  return make(layout, Layout{type, static_cast<int64_t>(rows), static_cast<int64_t>(columns), leading});
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) { return destroy<Layout>(layout); }
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void* value, size_t) {
  if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) described<Layout>(layout).batch = read<int32_t>(value);
  if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) described<Layout>(layout).stride = read<int64_t>(value);
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
