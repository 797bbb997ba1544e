// SPDX-License-Identifier: Apache-2.0
// The kernels of the metrics by vector level.
#include "inspector/diff/metrics/metrics_kernel.h"

#include "inspector/diff/metrics/metrics.h"

namespace parallax {
namespace diff {

#define PX_DECLARE_KERNELS(SET)                                                                                   \
  void metrics_floats_##SET(NumberFormat format, const std::byte* a, const std::byte* b, int64_t count,           \
                            const Filter<float>& filter, BlockResult& result, uint8_t* buckets);                  \
  void metrics_doubles_##SET(const std::byte* a, const std::byte* b, int64_t count, const Filter<double>& filter, \
                             BlockResult& result, uint8_t* buckets);                                              \
  void metrics_buckets_##SET(const uint8_t* buckets, int64_t count, int64_t* histogram)
PX_DECLARE_KERNELS(portable);
#if defined(__x86_64__)
PX_DECLARE_KERNELS(avx2);
PX_DECLARE_KERNELS(avx512);
#endif
#undef PX_DECLARE_KERNELS

const Kernels& kernels_in_use() {
#if defined(__x86_64__)
  static constexpr Kernels kAvx512 = {"avx512", metrics_floats_avx512, metrics_doubles_avx512, metrics_buckets_avx512};
  static constexpr Kernels kAvx2 = {"avx2", metrics_floats_avx2, metrics_doubles_avx2, metrics_buckets_avx2};
  if (vector_level() == VectorLevel::avx512) return kAvx512;
  if (vector_level() == VectorLevel::avx2) return kAvx2;
#endif
  static constexpr Kernels kPortable = {"portable", metrics_floats_portable, metrics_doubles_portable,
                                        metrics_buckets_portable};
  return kPortable;
}

}  // namespace diff

std::string_view metrics_instruction_set() { return diff::kernels_in_use().name; }

}  // namespace parallax
