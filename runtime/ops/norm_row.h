// SPDX-License-Identifier: Apache-2.0
// The normalization of one row, on any device; moments_of says how the moments are found.
#pragma once

#include <cmath>

#include "runtime/device/elements.h"
#include "runtime/ops/row_folds.h"

namespace parallax::runtime {

template <class C>
struct Centered {
  C mean, rest, factor;
  PX_HD C operator()(C x, int64_t) const { return ((x - mean) - rest) * factor; }
};
// `along` are arrays that have an element for each of the row; with(x, at) is given those next to x.
template <class Device, class C>
struct Scaled {
  static constexpr int kAlong = 1;
  C mean, rest, factor;
  Elements<Device, const C> along[kAlong];  // the scale
  PX_HD C with(C x, const C (&at)[kAlong]) const { return ((x - mean) - rest) * factor * at[0]; }
  PX_HD C operator()(C x, int64_t i) const { return with(x, {along[0][i]}); }
};
template <class Device, class C>
struct ScaledAndMoved {
  static constexpr int kAlong = 2;
  C mean, rest, factor;
  Elements<Device, const C> along[kAlong];  // scale and bias
  PX_HD C with(C x, const C (&at)[kAlong]) const { return ((x - mean) - rest) * factor * at[0] + at[1]; }
  PX_HD C operator()(C x, int64_t i) const { return with(x, {along[0][i], along[1][i]}); }
};

// The parameters of one row; the statistics of row i go to mean[i] and inverse[i] where they are wanted.
template <class Device, class C>
struct NormRow {
  C epsilon;
  bool centered;
  Elements<Device, const C> scale;
  Elements<Device, const C> bias;
  Target mean_out;
  Target inverse_out;

  template <class Team>
  PX_HD void operator()(Team& team, int64_t row) const {
    const C count = static_cast<C>(team.length());
    emit_by(team,
            centered ? moments_of(team) : Moments<C>{C(0), team.fold(SquaredDifferenceSum<C>{C(0)}) / count, C(0)},
            row);
  }

  // For long rows on GPUs, in parts.
  template <class>
  PX_HD PartMoments init() const {
    return {};
  }
  PX_HD PartMoments merge(const PartMoments& a, const PartMoments& b) const { return merged(a, b); }
  template <class Team>
  PX_HD PartMoments part(Team& team) const {
    const C count = static_cast<C>(team.length());
    const C mean = centered ? team.fold(DifferenceSum<C>{C(0)}) / count : C(0);
    const auto squares = static_cast<double>(team.fold(SquaredDifferenceSum<C>{mean}));
    const double rest = centered ? static_cast<double>(team.fold(DifferenceSum<C>{mean}) / count) : 0.0;
    const double excess = static_cast<double>(count) * rest * rest;
    return {static_cast<double>(count), static_cast<double>(mean) + rest,
            squares > excess ? squares - excess : squares * 0};
  }
  template <class Team>
  PX_HD void emit(Team& team, const PartMoments& whole, int64_t row) const {
    const C mean = static_cast<C>(whole.mean);
    emit_by(team,
            Moments<C>{mean, static_cast<C>(whole.squares / whole.count),
                       static_cast<C>(whole.mean - static_cast<double>(mean))},
            row);
  }

 private:
  // A mean that is not centered is none: parts have zeros, which merging leaves as they are.
  template <class Team>
  PX_HD void emit_by(Team& team, const Moments<C>& moments, int64_t row) const {
    const auto [mean, variance, rest] = moments;
    const C inverse = C(1) / std::sqrt(variance + epsilon);
    if (!scale) {
      team.emit(Centered<C>{mean, rest, inverse});
    } else if (!bias) {
      team.emit(Scaled<Device, C>{mean, rest, inverse, {scale}});
    } else {
      team.emit(ScaledAndMoved<Device, C>{mean, rest, inverse, {scale, bias}});
    }
    if (mean_out) team.store(mean_out, row, mean);
    if (inverse_out) team.store(inverse_out, row, inverse);
  }
};

}  // namespace parallax::runtime
