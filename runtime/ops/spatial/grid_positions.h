// SPDX-License-Identifier: Apache-2.0
// The elements of a feature map that GridSample reads at each position of a grid, and their weights.
#pragma once

#include <cmath>
#include <cstdint>

#include "runtime/device/elements.h"
#include "runtime/ops/indices.h"

namespace parallax::runtime {

enum class SampleMode : uint8_t { nearest, linear, cubic };
enum class Padding : uint8_t { zeros, border, reflection };

struct GridSettings {
  SampleMode mode = SampleMode::linear;
  Padding padding = Padding::zeros;
  bool align_corners = false;
};

// The elements read along one axis, and their weights; -1: outside, where zeros are read.
template <class C>
struct AxisTaps {
  int64_t positions[4];
  C weights[4];
  int count = 0;
};

// One axis of the feature map: the elements read at a coordinate in [-1, 1].
template <class C>
struct AxisSampler {
  GridSettings settings;
  int64_t length;

  PX_HD void add_taps(C coordinate, AxisTaps<C>& taps) const {
    const C x = located(coordinate), floor = std::floor(x);
    const auto below = static_cast<int64_t>(floor);
    if (settings.mode == SampleMode::nearest) {
      add(taps, static_cast<int64_t>(std::nearbyint(x)), C(1));
    } else if (settings.mode == SampleMode::linear) {
      add(taps, below, floor + 1 - x);
      add(taps, below + 1, x - floor);
    } else {
      const C t = x - floor;
      add(taps, below - 1, far_weight(t + 1));
      add(taps, below, near_weight(t));
      add(taps, below + 1, near_weight(1 - t));
      add(taps, below + 2, far_weight(2 - t));
    }
  }

  // In elements. Not finite: outside. Beyond a thousand million elements nothing is inside either.
  PX_HD C located(C coordinate) const {
    const int64_t cut = settings.align_corners ? 1 : 0;  // half of it at either end
    const C x = (coordinate + 1) / 2 * static_cast<C>(length - cut) - static_cast<C>(1 - cut) / 2;
    const bool is_finite = x - x == C(0);
    const C above = x < C(-1e9) ? C(-1e9) : x, between = above > C(1e9) ? C(1e9) : above;
    const C near = is_finite ? between : C(-2);
    if (settings.mode == SampleMode::cubic) return near;
    const C inside = padded(near);
    return is_finite ? inside : near;
  }

 private:
  PX_HD void add(AxisTaps<C>& taps, int64_t position, C weight) const {
    if (position < 0 || position >= length) {
      if (settings.padding == Padding::zeros) {
        position = -1;
      } else {
        const C inside = padded(static_cast<C>(position));
        position = static_cast<int64_t>(std::floor(inside + C(0.5)));
        position = position >= length ? length - 1 : position;
      }
    }
    taps.positions[taps.count] = position;
    taps.weights[taps.count++] = weight;
  }
  PX_HD C padded(C x) const {
    if (settings.padding == Padding::zeros) return x;
    const C last = static_cast<C>(length - 1);
    if (settings.padding == Padding::reflection) {
      const C low = settings.align_corners ? C(0) : C(-0.5);
      x = reflected(x, low, settings.align_corners ? last : last + C(0.5));
    }
    return x < C(0) ? C(0) : (x > last ? last : x);
  }
  PX_HD static C reflected(C x, C low, C high) {
    const C span = high - low;
    if (span <= 0) return low;
    const C distance = std::fmod(std::fabs(x - low), 2 * span);
    return low + (distance > span ? 2 * span - distance : distance);
  }
  // Keys' kernel (1981) with the specification's a = -0.75.
  PX_HD static C near_weight(C d) { return (C(1.25) * d - C(2.25)) * d * d + 1; }
  PX_HD static C far_weight(C d) { return ((C(-0.75) * d + C(3.75)) * d - 6) * d + 3; }
};

// Positions [samples, positions, spatial axes], the last counted from the innermost axis of the feature map outward.
template <class Device, class C>
struct GridPositions {
  Elements<Device, const C> grid;
  GridSettings settings;
  Axes lengths;  // of the feature map's spatial axes
  int64_t channels, locations, plane;

  PX_HD int64_t row_of(int64_t element) const {
    return element / locations / channels * locations + element % locations;
  }

  // Calls f(offset in a plane, weight) for everything that is read at row `row` of the grid, the taps of one axis with
  // those of all others; the offset is -1 outside of the feature map.
  template <class F>
  PX_HD void for_each_tap(int64_t row, const F& f) const {
    AxisTaps<C> taps[Shape::kMaxRank];
    int64_t combinations = 1;
    for (int axis = 0; axis < lengths.count; ++axis) {
      AxisSampler<C>{settings, lengths[axis]}.add_taps(grid[row * lengths.count + lengths.count - 1 - axis],
                                                       taps[axis]);
      combinations *= taps[axis].count;
    }
    for (int64_t number = 0; number < combinations; ++number) {
      int64_t offset = 0, scale = 1, rest = number;
      C weight = 1;
      for (int axis = lengths.count - 1; axis >= 0 && offset >= 0; --axis) {
        const auto tap = static_cast<int>(rest % taps[axis].count);
        rest /= taps[axis].count;
        const int64_t position = taps[axis].positions[tap];
        offset = position < 0 ? -1 : offset + position * scale;
        scale *= lengths[axis];
        weight *= taps[axis].weights[tap];
      }
      f(offset, weight);
    }
  }

  // Calls f for each read of output element `element`, with offsets in the feature map and without reads outside.
  template <class F>
  PX_HD void for_each_read(int64_t element, const F& f) const {
    for_each_tap(row_of(element), [&](int64_t offset, C weight) {
      if (offset >= 0) f(element / locations * plane + offset, weight);
    });
  }
};

}  // namespace parallax::runtime
