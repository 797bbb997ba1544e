// window_fold: the primitive under pooling and plain convolution: for each output place, the input places its window
// covers.
#pragma once

#include "runtime/device/ints.h"

namespace parallax::runtime {

// How windows lie on the spatial axes of one plane.
struct WindowGeometry {
  Ints in_spatial;
  Ints out_spatial;
  Ints kernel;
  Ints strides;
  Ints dilations;
  Ints pads_begin;
};

// Calls f(input offset, kernel offset) for each tap of the window at `out_position` that lies inside the plane; taps
// run in row-major order of the kernel.
template <class F>
void for_each_tap(const WindowGeometry& window, const int64_t* out_position, const F& f) {
  const int64_t rank = window.kernel.size();
  const int64_t taps = product(window.kernel);
  int64_t tap_position[Shape::kMaxRank] = {};
  for (int64_t tap = 0; tap < taps; ++tap) {
    int64_t offset = 0;
    bool inside = true;
    for (int64_t axis = 0; axis < rank; ++axis) {
      const int64_t place = out_position[axis] * window.strides[axis] - window.pads_begin[axis] +
                            tap_position[axis] * window.dilations[axis];
      inside = inside && place >= 0 && place < window.in_spatial[axis];
      offset = offset * window.in_spatial[axis] + place;
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

}  // namespace parallax::runtime
