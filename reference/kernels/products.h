// SPDX-License-Identifier: Apache-2.0
// Sums of products: out[i, j] = sum over k of a[i, k] * b[k, j], the one loop nest under matrix products and
// convolutions. Each sum runs from k = 0 upward in one accumulator; threads and vector lanes take different (i, j).
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "inspector/tensor/dtype.h"

namespace parallax::reference {

// A block of sums: those of some neighboring rows and columns, line for line.
template <class Number>
struct SumsBlock {
  int64_t row = 0, rows = 0;  // the first, and how many
  int64_t column = 0, columns = 0;
  int64_t stride = 0;  // from line to line
  const Number* numbers = nullptr;

  std::span<const Number> line(int64_t index) const { return {numbers + index * stride, static_cast<size_t>(columns)}; }
};

// Number is double, or uint64_t for all integers (arithmetic modulo 2^64). `load_row` gives a[i, 0..depth);
// `load_columns` fills panel[k * width + j] = b[k, first + j] for j < width; `store` takes blocks of out. All are
// called from several threads.
template <class Number>
struct ProductSpec {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t depth = 0;
  // Double holds each a[i, k] * b[k, j] exactly: both come from types of 26 significant bits or fewer.
  bool has_exact_products = false;
  std::function<void(int64_t row, std::span<Number> values)> load_row;
  std::function<void(int64_t first, int64_t width, std::span<Number> panel)> load_columns;
  std::function<void(const SumsBlock<Number>& sums)> store;
};

// True where ProductSpec::has_exact_products holds for elements of these types.
inline bool have_exact_products(DType a, DType b) {
  return is_floating(a) && is_floating(b) && a != DType::float64 && b != DType::float64;
}

void sum_products(const ProductSpec<double>& spec);
void sum_products(const ProductSpec<uint64_t>& spec);

}  // namespace parallax::reference
