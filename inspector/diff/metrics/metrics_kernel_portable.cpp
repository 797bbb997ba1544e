// SPDX-License-Identifier: Apache-2.0
// The kernels of the metrics for any CPU; CMakeLists.txt sets the compiler's options.
#define PX_METRICS_FLOATS metrics_floats_portable
#define PX_METRICS_DOUBLES metrics_doubles_portable
#define PX_METRICS_BUCKETS metrics_buckets_portable
#include "inspector/diff/metrics/metrics_kernel_body.h"
