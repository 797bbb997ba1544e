// The tile as a template over the number and how many of them a vector holds, and its choice for this processor. Lanes
// are different sums: the bits do not depend on the choice. Included by the files that compile it.
#pragma once

#include "reference/ops/products_kernel.h"

// Accumulators stay in registers only when their loops are unrolled.
#ifdef __clang__
#define PX_UNROLL _Pragma("unroll")
#else
#define PX_UNROLL _Pragma("GCC unroll 8")
#endif

namespace parallax::reference {
namespace {

// kRows * kVectors accumulators stay in registers; a panel that is wider than kVectors is passed over in strips.
template <class Number, int kRows, int kLanes, int kVectors>
__attribute__((always_inline)) inline void tile(const Number* rows, const Number* panel, int64_t depth, Number* sums) {
  using Vector __attribute__((vector_size(kLanes * sizeof(Number)), aligned(sizeof(Number)), may_alias)) = Number;
  constexpr int64_t kStrip = int64_t{kLanes} * kVectors;
  for (int64_t strip = 0; strip < kPanelWidth; strip += kStrip) {
    Vector held[kRows][kVectors];
    PX_UNROLL
    for (int r = 0; r < kRows; ++r) {
      PX_UNROLL
      for (int v = 0; v < kVectors; ++v)
        held[r][v] = *reinterpret_cast<const Vector*>(sums + r * kPanelWidth + strip + v * kLanes);
    }
    for (int64_t k = 0; k < depth; ++k) {
      const auto* line = panel + k * kPanelWidth + strip;
      PX_UNROLL
      for (int r = 0; r < kRows; ++r) {
        PX_UNROLL
        for (int v = 0; v < kVectors; ++v)
          held[r][v] += rows[k * kRows + r] * *reinterpret_cast<const Vector*>(line + v * kLanes);
      }
    }
    PX_UNROLL
    for (int r = 0; r < kRows; ++r) {
      PX_UNROLL
      for (int v = 0; v < kVectors; ++v)
        *reinterpret_cast<Vector*>(sums + r * kPanelWidth + strip + v * kLanes) = held[r][v];
    }
  }
}

template <class Number, int kRows>
void tile_baseline(const Number* rows, const Number* panel, int64_t depth, Number* sums) {
  tile<Number, kRows, 2, 8 / kRows>(rows, panel, depth, sums);
}

#if defined(__x86_64__)
template <class Number, int kRows>
__attribute__((target("avx2,fma"))) void tile_avx2(const Number* rows, const Number* panel, int64_t depth,
                                                   Number* sums) {
  tile<Number, kRows, 4, 8 / kRows>(rows, panel, depth, sums);
}

template <class Number, int kRows>
__attribute__((target("avx512f,avx512dq"))) void tile_avx512(const Number* rows, const Number* panel, int64_t depth,
                                                             Number* sums) {
  tile<Number, kRows, 8, 4>(rows, panel, depth, sums);
}
#endif

template <class Number, int kRows = kTileRows>
TileKernel<Number> tile_kernel() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) return tile_avx512<Number, kRows>;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return tile_avx2<Number, kRows>;
#endif
  return tile_baseline<Number, kRows>;
}

}  // namespace
}  // namespace parallax::reference
