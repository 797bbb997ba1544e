// SPDX-License-Identifier: Apache-2.0
// Transposing matrices by small squares of elements in vector registers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

namespace parallax {

// Lanes of 16 bytes, the width of registers that every CPU has.
template <class T>
constexpr int64_t kTransposeLanes = 16 / static_cast<int64_t>(sizeof(T));

namespace transpose_detail {

template <class T>
using Vector __attribute__((vector_size(16))) = T;

// Lane i of the result is lane (i + from) / 2 of `a` where i is even, of `b` where it is odd.
template <int from, class V, size_t... I>
inline V interleave(const V& a, const V& b, std::index_sequence<I...>) {
  constexpr int kLanes = sizeof...(I);
  return __builtin_shufflevector(a, b, ((static_cast<int>(I) + from) / 2 + static_cast<int>(I) % 2 * kLanes)...);
}

}  // namespace transpose_detail

// target[j][i] = source[i][j] of a square with kTransposeLanes<T> rows; strides between rows, in elements. Each round
// interleaves row i with row i + half, as often as two goes into the number of rows.
template <class T>
inline void transpose_block(T* target, int64_t target_stride, const T* source, int64_t source_stride) {
  using V = transpose_detail::Vector<T>;
  constexpr int64_t kRows = kTransposeLanes<T>;
  constexpr auto kIndices = std::make_index_sequence<static_cast<size_t>(kRows)>();
  V rows[kRows];
#pragma GCC unroll 16
  for (int64_t i = 0; i < kRows; ++i) std::memcpy(&rows[i], source + i * source_stride, sizeof(V));
#pragma GCC unroll 4
  for (int64_t round = 1; round < kRows; round *= 2) {
    V mixed[kRows];
#pragma GCC unroll 8
    for (int64_t i = 0; i < kRows / 2; ++i) {
      mixed[2 * i] = transpose_detail::interleave<0>(rows[i], rows[i + kRows / 2], kIndices);
      mixed[2 * i + 1] = transpose_detail::interleave<kRows>(rows[i], rows[i + kRows / 2], kIndices);
    }
#pragma GCC unroll 16
    for (int64_t i = 0; i < kRows; ++i) rows[i] = mixed[i];
  }
#pragma GCC unroll 16
  for (int64_t i = 0; i < kRows; ++i) std::memcpy(target + i * target_stride, &rows[i], sizeof(V));
}

// True where rows at this distance share one set of a first-level cache, which has eight ways.
template <class T>
inline bool is_crowded(int64_t stride) {
  constexpr int64_t kPageBytes = 4096;
  return stride * static_cast<int64_t>(sizeof(T)) % kPageBytes == 0;
}

// target[row][column] = source[column][row]; strides between rows, in elements of at most 8 bytes. The target is
// written in whole lines of the cache: where its stride is a power of two, a cache holds few of them. Where it is the
// source's rows that are crowded, eight of them are all that is read at a time.
template <class T>
inline void transpose_tile(T* target, int64_t target_stride, const T* source, int64_t source_stride, int64_t rows,
                           int64_t columns) {
  constexpr int64_t kSquare = kTransposeLanes<T>, kLine = 64 / static_cast<int64_t>(sizeof(T));
  const int64_t whole_rows = rows / kSquare * kSquare, whole_columns = columns / kSquare * kSquare;
  const bool is_source_crowded = is_crowded<T>(source_stride) && !is_crowded<T>(target_stride);
  const int64_t at_once = is_source_crowded ? std::max<int64_t>(kSquare, 8) : kLine;
  for (int64_t line = 0; line < whole_columns; line += at_once) {
    const int64_t end = std::min(whole_columns, line + at_once);
    for (int64_t row = 0; row < whole_rows; row += kSquare) {
      for (int64_t column = line; column < end; column += kSquare)
        transpose_block(target + row * target_stride + column, target_stride, source + column * source_stride + row,
                        source_stride);
    }
  }
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = row < whole_rows ? whole_columns : 0; column < columns; ++column)
      target[row * target_stride + column] = source[column * source_stride + row];
  }
}

}  // namespace parallax
