// SPDX-License-Identifier: Apache-2.0
// window_fold: the primitive under pooling and plain convolution: for each output position, the input positions its
// window covers.
#pragma once

#include "inspector/base/thread_pool.h"
#include "runtime/device/cpu/blocks.h"
#include "runtime/device/cpu/ints.h"
#include "runtime/device/cpu/queue_cpu.h"

namespace parallax::runtime {

// The positions of windows on the spatial axes of one plane.
struct WindowGeometry {
  Ints in_spatial;
  Ints out_spatial;
  Ints kernel;
  Ints strides;
  Ints dilations;
  Ints pads_begin;
};

// Calls f(input offset, kernel offset) for each tap of the window at `out_position` that is inside the plane; taps run
// in row-major order of the kernel.
template <class F>
void for_each_tap(const WindowGeometry& window, const int64_t* out_position, const F& f) {
  const int64_t rank = window.kernel.size();
  const int64_t taps = product(window.kernel);
  int64_t tap_position[Shape::kMaxRank] = {};
  for (int64_t tap = 0; tap < taps; ++tap) {
    int64_t offset = 0;
    bool inside = true;
    for (int64_t axis = 0; axis < rank; ++axis) {
      const int64_t location = out_position[axis] * window.strides[axis] - window.pads_begin[axis] +
                               tap_position[axis] * window.dilations[axis];
      inside = inside && location >= 0 && location < window.in_spatial[axis];
      offset = offset * window.in_spatial[axis] + location;
    }
    if (inside) f(offset, tap);
    for (int64_t axis = rank - 1; axis >= 0; --axis) {
      if (++tap_position[axis] < window.kernel[axis]) break;
      tap_position[axis] = 0;
    }
  }
}

// The next position in row-major order.
inline void advance(int64_t* position, const Ints& dims) {
  for (int64_t axis = dims.size() - 1; axis >= 0; --axis) {
    if (++position[axis] < dims[axis]) return;
    position[axis] = 0;
  }
}

// The position number `index` in row-major order.
inline void unravel(int64_t index, const Ints& dims, int64_t* position) {
  for (int64_t axis = dims.size() - 1; axis >= 0; --axis) {
    position[axis] = index % dims[axis];
    index /= dims[axis];
  }
}

// out[plane][position] = finish(fold of the values in the window, position of the window): the Fold has init<C>(),
// step(state, value, offset in the plane), finish(state, position) and, where `locations` are wanted,
// location(state, first element of the plane).
template <class C, class Fold>
void window_fold(Queue<Cpu>&, const Fold& fold, const WindowGeometry& window, int64_t planes, const MutableView& out,
                 const MutableView& locations, const TensorView& in) {
  const int64_t in_plane = product(window.in_spatial);
  const int64_t out_plane = product(window.out_spatial);
  parallel_for(planes, out_plane * product(window.kernel) * 4, [&](int64_t begin, int64_t end) {
    std::vector<C> buffer;
    for (int64_t plane = begin; plane < end; ++plane) {
      const C* values = reinterpret_cast<const C*>(in.data) + plane * in_plane;
      if (in.dtype != storage_of<C>()) {
        buffer.resize(static_cast<size_t>(in_plane));
        load_block<C>(in.dtype, in.data, plane * in_plane, 1, in_plane, buffer.data());
        values = buffer.data();
      }
      int64_t position[Shape::kMaxRank] = {};
      for (int64_t location = 0; location < out_plane; ++location, advance(position, window.out_spatial)) {
        auto state = fold.template init<C>();
        for_each_tap(window, position,
                     [&](int64_t offset, int64_t) { state = fold.step(state, values[offset], offset); });
        const C result = fold.finish(state, position);
        store_block<C>(out.dtype, out.data, plane * out_plane + location, 1, &result);
        if (locations.data == nullptr) continue;
        const int64_t where = fold.location(state, plane * in_plane);
        store_block<int64_t>(locations.dtype, locations.data, plane * out_plane + location, 1, &where);
      }
    }
  });
}

}  // namespace parallax::runtime
