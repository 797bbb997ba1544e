// SPDX-License-Identifier: Apache-2.0
// RotaryEmbedding of one head on the host: pairs of numbers rotated by angles, as loops that become vector code.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/device/cpu/multiversion.h"

namespace parallax::runtime {

template <class C>
struct HostRotation {
  int64_t half = 0, size = 0;  // pairs, and numbers of the head: those after the pairs stay as they are
  bool interleaved = false;    // the two of a pair are adjacent, else `half` elements from each other
  const C* cosine = nullptr;   // of each pair
  const C* sine = nullptr;

  void run(const C* in, C* out) const {
    vectorized(0, half, [in, out, own = *this](int64_t begin, int64_t end) {
      own.interleaved ? own.transpose_neighbors(in, out, begin, end) : own.transpose_float16(in, out, begin, end);
    });
    std::copy(in + 2 * half, in + size, out + 2 * half);
  }

 private:
  void transpose_neighbors(const C* x, C* y, int64_t begin, int64_t end) const {
    const C *const cosines = cosine, *const sines = sine;
    PX_INDEPENDENT_ITERATIONS
    for (int64_t i = begin; i < end; ++i) {
      const C first = x[2 * i], second = x[2 * i + 1];
      y[2 * i] = first * cosines[i] - second * sines[i];
      y[2 * i + 1] = first * sines[i] + second * cosines[i];
    }
  }
  void transpose_float16(const C* x, C* y, int64_t begin, int64_t end) const {
    const C *const cosines = cosine, *const sines = sine;
    const int64_t distance = half;
    PX_INDEPENDENT_ITERATIONS
    for (int64_t i = begin; i < end; ++i) {
      const C first = x[i], second = x[i + distance];
      y[i] = first * cosines[i] - second * sines[i];
      y[i + distance] = first * sines[i] + second * cosines[i];
    }
  }
};

}  // namespace parallax::runtime
