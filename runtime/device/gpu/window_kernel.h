// SPDX-License-Identifier: Apache-2.0
// window_fold and conv on a GPU: a thread for each output position walks the taps of its window.
#pragma once

#include <cmath>
#include <type_traits>

#include "runtime/device/cpu/products/conv.h"
#include "runtime/device/cpu/window.h"
#include "runtime/device/gpu/launch.h"
#include "runtime/device/gpu/memory.h"

namespace parallax::runtime {
namespace gpu {

// WindowGeometry by value.
struct Window {
  int axes;
  int64_t in_plane, out_plane, taps;
  int64_t in_spatial[Shape::kMaxRank], out_spatial[Shape::kMaxRank], kernel[Shape::kMaxRank];
  int64_t strides[Shape::kMaxRank], dilations[Shape::kMaxRank], pads_begin[Shape::kMaxRank];
};

inline Window window_by_value(const WindowGeometry& geometry) {
  Window window{};
  window.axes = static_cast<int>(geometry.kernel.size());
  window.in_plane = product(geometry.in_spatial);
  window.out_plane = product(geometry.out_spatial);
  window.taps = product(geometry.kernel);
  for (int64_t axis = 0; axis < geometry.kernel.size(); ++axis) {
    window.in_spatial[axis] = geometry.in_spatial[axis];
    window.out_spatial[axis] = geometry.out_spatial[axis];
    window.kernel[axis] = geometry.kernel[axis];
    window.strides[axis] = geometry.strides[axis];
    window.dilations[axis] = geometry.dilations[axis];
    window.pads_begin[axis] = geometry.pads_begin[axis];
  }
  return window;
}

// The offset in its input plane of tap number `tap` of the window at output position `location`; -1 outside.
PX_HD inline int64_t tap_offset(const Window& window, int64_t location, int64_t tap) {
  int64_t offset = 0, scale = 1;
  for (int axis = window.axes - 1; axis >= 0; --axis) {
    const int64_t at = location % window.out_spatial[axis] * window.strides[axis] - window.pads_begin[axis] +
                       tap % window.kernel[axis] * window.dilations[axis];
    if (at < 0 || at >= window.in_spatial[axis]) return -1;
    offset += at * scale;
    scale *= window.in_spatial[axis];
    location /= window.out_spatial[axis];
    tap /= window.kernel[axis];
  }
  return offset;
}

// The transpose's view: the input position that tap number `tap` carries to output position `location`; -1 where there
// is none.
PX_HD inline int64_t transposed_tap_offset(const Window& window, int64_t location, int64_t tap) {
  int64_t offset = 0, scale = 1;
  for (int axis = window.axes - 1; axis >= 0; --axis) {
    const int64_t shifted = location % window.out_spatial[axis] + window.pads_begin[axis] -
                            tap % window.kernel[axis] * window.dilations[axis];
    if (shifted < 0 || shifted % window.strides[axis] != 0) return -1;
    const int64_t at = shifted / window.strides[axis];
    if (at >= window.in_spatial[axis]) return -1;
    offset += at * scale;
    scale *= window.in_spatial[axis];
    location /= window.out_spatial[axis];
    tap /= window.kernel[axis];
  }
  return offset;
}

// out[plane][position] = the fold of the window's values; see window_fold in window.h.
template <class Device, class C, class Fold>
struct WindowFoldKernel {
  static constexpr const char* kName = "window_fold";
  Fold fold;
  Window window;
  Source in;
  Target out, locations;
  int64_t planes;

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    for_each_item(launch, planes * window.out_plane, [&](int64_t item) {
      const int64_t plane = item / window.out_plane;
      const int64_t location = item % window.out_plane;
      auto state = fold.template init<C>();
      for (int64_t tap = 0; tap < window.taps; ++tap) {
        const int64_t offset = tap_offset(window, location, tap);
        if (offset < 0) continue;
        state = fold.step(state, load<Device, C>(in, plane * window.in_plane + offset), offset);
      }
      int64_t position[Shape::kMaxRank] = {};
      int64_t rest = location;
      for (int axis = window.axes - 1; axis >= 0; --axis) {
        position[axis] = rest % window.out_spatial[axis];
        rest /= window.out_spatial[axis];
      }
      store<Device, C>(out, item, fold.finish(state, position));
      if (locations) store<Device, int64_t>(locations, item, fold.location(state, plane * window.in_plane));
    });
  }
};

template <class Device, class C, bool kTransposed>
struct ConvKernel {
  static constexpr const char* kName = kTransposed ? "conv_transpose" : "conv";
  Window window;
  Elements<Device, const C> x, filters, bias;
  Elements<Device, C> y;
  int64_t batch, in_channels, out_channels, groups;

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    const int64_t in_per_group = in_channels / groups;
    const int64_t out_per_group = out_channels / groups;
    for_each_item(launch, batch * out_channels * window.out_plane, [&](int64_t item) {
      const int64_t location = item % window.out_plane;
      const int64_t channel = item / window.out_plane % out_channels;
      const int64_t sample = item / window.out_plane / out_channels;
      const int64_t group = channel / out_per_group;
      const int64_t first = sample * in_channels + group * in_per_group;
      C sum = bias ? bias[channel] : C(0);
      for (int64_t tap = 0; tap < window.taps; ++tap) {
        const int64_t offset =
            kTransposed ? transposed_tap_offset(window, location, tap) : tap_offset(window, location, tap);
        if (offset < 0) continue;
        for (int64_t input = 0; input < in_per_group; ++input) {
          const int64_t filter = kTransposed ? (group * in_per_group + input) * out_per_group + channel % out_per_group
                                             : channel * in_per_group + input;
          const C value = x[(first + input) * window.in_plane + offset], weight = filters[filter * window.taps + tap];
          if constexpr (std::is_floating_point_v<C>) {
            sum = std::fma(value, weight, sum);
          } else {
            sum += value * weight;
          }
        }
      }
      y[item] = sum;
    });
  }
};

