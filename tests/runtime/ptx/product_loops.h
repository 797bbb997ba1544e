// SPDX-License-Identifier: Apache-2.0
// Products of matrices by plain loops, for the stand-ins of cuBLAS and cublasLt.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/runtime/ptx/stand_in.h"

namespace parallax::ptx {

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

// d = alpha a b + beta c, where c has the layout of d and may be d.
struct Operands {
  const void *a, *b, *c;
  void* d;
};

// Sums of a column run side by side, each in the order of k.
template <class T>
void multiply(const Product& product, const T* a, const T* b, const T* c, T* d) {
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
        const int64_t at = row + column * product.c.leading;
        const T kept = product.beta == 0 ? T(0) : static_cast<T>(product.beta) * c[at];
        d[at] = static_cast<T>(product.alpha) * sums[static_cast<size_t>(row)] + kept;
      }
    }
    a += product.a.stride;
    b += product.b.stride;
    c += product.c.stride;
    d += product.c.stride;
  }
}

// From the first entry of the first product to the last of the last.
int64_t bytes_of(const Matrix& matrix, int64_t rows, int64_t columns, int64_t batch, size_t element_bytes) {
  if (rows == 0 || columns == 0 || batch == 0) return 0;
  const int64_t length = matrix.is_transposed ? columns : rows, lines = matrix.is_transposed ? rows : columns;
  const int64_t entries = (batch - 1) * matrix.stride + (lines - 1) * matrix.leading + length;
  return entries * static_cast<int64_t>(element_bytes);
}

// The work of `call` in the order of the stream; c is an operand of its own where it is added and is not d.
template <class T>
void submit_product(void* stream, const char* call, const Product& product, const Operands& operands) {
  const auto bytes = [&](const Matrix& matrix, int64_t rows, int64_t columns) {
    return bytes_of(matrix, rows, columns, product.batch, sizeof(T));
  };
  std::vector<LibraryOperand> accessed{{operands.a, bytes(product.a, product.m, product.k), "A"},
                                       {operands.b, bytes(product.b, product.k, product.n), "B"},
                                       {operands.d, bytes(product.c, product.m, product.n), "D"}};
  if (product.beta != 0 && operands.c != operands.d)
    accessed.push_back({operands.c, bytes(product.c, product.m, product.n), "C"});
  submit_library_call(stream, call, accessed, [=] {
    multiply(product, static_cast<const T*>(operands.a), static_cast<const T*>(operands.b),
             static_cast<const T*>(operands.c), static_cast<T*>(operands.d));
  });
}

}  // namespace parallax::ptx
