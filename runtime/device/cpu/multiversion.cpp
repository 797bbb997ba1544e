// SPDX-License-Identifier: Apache-2.0
// Which vector instructions this CPU has.
#include "runtime/device/cpu/multiversion.h"

#include <atomic>

namespace parallax::runtime {
namespace {

VectorLevel detect() {
#if defined(__x86_64__)
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                        __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (has_avx2 && has_avx512) return VectorLevel::avx512;
  if (has_avx2) return VectorLevel::avx2;
#endif
  return VectorLevel::baseline;
}

std::atomic<VectorLevel>& level() {
  static std::atomic<VectorLevel> value = detect();
  return value;
}

}  // namespace

VectorLevel vector_level() { return level().load(std::memory_order_relaxed); }

void set_vector_level_for_tests(VectorLevel wanted) {
  if (wanted <= detect()) level().store(wanted);
}

}  // namespace parallax::runtime
