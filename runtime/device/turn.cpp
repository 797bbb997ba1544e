// Squares in registers, which nvcc does not compile.
#include "runtime/device/turn.h"

#include "inspector/base/transpose_block.h"

namespace parallax::runtime {

template <class T>
void turn(T* target, int64_t target_stride, const T* source, int64_t source_stride, int64_t rows, int64_t columns) {
  transpose_tile(target, target_stride, source, source_stride, rows, columns);
}

template void turn(float*, int64_t, const float*, int64_t, int64_t, int64_t);
template void turn(double*, int64_t, const double*, int64_t, int64_t, int64_t);

}  // namespace parallax::runtime
