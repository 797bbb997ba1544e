// SPDX-License-Identifier: Apache-2.0
// Folds of a row that primitives and operators share: sum, mean, maximum.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "runtime/device/cpu/math.h"
#include "runtime/device/devices.h"

namespace parallax::runtime {

// Sums and products of signed integers that overflow are undefined behavior: they are made of unsigned ones, and wrap.
template <class C>
PX_HD inline C wrapping_sum(C a, C b) {
  if constexpr (std::is_integral_v<C>) return static_cast<C>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  return a + b;
}
template <class C>
PX_HD inline C wrapping_product(C a, C b) {
  if constexpr (std::is_integral_v<C>) return static_cast<C>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  return a * b;
}
// The least integer is its own magnitude.
template <class C>
PX_HD inline C wrapping_magnitude(C a) {
  if constexpr (std::is_integral_v<C>) return a < C(0) ? static_cast<C>(uint64_t{0} - static_cast<uint64_t>(a)) : a;
  return a < C(0) ? -a : a;
}

// The common part of most folds: they begin at 0, parts add up, and the result is what was folded.
struct FoldBase {
  template <class C>
  PX_HD C init() const {
    return C(0);
  }
  template <class C>
  PX_HD C merge(C a, C b) const {
    return wrapping_sum(a, b);
  }
  template <class C>
  PX_HD C finish(C a, int64_t) const {
    return a;
  }
};
struct FoldSum : FoldBase {
  template <class C>
  PX_HD C step(C a, C x) const {
    return wrapping_sum(a, x);
  }
};
struct FoldMean : FoldSum {
  template <class C>
  PX_HD C finish(C a, int64_t count) const {
    return a / static_cast<C>(count);
  }
};
// -inf (or the least integer) of nothing.
struct FoldMax : FoldBase {
  template <class C>
  PX_HD C init() const {
    return std::numeric_limits<C>::has_infinity ? -std::numeric_limits<C>::infinity()
                                                : std::numeric_limits<C>::lowest();
  }
  template <class C>
  PX_HD C step(C a, C x) const {
    return math::maximum(a, x);
  }
  template <class C>
  PX_HD C merge(C a, C b) const {
    return math::maximum(a, b);
  }
};

}  // namespace parallax::runtime
