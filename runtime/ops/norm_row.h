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
template <class Device, class C>
struct Scaled {
  C mean, rest, factor;
  Elements<Device, const C> scale;
  PX_HD C operator()(C x, int64_t i) const { return ((x - mean) - rest) * factor * scale[i]; }
};
template <class Device, class C>
struct ScaledAndMoved {
  C mean, rest, factor;
  Elements<Device, const C> scale, bias;
  PX_HD C operator()(C x, int64_t i) const { return ((x - mean) - rest) * factor * scale[i] + bias[i]; }
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
    const auto [mean, variance, rest] =
        centered ? moments_of(team) : Moments<C>{C(0), team.fold(SquaredDifferenceSum<C>{C(0)}) / count, C(0)};
    const C inverse = C(1) / std::sqrt(variance + epsilon);
    if (!scale) {
      team.emit(Centered<C>{mean, rest, inverse});
    } else if (!bias) {
      team.emit(Scaled<Device, C>{mean, rest, inverse, scale});
    } else {
      team.emit(ScaledAndMoved<Device, C>{mean, rest, inverse, scale, bias});
    }
    if (mean_out) team.store(mean_out, row, mean);
    if (inverse_out) team.store(inverse_out, row, inverse);
  }
};

}  // namespace parallax::runtime
