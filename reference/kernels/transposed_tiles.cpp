// SPDX-License-Identifier: Apache-2.0
// Lines as columns, a square block of as many lines as a vector has lanes at a time.
#include "reference/kernels/transposed_tiles.h"

#include <algorithm>
#include <utility>

#include "reference/kernels/lanes.h"

namespace parallax::reference {
namespace {

// Numbers of a and b in turn, kPairs of each, from element kFirst on.
template <int kFirst, int kLanes, class Vector, int... kPositions>
PX_INLINE inline Vector in_turn(Vector a, Vector b, std::integer_sequence<int, kPositions...>) {
  return __builtin_shufflevector(a, b, (kFirst + kPositions / 2 + kPositions % 2 * kLanes)...);
}

// A position in the square is written as the bits of its line and then those of its column. To lay each line of the
// upper half and one of the lower half in turn moves these bits round by one: once for each bit of a line, and lines
// and columns are exchanged.
template <class Number, int kLanes>
PX_INLINE inline void transpose_square(const Number* from, const InterleavedLines& how, Number* to) {
  using Vector = typename VectorOf<Number, kLanes>::Type;
  using InMemory = typename VectorOf<Number, kLanes>::InMemory;
  using Locations = std::make_integer_sequence<int, kLanes>;
  Vector lines[kLanes];
  for (int line = 0; line < kLanes; ++line) lines[line] = *reinterpret_cast<const InMemory*>(from + line * how.stride);
  for (int bit = 1; bit < kLanes; bit *= 2) {
    Vector next[kLanes];
    for (int line = 0; line < kLanes / 2; ++line) {
      const Vector upper = lines[line], lower = lines[line + kLanes / 2];
      next[2 * line] = in_turn<0, kLanes>(upper, lower, Locations{});
      next[2 * line + 1] = in_turn<kLanes / 2, kLanes>(upper, lower, Locations{});
    }
    std::copy(next, next + kLanes, lines);
  }
  for (int row = 0; row < kLanes; ++row) *reinterpret_cast<InMemory*>(to + row * how.out_stride) = lines[row];
}

template <class Number>
void transpose(const Number* from, const InterleavedLines& how, Number* to) {
  with_widest_vectors([=](auto lanes) PX_INLINE {
    const auto transpose_one = [=](int64_t line, int64_t k)
                                   PX_INLINE { to[k * how.out_stride + line] = from[line * how.stride + k]; };
    int64_t line = 0;
    for (; line + lanes <= how.lines; line += lanes) {
      int64_t k = 0;
      for (; k + lanes <= how.length; k += lanes)
        transpose_square<Number, lanes>(from + line * how.stride + k, how, to + k * how.out_stride + line);
      for (; k < how.length; ++k) {
        for (int64_t own = line; own < line + lanes; ++own) transpose_one(own, k);
      }
    }
    for (; line < how.lines; ++line) {
      for (int64_t k = 0; k < how.length; ++k) transpose_one(line, k);
    }
  });
}

}  // namespace

void interleave_lines(const double* from, const InterleavedLines& how, double* to) { transpose(from, how, to); }
void interleave_lines(const uint64_t* from, const InterleavedLines& how, uint64_t* to) { transpose(from, how, to); }

}  // namespace parallax::reference
