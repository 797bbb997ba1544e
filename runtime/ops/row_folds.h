// Folds that several families need, and the moments of a row made of them.
#pragma once

#include <cmath>
#include <limits>

#include "runtime/device/folds.h"

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
};

// Two passes over a row that lies in the cache: the mean first, then the squares of the differences from it.
template <class Team>
PX_HD Moments<typename Team::Value> moments_of(Team& team) {
  using C = typename Team::Value;
  const C count = static_cast<C>(team.length());
  const C mean = team.fold(DifferenceSum<C>{C(0)}) / count;
  return {mean, team.fold(SquaredDifferenceSum<C>{mean}) / count};
}

}  // namespace parallax::runtime
