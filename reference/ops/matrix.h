// SPDX-License-Identifier: Apache-2.0
// Matrices as operators see them: numbers with a row and a column stride, and their product.
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "reference/kernels/numbers.h"
#include "reference/kernels/products.h"
#include "reference/kernels/transposed_tiles.h"

namespace parallax::reference {

template <class Number>
struct Matrix {
  std::span<const Number> numbers;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t row_stride = 0;
  int64_t column_stride = 1;

  Number at(int64_t row, int64_t column) const {
    return numbers[static_cast<size_t>(row * row_stride + column * column_stride)];
  }
  Matrix transposed() const { return {numbers, columns, rows, column_stride, row_stride}; }
};

// out[i * b.columns + j] = sum over k of a[i, k] * b[k, j]. `has_exact_products` as in ProductSpec.
template <class Number>
void multiply(const Matrix<Number>& a, const Matrix<Number>& b, std::span<Number> out,
              bool has_exact_products = false) {
  ProductSpec<Number> spec;
  spec.has_exact_products = has_exact_products;
  spec.rows = a.rows;
  spec.columns = b.columns;
  spec.depth = a.columns;
  spec.load_row = [&](int64_t row, std::span<Number> values) {
    for (size_t k = 0; k < values.size(); ++k) values[k] = a.at(row, static_cast<int64_t>(k));
  };
  spec.load_columns = [&](int64_t first, int64_t width, std::span<Number> panel) {
    for (int64_t k = 0; k < b.rows; ++k) {
      for (int64_t j = 0; j < width; ++j) panel[static_cast<size_t>(k * width + j)] = b.at(k, first + j);
    }
  };
  spec.store = [&](const SumsBlock<Number>& sums) {
    for (int64_t row = 0; row < sums.rows; ++row)
      std::ranges::copy(sums.line(row), out.begin() + (sums.row + row) * b.columns + sums.column);
  };
  sum_products(spec);
}

// A matrix that is stored in a tensor and is read a stretch at a time: no copy of a large weight is made.
template <class Number>
struct StoredMatrix {
  TensorView view;
  int64_t first = 0;  // the element at [0, 0]
  int64_t rows = 0;
  int64_t columns = 0;
  bool is_transposed = false;  // it is stored as [columns, rows]

  void load_row(int64_t row, std::span<Number> values) const {
    if (!is_transposed) return load<Number>(view, first + row * columns, values);
    for (int64_t k = 0; k < columns; ++k)
      load<Number>(view, first + k * rows + row, values.subspan(static_cast<size_t>(k), 1));
  }

  // panel[k * stride + j] = column first_column + j at row k.
  void load_columns(int64_t first_column, int64_t width, std::span<Number> panel, int64_t stride) const {
    if (!is_transposed) {
      const Lines lines{
          .begin = first + first_column, .stride = columns, .lines = rows, .width = width, .spacing = stride};
      return load_lines<Number>(view, lines, panel);
    }
    // Stretches of a few columns at a time: they stay in the first-level cache.
    constexpr int64_t kColumns = 8, kStretch = 64;
    alignas(64) std::array<Number, kColumns * kStretch> stretches;
    for (int64_t j = 0; j < width; j += kColumns) {
      for (int64_t k = 0; k < rows; k += kStretch) {
        const Lines lines{.begin = first + (first_column + j) * rows + k,
                          .stride = rows,
                          .lines = std::min(kColumns, width - j),
                          .width = std::min(kStretch, rows - k),
                          .spacing = kStretch};
        load_lines<Number>(view, lines, stretches);
        interleave_lines(stretches.data(),
                         {.lines = lines.lines, .length = lines.width, .stride = kStretch, .out_stride = stride},
                         panel.data() + k * stride + j);
      }
    }
  }
};

// a * b; `store` takes blocks of it, from several threads at once.
template <class Number, class Store>
void multiply_stored(const StoredMatrix<Number>& a, const StoredMatrix<Number>& b, const Store& store) {
  ProductSpec<Number> spec;
  spec.has_exact_products = have_exact_products(a.view.dtype, b.view.dtype);
  spec.rows = a.rows;
  spec.columns = b.columns;
  spec.depth = a.columns;
  spec.load_row = [&](int64_t row, std::span<Number> values) { a.load_row(row, values); };
  spec.load_columns = [&](int64_t first, int64_t width, std::span<Number> panel) {
    b.load_columns(first, width, panel, width);
  };
  spec.store = store;
  sum_products(spec);
}

}  // namespace parallax::reference
