// SPDX-License-Identifier: Apache-2.0
// The kernels for AVX2; CMakeLists.txt sets the compiler's options.
#define PX_CHUNK_KERNEL chunk_kernel_avx2
#define PX_COPY_KERNEL copy_kernel_avx2
#include "inspector/dump/statistics/statistics_kernel_body.h"
