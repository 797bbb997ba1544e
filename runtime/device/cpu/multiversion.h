// SPDX-License-Identifier: Apache-2.0
// Runs a loop compiled for the widest vectors that this CPU has. The body is a lambda over [begin, end) that the
// compiler inlines into one function for each instruction set; floating-point results do not depend on which one runs,
// because contraction is off and no sum is reassociated by the compiler.
#pragma once

#include <cstdint>

#include "inspector/base/cpu_features.h"

#ifdef __CUDACC__
#define PX_FLATTEN_FOR(features)
#elif defined(__x86_64__)
#define PX_FLATTEN_FOR(features) __attribute__((target(features), flatten))
#else
#define PX_FLATTEN_FOR(features) __attribute__((flatten))
#endif

// Before a loop whose iterations do not depend on each other, though its arrays may be one and the same (in place).
#if defined(__clang__)
#define PX_INDEPENDENT_ITERATIONS _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__) && !defined(__CUDACC__)
#define PX_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#else
#define PX_INDEPENDENT_ITERATIONS
#endif

namespace parallax::runtime {

template <class Body>
PX_FLATTEN_FOR("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi,bmi2")
void run_avx512(const Body& body, int64_t begin, int64_t end) {
  body(begin, end);
}

template <class Body>
PX_FLATTEN_FOR("avx2,fma,f16c,bmi,bmi2")
void run_avx2(const Body& body, int64_t begin, int64_t end) {
  body(begin, end);
}

template <class Body>
void vectorized(int64_t begin, int64_t end, const Body& body) {
  switch (vector_level()) {
    case VectorLevel::avx512:
      return run_avx512(body, begin, end);
    case VectorLevel::avx2:
      return run_avx2(body, begin, end);
    case VectorLevel::baseline:
      return body(begin, end);
  }
}

}  // namespace parallax::runtime
