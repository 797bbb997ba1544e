// Windows over planes of floats, row by row: the taps of a row of outputs are folded side by side.
#pragma once

#include <algorithm>
#include <type_traits>
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

namespace window_detail {

// Outputs for which a tap lies inside: [begin, end).
struct Span {
  int64_t begin = 0, end = 0;
};

// The taps of one line of the plane into the outputs [begin, end) of a row: tap after tap, where it lies inside.
template <class Fold>
void fold_line(const Fold& fold, const WindowAxis& columns, const std::vector<Span>& inside, const float* line,
               float* row, int64_t begin, int64_t end) {
  for (int64_t tap = 0; tap < columns.kernel; ++tap) {
    const Span span = inside[static_cast<size_t>(tap)];
    const float* const from = line + columns.begin_of(tap);
    const int64_t last = std::min(end, span.end);
    for (int64_t i = std::max(begin, span.begin); i < last; ++i) row[i] = fold.step(row[i], from[i * columns.stride]);
  }
}

template <int kTaps, int kStride, class Fold>
void fold_whole_line(const Fold& fold, const WindowAxis& columns, const float* line, float* row, int64_t begin,
                     int64_t end) {
  vectorised(begin, end, [=, &columns](int64_t first, int64_t last) {
    const float* const from = line - columns.pad;
    const int64_t dilation = columns.dilation;
    float* const to = row;
    PX_INDEPENDENT_ITERATIONS
    for (int64_t i = first; i < last; ++i) {
      float state = to[i];
      for (int tap = 0; tap < kTaps; ++tap) state = fold.step(state, from[i * kStride + tap * dilation]);
      to[i] = state;
    }
  });
}

// The same in the same order for outputs whose taps all lie inside, which a register collects. False for windows and
// strides that are seldom seen.
template <class Fold>
bool fold_whole_line(const Fold& fold, const WindowAxis& columns, const float* line, float* row, int64_t begin,
                     int64_t end) {
  const auto with_stride = [&]<int kTaps>(std::integral_constant<int, kTaps>) {
    if (columns.stride == 1) return fold_whole_line<kTaps, 1>(fold, columns, line, row, begin, end), true;
    if (columns.stride == 2) return fold_whole_line<kTaps, 2>(fold, columns, line, row, begin, end), true;
    return false;
  };
  switch (columns.kernel) {
    case 2:
      return with_stride(std::integral_constant<int, 2>());
    case 3:
      return with_stride(std::integral_constant<int, 3>());
    case 5:
      return with_stride(std::integral_constant<int, 5>());
    default:
      return false;
  }
}

// Folds whose steps may come in any order say so: the lines of a window are folded first, whole, then along them.
template <class Fold>
concept InAnyOrder = Fold::kInAnyOrder;

// `lines`, what came before (none: null), and another one.
template <class Fold>
const float* fold_lines(const Fold& fold, const float* lines, const float* line, int64_t count,
                        std::vector<float>& folded) {
  if (lines == nullptr) return line;
  folded.resize(static_cast<size_t>(count));
  vectorised(0, count, [&fold, lines, line, to = folded.data()](int64_t first, int64_t last) {
    PX_INDEPENDENT_ITERATIONS
    for (int64_t i = first; i < last; ++i) to[i] = fold.step(lines[i], line[i]);
  });
  return folded.data();
}

}  // namespace window_detail

// out[plane][place] as window_fold_channels_last has it, for one or two spatial axes; the Fold's first() is the state
// before the first tap.
template <class Fold>
void window_fold_planes(Queue<Cpu>&, const Fold& fold, const WindowGeometry& window, int64_t planes, float* out,
                        const float* in) {
  const int64_t rank = window.kernel.size();
  const WindowAxis rows = rank == 2 ? window_axis(window, 0) : WindowAxis{};
  const WindowAxis columns = window_axis(window, rank - 1);
  std::vector<int64_t> taps_of_column(static_cast<size_t>(columns.out), 0);
  std::vector<window_detail::Span> inside;
  for (int64_t tap = 0; tap < columns.kernel; ++tap) {
    inside.push_back({columns.first_inside(tap), columns.end_inside(tap)});
    for (int64_t place = inside.back().begin; place < inside.back().end; ++place)
      ++taps_of_column[static_cast<size_t>(place)];
  }
  // Where every tap of a row lies inside.
  const auto partial = [&columns](int64_t taps) { return taps < columns.kernel; };
  const auto first_whole = std::find_if_not(taps_of_column.begin(), taps_of_column.end(), partial);
  const int64_t inner_begin = first_whole - taps_of_column.begin();
  const int64_t inner_end = std::find_if(first_whole, taps_of_column.end(), partial) - taps_of_column.begin();
  const auto fold_into = [&](const float* values, float* row) {
    window_detail::fold_line(fold, columns, inside, values, row, 0, inner_begin);
    if (!window_detail::fold_whole_line(fold, columns, values, row, inner_begin, inner_end)) {
      window_detail::fold_line(fold, columns, inside, values, row, inner_begin, inner_end);
    }
    window_detail::fold_line(fold, columns, inside, values, row, inner_end, columns.out);
  };
  parallel_for(planes * rows.out, columns.out * rows.kernel * columns.kernel, [&](int64_t begin, int64_t end) {
    std::vector<float> folded;  // the lines of a window
    for (int64_t index = begin; index < end; ++index) {
      int64_t position[2] = {index % rows.out, 0};
      const float* plane = in + index / rows.out * rows.in * columns.in;
      float* const row = out + index * columns.out;
      std::fill_n(row, columns.out, fold.first());
      int64_t row_taps = 0;
      const float* lines = nullptr;
      for (int64_t row_tap = 0; row_tap < rows.kernel; ++row_tap) {
        const int64_t line = position[0] * rows.stride + rows.begin_of(row_tap);
        if (line < 0 || line >= rows.in) continue;
        ++row_taps;
        const float* const values = plane + line * columns.in;
        if constexpr (window_detail::InAnyOrder<Fold>) {
          lines = window_detail::fold_lines(fold, lines, values, columns.in, folded);
        } else {
          fold_into(values, row);
        }
      }
      if (lines != nullptr) fold_into(lines, row);
      const int64_t all = rows.kernel * columns.kernel;
      const auto finish = [&](int64_t place) {
        position[rank - 1] = place;
        const int64_t taps = row_taps * taps_of_column[static_cast<size_t>(place)];
        row[place] = taps == 0 ? fold.empty() : row[place] / fold.divisor(taps, position);
      };
      if (row_taps < rows.kernel) {
        for (int64_t place = 0; place < columns.out; ++place) finish(place);
        continue;
      }
      for (int64_t place = 0; place < inner_begin; ++place) finish(place);
      position[rank - 1] = inner_begin;
      const float divisor = fold.divisor(all, position);  // of windows that lie inside
      if (divisor != 1) {
        vectorised(inner_begin, inner_end, [row, divisor](int64_t first, int64_t last) {
          for (int64_t i = first; i < last; ++i) row[i] /= divisor;
        });
      }
      for (int64_t place = inner_end; place < columns.out; ++place) finish(place);
    }
  });
}

}  // namespace parallax::runtime
