// SPDX-License-Identifier: Apache-2.0
// The kernels of the metrics for AVX2; CMakeLists.txt sets the compiler's options.
#define PX_METRICS_FLOATS metrics_floats_avx2
#define PX_METRICS_DOUBLES metrics_doubles_avx2
#define PX_METRICS_BUCKETS metrics_buckets_avx2
#include "inspector/diff/metrics/metrics_kernel_body.h"
