// SPDX-License-Identifier: Apache-2.0
// Queries the processor; no other file does.
#include "inspector/base/cpu_features.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace parallax {
namespace {

#if defined(__x86_64__)
// clang 14 knows no __builtin_cpu_supports("f16c"); every processor lists it in leaf 1.
bool has_f16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

VectorLevel level_of_processor() {
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c() &&
                        __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                        __builtin_cpu_supports("popcnt");
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (!has_avx2) return VectorLevel::baseline;
  return has_avx512 ? VectorLevel::avx512 : VectorLevel::avx2;
}

bool processor_has(CpuFeature feature) {
  switch (feature) {
    case CpuFeature::sse42:
      return __builtin_cpu_supports("sse4.2") != 0;
    case CpuFeature::avx512_vnni:
      return __builtin_cpu_supports("avx512vnni") != 0;
    case CpuFeature::avx512_vbmi:
      return __builtin_cpu_supports("avx512vbmi") != 0;
    case CpuFeature::avx512_bf16:
      return __builtin_cpu_supports("avx512bf16") != 0;
    case CpuFeature::avx512_clmul:
      return __builtin_cpu_supports("vpclmulqdq") != 0;
  }
  return false;
}
#else
VectorLevel level_of_processor() { return VectorLevel::baseline; }
bool processor_has(CpuFeature) { return false; }
#endif

VectorLevel allowed_level() {
  const char* const text = std::getenv("PARALLAX_ISA");  // NOLINT(concurrency-mt-unsafe): read once, never written
  const std::string_view name = text == nullptr ? "" : text;
  if (name == "portable") return VectorLevel::baseline;
  return name == "avx2" ? VectorLevel::avx2 : VectorLevel::avx512;
}

// Kernels ask at every call: one load.
std::atomic<VectorLevel>& level() {
  static std::atomic<VectorLevel> value = std::min(level_of_processor(), allowed_level());
  return value;
}

}  // namespace

VectorLevel vector_level() { return level().load(std::memory_order_relaxed); }

bool has_feature(CpuFeature feature) {
  static const bool is_portable = allowed_level() == VectorLevel::baseline;
  if (feature == CpuFeature::sse42) return !is_portable && processor_has(feature);
  return vector_level() == VectorLevel::avx512 && processor_has(feature);
}

void set_vector_level_for_tests(VectorLevel wanted) {
  if (wanted <= level_of_processor()) level().store(wanted);
}

std::string_view name_of(VectorLevel level) {
  switch (level) {
    case VectorLevel::avx512:
      return "AVX-512";
    case VectorLevel::avx2:
      return "AVX2";
    case VectorLevel::baseline:
      break;
  }
  return "baseline";
}

}  // namespace parallax
