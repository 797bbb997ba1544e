// Windows over planes of floats, row by row: the taps of a row of outputs are folded side by side.
#pragma once

#include <algorithm>
#include <vector>

#include "runtime/device/multiversion.h"
#include "runtime/device/window.h"

namespace parallax::runtime {

// One axis of windows: place `out` covers out * stride - pad + tap * dilation for each tap.
struct WindowAxis {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, pad = 0;

  int64_t begin_of(int64_t tap) const { return tap * dilation - pad; }
  // The outputs [first, end) for which `tap` lies inside.
  int64_t first_inside(int64_t tap) const {
    const int64_t begin = begin_of(tap);
    return std::min(out, begin >= 0 ? 0 : (-begin + stride - 1) / stride);
  }
  int64_t end_inside(int64_t tap) const {
    const int64_t left = in - begin_of(tap);
    return std::clamp(left <= 0 ? 0 : (left - 1) / stride + 1, first_inside(tap), out);
  }
};

inline WindowAxis window_axis(const WindowGeometry& window, int64_t axis) {
  return {window.in_spatial[axis], window.out_spatial[axis], window.kernel[axis],
          window.strides[axis],    window.dilations[axis],   window.pads_begin[axis]};
}

// out[plane][place] as window_fold_channels_last has it, for one or two spatial axes; the Fold's first() is the state
// before the first tap.
template <class Fold>
void window_fold_planes(Queue<Cpu>&, const Fold& fold, const WindowGeometry& window, int64_t planes, float* out,
                        const float* in) {
  const int64_t rank = window.kernel.size();
  const WindowAxis rows = rank == 2 ? window_axis(window, 0) : WindowAxis{};
  const WindowAxis columns = window_axis(window, rank - 1);
  std::vector<int64_t> taps_of_column(static_cast<size_t>(columns.out), 0);
  for (int64_t tap = 0; tap < columns.kernel; ++tap) {
    for (int64_t place = columns.first_inside(tap); place < columns.end_inside(tap); ++place)
      ++taps_of_column[static_cast<size_t>(place)];
  }
  parallel_for(planes * rows.out, columns.out * rows.kernel * columns.kernel, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      int64_t position[2] = {index % rows.out, 0};
      const float* plane = in + index / rows.out * rows.in * columns.in;
      float* const row = out + index * columns.out;
      std::fill_n(row, columns.out, fold.first());
      int64_t row_taps = 0;
      for (int64_t row_tap = 0; row_tap < rows.kernel; ++row_tap) {
        const int64_t line = position[0] * rows.stride + rows.begin_of(row_tap);
        if (line < 0 || line >= rows.in) continue;
        ++row_taps;
        for (int64_t tap = 0; tap < columns.kernel; ++tap) {
          const float* const values = plane + line * columns.in + columns.begin_of(tap);
          vectorised(columns.first_inside(tap), columns.end_inside(tap), [=, &columns](int64_t first, int64_t last) {
            const float* const from = values;
            float* const to = row;
            const int64_t stride = columns.stride;
            if (stride == 1) {
              for (int64_t i = first; i < last; ++i) to[i] = fold.step(to[i], from[i]);
            } else if (stride == 2) {
              for (int64_t i = first; i < last; ++i) to[i] = fold.step(to[i], from[2 * i]);
            } else {
              for (int64_t i = first; i < last; ++i) to[i] = fold.step(to[i], from[i * stride]);
            }
          });
        }
      }
      const int64_t all = rows.kernel * columns.kernel;
      const float whole = fold.divisor(all, position);  // of windows that lie inside
      for (int64_t i = 0; i < columns.out; ++i) {
        position[rank - 1] = i;
        const int64_t taps = row_taps * taps_of_column[static_cast<size_t>(i)];
        row[i] = taps == 0 ? fold.empty() : row[i] / (taps == all ? whole : fold.divisor(taps, position));
      }
    }
  });
}

}  // namespace parallax::runtime
