// SPDX-License-Identifier: Apache-2.0
// Loops over vectors of numbers, compiled for several widths of them; the widest that this processor has runs. Lanes
// are different numbers, so that the bits do not depend on the choice.
#pragma once

#include <cstdint>
#include <type_traits>

#include "inspector/base/cpu_features.h"

// Marks a function or lambda that such loops are made of: it must become part of the code compiled for each width.
#define PX_INLINE __attribute__((always_inline))

namespace parallax::reference {

// A few numbers side by side; in memory at any address that a number may have.
template <class Number, int kLanes>
struct VectorOf {
  using Type __attribute__((vector_size(kLanes * sizeof(Number)))) = Number;
  using InMemory __attribute__((vector_size(kLanes * sizeof(Number)), aligned(sizeof(Number)), may_alias)) = Number;
};

template <class Body>
void run_baseline(const Body& body) {
  body(std::integral_constant<int, 2>{});
}

#if defined(__x86_64__)
template <class Body>
__attribute__((target("avx2,fma"))) void run_avx2(const Body& body) {
  body(std::integral_constant<int, 4>{});
}

template <class Body>
__attribute__((target("avx512f,avx512dq"))) void run_avx512(const Body& body) {
  body(std::integral_constant<int, 8>{});
}
#endif

// Calls body(lanes), where lanes is a constant: how many doubles a vector of this processor holds. `body` is a lambda
// marked PX_INLINE; plain loops in it are compiled for vectors too.
template <class Body>
void with_widest_vectors(const Body& body) {
#if defined(__x86_64__)
  if (vector_level() == VectorLevel::avx512) return run_avx512(body);
  if (vector_level() == VectorLevel::avx2) return run_avx2(body);
#endif
  run_baseline(body);
}

}  // namespace parallax::reference
