// SPDX-License-Identifier: Apache-2.0
// Lines of numbers laid down as columns: how a matrix that is stored transposed is read.
#pragma once

#include <cstdint>

namespace parallax::reference {

struct InterleavedLines {
  int64_t lines = 0;
  int64_t length = 0;
  int64_t stride = 0;      // from line to line
  int64_t out_stride = 0;  // from one row of the columns to the next
};

// to[k * out_stride + line] = from[line * stride + k].
void interleave_lines(const double* from, const InterleavedLines& how, double* to);
void interleave_lines(const uint64_t* from, const InterleavedLines& how, uint64_t* to);

}  // namespace parallax::reference
