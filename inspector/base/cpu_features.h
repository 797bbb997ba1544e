// SPDX-License-Identifier: Apache-2.0
// The vector instructions that kernels may use: detected once, and lowered by PARALLAX_ISA for tests and bug reports.
#pragma once

#include <cstdint>
#include <string_view>

namespace parallax {

// The instructions that a kernel compiled for a level may use, each level with all below it. On processors that are not
// x86-64 the level is `baseline`.
enum class VectorLevel : uint8_t {
  baseline,  // what every processor of the architecture has
  avx2,      // AVX2, FMA, F16C, BMI, BMI2, POPCNT
  avx512,    // AVX-512 F, BW, DQ, VL
};

// Instructions that few kernels use, besides the level.
enum class CpuFeature : uint8_t { sse42, avx512_vnni, avx512_vbmi, avx512_bf16, avx512_clmul };

// The widest level of this processor, but none above that of the environment variable PARALLAX_ISA (portable, avx2 or
// avx512; any other text is ignored), or the level last set by a test.
VectorLevel vector_level();

// True where the processor has the feature; those of AVX-512 only where vector_level() is avx512, SSE 4.2 not where
// PARALLAX_ISA is portable.
bool has_feature(CpuFeature feature);

// Lowers the level, or raises it again to what the processor has; a level that it lacks is ignored.
void set_vector_level_for_tests(VectorLevel level);

// "AVX-512", "AVX2", "baseline".
std::string_view name_of(VectorLevel level);

}  // namespace parallax
