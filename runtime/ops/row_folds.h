// SPDX-License-Identifier: Apache-2.0
// Folds that several families need, and the moments of a row made of them.
#pragma once

#include <cmath>
#include <limits>

#include "runtime/device/cpu/rows/folds.h"

namespace parallax::runtime {

template <class C>
struct DifferenceSum {  // of x - shift
  C shift;
  template <class T>
  PX_HD C init() const {
    return C(0);
  }
  PX_HD C step(C a, C x) const { return a + (x - shift); }
  PX_HD C merge(C a, C b) const { return a + b; }
  PX_HD C finish(C a, int64_t) const { return a; }
};

template <class C>
struct SquaredDifferenceSum {
  C shift;
  template <class T>
  PX_HD C init() const {
    return C(0);
  }
  PX_HD C step(C a, C x) const { return a + (x - shift) * (x - shift); }
  PX_HD C merge(C a, C b) const { return a + b; }
  PX_HD C finish(C a, int64_t) const { return a; }
};

template <class C>
struct Moments {
  C mean;
  C variance;
  C rest;  // mean + rest is the mean with more digits than C has
};

// The number of values of a part of a row, their mean, and the sum of squares around it.
struct PartMoments {
  double count = 0, mean = 0, squares = 0;
};
// Chan, Golub, LeVeque: Updating formulae and a pairwise algorithm for computing sample variances, 1979.
PX_HD inline PartMoments merged(const PartMoments& a, const PartMoments& b) {
  const double count = a.count + b.count;
  if (count == 0) return a;
  const double difference = b.mean - a.mean, share = b.count / count;
  return {count, a.mean + difference * share, a.squares + b.squares + difference * difference * a.count * share};
}

template <class C>
struct LinearFromMean {  // (x - mean) * factor + offset: no digit of x is lost where the mean is large
  Moments<C> moments;
  C factor;
  C offset;
  PX_HD C operator()(C x) const { return ((x - moments.mean) - moments.rest) * factor + offset; }
  PX_HD C operator()(C x, int64_t /*index*/) const { return (*this)(x); }
};

// Two passes over a row that is in the cache: the mean first, then the squares of the differences from it. A third one
// where the mean is so much larger than the deviation that its rounding would show.
template <class Team>
PX_HD Moments<typename Team::Value> moments_of(Team& team) {
  using C = typename Team::Value;
  constexpr C kFar = C(4096);  // of the squares
  const C count = static_cast<C>(team.length());
  const C mean = team.fold(DifferenceSum<C>{C(0)}) / count;
  const C variance = team.fold(SquaredDifferenceSum<C>{mean}) / count;
  if (!(mean * mean > kFar * variance)) return {mean, variance, C(0)};
  const C rest = team.fold(DifferenceSum<C>{mean}) / count;
  return {mean, variance > rest * rest ? variance - rest * rest : C(0), rest};
}

}  // namespace parallax::runtime
