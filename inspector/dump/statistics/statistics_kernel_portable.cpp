// SPDX-License-Identifier: Apache-2.0
// The kernels for any CPU; CMakeLists.txt sets the compiler's options.
#define PX_CHUNK_KERNEL chunk_kernel_portable
#define PX_COPY_KERNEL copy_kernel_portable
#include "inspector/dump/statistics/statistics_kernel_body.h"