template <bool kTransposed, class C, GpuDevice Gpu>
Status convolve(Queue<Gpu>& queue, const ConvProblem& problem, const C* x, const C* filters, const C* bias, C* y) {
  const WindowGeometry geometry{problem.in_spatial, problem.out_spatial, problem.kernel,
                                problem.strides,    problem.dilations,   problem.pads_begin};
  const ConvKernel<Gpu, C, kTransposed> kernel{
      window_by_value(geometry), {x},           {filters}, {bias}, {y}, problem.batch, problem.in_channels,
      problem.out_channels,      problem.groups};
  launch(queue, kernel, size_for_items(queue, problem.batch * problem.out_channels * product(problem.out_spatial)));
  return {};
}

}  // namespace gpu

template <class C, GpuDevice Gpu>
Status conv(Queue<Gpu>& queue, const ConvProblem& problem, const C* x, const C* filters, const C* bias, C* y) {
  return gpu::convolve<false>(queue, problem, x, filters, bias, y);
}

template <class C, GpuDevice Gpu>
Status conv_transpose(Queue<Gpu>& queue, const ConvProblem& problem, const C* x, const C* filters, const C* bias,
                      C* y) {
  return gpu::convolve<true>(queue, problem, x, filters, bias, y);
}

template <class C, class Fold, GpuDevice Gpu>
void window_fold(Queue<Gpu>& queue, const Fold& fold, const WindowGeometry& geometry, int64_t planes,
                 const MutableView& out, const MutableView& locations, const TensorView& in) {
  const gpu::WindowFoldKernel<Gpu, C, Fold> kernel{fold,           gpu::window_by_value(geometry), source_of(in),
                                                   target_of(out), target_of(locations),           planes};
  launch(queue, kernel, gpu::size_for_items(queue, planes * kernel.window.out_plane));
}

}  // namespace parallax::runtime
