// SPDX-License-Identifier: Apache-2.0
// Small matrices turned on the host, by one thread.
#pragma once

#include <cstdint>

namespace parallax::runtime {

// target[row][column] = source[column][row]; strides between rows, in elements. For float, double, int32 and
// uint8.
template <class T>
void transpose(T* target, int64_t target_stride, const T* source, int64_t source_stride, int64_t rows, int64_t columns);

}  // namespace parallax::runtime
