// SPDX-License-Identifier: Apache-2.0
// Squares in registers, which nvcc does not compile.
#include "runtime/device/cpu/transpose_blocks.h"

#include "inspector/base/transpose_block.h"
#include "runtime/device/cpu/multiversion.h"

namespace parallax::runtime {
namespace {

// Few long lines.
template <int kLines, class T>
inline void lace_lines(T* target, const T* source, int64_t source_stride, int64_t rows) {
  const T* lines[kLines];
  for (int line = 0; line < kLines; ++line) lines[line] = source + line * source_stride;
  PX_INDEPENDENT_ITERATIONS
  for (int64_t row = 0; row < rows; ++row) {
    for (int line = 0; line < kLines; ++line) target[row * kLines + line] = lines[line][row];
  }
}

}  // namespace

template <class T>
void transpose(T* target, int64_t target_stride, const T* source, int64_t source_stride, int64_t rows,
               int64_t columns) {
  // In a loop of one, for the registers that wider instructions come with.
  vectorized(0, 1, [=](int64_t, int64_t) {
    constexpr int kFew = 3;
    if (columns == kFew && target_stride == kFew) return lace_lines<kFew>(target, source, source_stride, rows);
    transpose_tile(target, target_stride, source, source_stride, rows, columns);
  });
}

template void transpose(float*, int64_t, const float*, int64_t, int64_t, int64_t);
template void transpose(double*, int64_t, const double*, int64_t, int64_t, int64_t);
template void transpose(int32_t*, int64_t, const int32_t*, int64_t, int64_t, int64_t);
template void transpose(uint8_t*, int64_t, const uint8_t*, int64_t, int64_t, int64_t);

}  // namespace parallax::runtime
