// SPDX-License-Identifier: Apache-2.0
// The matrix units as a launch offers them (launch.h), by instructions of PTX ("mma", "cvt"; compute capability 8.0).
// Only nvcc reads it.
#pragma once

#include <bit>
#include <type_traits>

#include "inspector/tensor/float_formats.h"

namespace parallax::runtime::gpu {

class MatrixUnits {
 public:
  template <class T>
  __device__ void multiply_add(float* c, const uint32_t* a, uint32_t b0, uint32_t b1) {
#define PX_MULTIPLY_ADD(shape_and_types)                                                                              \
  asm volatile("mma.sync.aligned." shape_and_types " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                                       \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
    if constexpr (std::is_same_v<T, Float16>) {
      PX_MULTIPLY_ADD("m16n8k16.row.col.f32.f16.f16.f32");
    } else if constexpr (std::is_same_v<T, BFloat16>) {
      PX_MULTIPLY_ADD("m16n8k16.row.col.f32.bf16.bf16.f32");
    } else {
      PX_MULTIPLY_ADD("m16n8k8.row.col.f32.tf32.tf32.f32");
    }
#undef PX_MULTIPLY_ADD
  }
  __device__ uint32_t to_tf32(float value) {
    uint32_t word;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(word) : "f"(value));
    return word;
  }
  template <class T>
  __device__ uint32_t pack(float low, float high) {
    uint32_t word;
    if constexpr (std::is_same_v<T, Float16>) {
      asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    } else {
      asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    }
    return word;
  }
};

}  // namespace parallax::runtime::gpu
