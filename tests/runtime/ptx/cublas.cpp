// SPDX-License-Identifier: Apache-2.0
// libcublas.so.13 by plain loops, in the order of its stream: the one product that the runtime asks it for.
#include <algorithm>
#include <cstdint>
#include <vector>

#include <cublas_v2.h>

#include "tests/runtime/ptx/stand_in.h"

namespace {

// Matrices by columns; entry (row, column) of an operand that is not transposed is at row + column * leading.
struct Matrix {
  bool is_transposed = false;
  int64_t leading = 0;
  int64_t stride = 0;  // from one product of the batch to the next
};

struct Product {
  Matrix a, b, c;
  int64_t m = 0, n = 0, k = 0, batch = 0;
  double alpha = 1, beta = 0;
};

// Sums of a column run side by side, each in the order of k.
template <class T>
void multiply(const Product& product, const T* a, const T* b, T* c) {
  const auto entry = [](const Matrix& matrix, int64_t row, int64_t column) {
    return matrix.is_transposed ? column + row * matrix.leading : row + column * matrix.leading;
  };
  std::vector<T> sums(static_cast<size_t>(product.m));
  for (int64_t item = 0; item < product.batch; ++item) {
    for (int64_t column = 0; column < product.n; ++column) {
      std::fill(sums.begin(), sums.end(), T(0));
      for (int64_t p = 0; p < product.k; ++p) {
        const T factor = b[entry(product.b, p, column)];
        for (int64_t row = 0; row < product.m; ++row)
          sums[static_cast<size_t>(row)] += a[entry(product.a, row, p)] * factor;
      }
      for (int64_t row = 0; row < product.m; ++row) {
        T& target = c[row + column * product.c.leading];
        const T kept = product.beta == 0 ? T(0) : static_cast<T>(product.beta) * target;
        target = static_cast<T>(product.alpha) * sums[static_cast<size_t>(row)] + kept;
      }
    }
    a += product.a.stride;
    b += product.b.stride;
    c += product.c.stride;
  }
}

// From the first entry of the first product to the last of the last.
int64_t bytes_of(const Matrix& matrix, int64_t rows, int64_t columns, int64_t batch, size_t element_bytes) {
  if (rows == 0 || columns == 0 || batch == 0) return 0;
  const int64_t length = matrix.is_transposed ? columns : rows, lines = matrix.is_transposed ? rows : columns;
  const int64_t entries = (batch - 1) * matrix.stride + (lines - 1) * matrix.leading + length;
  return entries * static_cast<int64_t>(element_bytes);
}

template <class T>
void submit(void* stream, const Product& product, const void* a, const void* b, void* c) {
  const auto bytes = [&](const Matrix& matrix, int64_t rows, int64_t columns) {
    return bytes_of(matrix, rows, columns, product.batch, sizeof(T));
  };
  parallax::ptx::submit_library_call(
      stream, "cublasGemmStridedBatchedEx",
      {{a, bytes(product.a, product.m, product.k), "A"},
       {b, bytes(product.b, product.k, product.n), "B"},
       {c, bytes(product.c, product.m, product.n), "C"}},
      [=] { multiply(product, static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(c)); });
}

}  // namespace

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
  (is_double ? submit<double> : submit<float>)(handle->stream, product, a, b, c);
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
