// SPDX-License-Identifier: Apache-2.0
// The kernels for AVX-512; CMakeLists.txt sets the compiler's options.
#define PX_CHUNK_KERNEL chunk_kernel_avx512
#define PX_COPY_KERNEL copy_kernel_avx512
#include "inspector/dump/statistics/statistics_kernel_body.h"
