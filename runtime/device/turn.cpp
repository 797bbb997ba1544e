// Whole squares go through registers. Lines of the target are written to their ends before the next ones: where its
// stride is a power of two, a cache holds few of them.
#include "runtime/device/turn.h"

#include "runtime/device/transpose_block.h"

namespace parallax::runtime {

template <class T>
void turn(T* target, int64_t target_stride, const T* source, int64_t source_stride, int64_t rows, int64_t columns) {
  constexpr int64_t kSquare = kTransposeLanes<T>;
  const int64_t whole_rows = rows / kSquare * kSquare, whole_columns = columns / kSquare * kSquare;
  for (int64_t row = 0; row < whole_rows; row += kSquare) {
    for (int64_t column = 0; column < whole_columns; column += kSquare)
      transpose_block(target + row * target_stride + column, target_stride, source + column * source_stride + row,
                      source_stride);
  }
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = row < whole_rows ? whole_columns : 0; column < columns; ++column)
      target[row * target_stride + column] = source[column * source_stride + row];
  }
}

template void turn(float*, int64_t, const float*, int64_t, int64_t, int64_t);
template void turn(double*, int64_t, const double*, int64_t, int64_t, int64_t);

}  // namespace parallax::runtime
