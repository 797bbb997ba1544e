// Transposing small squares of elements in vector registers.
#pragma once

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
  for (int64_t i = 0; i < kRows; ++i) std::memcpy(&rows[i], source + i * source_stride, sizeof(V));
  for (int64_t round = 1; round < kRows; round *= 2) {
    V mixed[kRows];
    for (int64_t i = 0; i < kRows / 2; ++i) {
      mixed[2 * i] = transpose_detail::interleave<0>(rows[i], rows[i + kRows / 2], kIndices);
      mixed[2 * i + 1] = transpose_detail::interleave<kRows>(rows[i], rows[i + kRows / 2], kIndices);
    }
    for (int64_t i = 0; i < kRows; ++i) rows[i] = mixed[i];
  }
  for (int64_t i = 0; i < kRows; ++i) std::memcpy(target + i * target_stride, &rows[i], sizeof(V));
}

}  // namespace parallax
