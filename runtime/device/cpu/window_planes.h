// SPDX-License-Identifier: Apache-2.0
// Windows over planes of floats, tile by tile: the lines of windows are folded first, then along them, many outputs
// side by side.
#pragma once

#include <algorithm>
#include <vector>

#include "runtime/device/cpu/multiversion.h"
#include "runtime/device/cpu/window.h"

namespace parallax::runtime {

// One axis of windows: output `out` covers out * stride - pad + tap * dilation for each tap.
struct WindowAxis {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, pad = 0;

  int64_t begin_of(int64_t tap) const { return tap * dilation - pad; }
  // Positions that `count` windows reach over.
  int64_t reach(int64_t count) const { return (count - 1) * stride + (kernel - 1) * dilation + 1; }
};

inline WindowAxis window_axis(const WindowGeometry& window, int64_t axis) {
  return {window.in_spatial[axis], window.out_spatial[axis], window.kernel[axis],
          window.strides[axis],    window.dilations[axis],   window.pads_begin[axis]};
}

// Steps and reaches that go far beyond the plane are not for window_fold_planes, which would fill in the gaps.
inline bool suits_planes(const WindowGeometry& window) {
  const auto is_near = [&](int64_t axis) {
    const WindowAxis each = window_axis(window, axis);
    const int64_t most = 4 * each.in + 64;
    return each.pad >= 0 && each.pad <= most && each.stride <= most && each.dilation <= most && each.reach(1) <= most;
  };
  const int64_t rank = window.kernel.size();
  return (rank == 1 || rank == 2) && is_near(0) && is_near(rank - 1);
}

namespace window_detail {

constexpr int64_t kStripElements = 4096;  // of lines that are folded at once: they stay in the nearest cache
constexpr int64_t kWidest = 16;           // floats of a vector: lines of so many have no rest

// Lines of a tile as the windows see them, with a stride of `width`, and the neutral element instead of the padding.
struct RowTile {
  int64_t width = 0;  // a multiple of the stride
  int64_t rows = 0;   // of outputs, at most
  std::vector<float> lines, folded, results;
};

inline int64_t width_of(const WindowAxis& columns) {
  const int64_t unit = kWidest % columns.stride == 0 ? kWidest : columns.stride;
  const int64_t reached = std::max(columns.reach(columns.out), columns.out * columns.stride);
  return (reached + unit - 1) / unit * unit;
}

inline RowTile make_row_tile(const WindowAxis& rows, const WindowAxis& columns, float neutral) {
  RowTile row_tile;
  row_tile.width = width_of(columns);
  const int64_t lines = std::max(kStripElements / row_tile.width, rows.reach(1));
  row_tile.rows = std::min(rows.out, (lines - rows.reach(1)) / rows.stride + 1);
  row_tile.lines.assign(static_cast<size_t>(rows.reach(row_tile.rows) * row_tile.width), neutral);
  // Positions after the last line are read, too, but not used.
  row_tile.folded.assign(static_cast<size_t>(row_tile.rows * row_tile.width + columns.reach(1)), neutral);
  row_tile.results.assign(static_cast<size_t>(row_tile.rows * row_tile.width / columns.stride), neutral);
  return row_tile;
}

// The lines of the plane under `count` rows of outputs from `first` on. Columns that no line has keep what they hold. A
// single line is as wide as its windows reach, no wider.
inline const float* fill_lines(RowTile& row_tile, const WindowAxis& rows, const WindowAxis& columns, const float* plane,
                               int64_t first, int64_t count, float neutral) {
  const int64_t begin = first * rows.stride - rows.pad, lines = rows.reach(count);
  const bool fits = row_tile.width == columns.in || (lines == 1 && columns.reach(columns.out) <= columns.in);
  if (fits && columns.pad == 0 && begin >= 0 && begin + lines <= rows.in) return plane + begin * columns.in;
  const int64_t used = std::clamp(row_tile.width - columns.pad, int64_t{0}, columns.in);
  for (int64_t line = 0; line < lines; ++line) {
    float* const to = row_tile.lines.data() + line * row_tile.width;
    if (begin + line < 0 || begin + line >= rows.in) {
      std::fill_n(to, row_tile.width, neutral);
    } else if (used > 0) {
      std::copy_n(plane + (begin + line) * columns.in, used, to + columns.pad);
    }
  }
  return row_tile.lines.data();
}

// to[i] = the taps from from[i] on, with a stride of `step`, into one; two of them or more.
template <class Fold>
void fold_across(const Fold& fold, const float* from, int64_t step, int64_t taps, int64_t count, float* to) {
  vectorized(0, count, [=, &fold](int64_t, int64_t end) {
    float* const out = to;
    const float *const first = from, *const second = from + step;
    if (taps == 2) {
      PX_INDEPENDENT_ITERATIONS
      for (int64_t i = 0; i < end; ++i) out[i] = fold.step(first[i], second[i]);
      return;
    }
    const float* const third = second + step;
    PX_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < end; ++i) out[i] = fold.step(fold.step(first[i], second[i]), third[i]);
    int64_t tap = 3;
    for (; tap + 2 <= taps; tap += 2) {
      const float *const next = from + tap * step, *const last = next + step;
      PX_INDEPENDENT_ITERATIONS
      for (int64_t i = 0; i < end; ++i) out[i] = fold.step(fold.step(out[i], next[i]), last[i]);
    }
    if (tap == taps) return;
    const float* const last = from + tap * step;
    PX_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < end; ++i) out[i] = fold.step(out[i], last[i]);
  });
}

// Folds the lines of each row of outputs into one.
template <class Fold>
const float* fold_down(const Fold& fold, RowTile& row_tile, const WindowAxis& rows, const float* lines, int64_t count) {
  if (rows.kernel == 1 && count == 1) return lines;
  const int64_t width = row_tile.width;
  const int64_t at_once = rows.stride == 1 ? count : 1;  // neighbors' lines have one stride
  for (int64_t i = 0; i < count; i += at_once) {
    const float* const from = lines + i * rows.stride * width;
    float* const to = row_tile.folded.data() + i * width;
    if (rows.kernel == 1) {
      std::copy_n(from, at_once * width, to);
    } else {
      fold_across(fold, from, rows.dilation * width, rows.kernel, at_once * width, to);
    }
  }
  return row_tile.folded.data();
}

// to[i] = the taps of a line from i * stride on. Any number of taps at any stride: kTaps and kStride are 0.
template <int kTaps, int kStride, class Fold>
void fold_along(const Fold& fold, const WindowAxis& columns, const float* from, int64_t count, float* to) {
  vectorized(0, count, [=, &fold, &columns](int64_t, int64_t end) {
    const int64_t dilation = columns.dilation, stride = kStride == 0 ? columns.stride : kStride;
    const float* const line = from;
    float* const out = to;
    const float first = fold.first();
    if constexpr (kTaps > 0) {
      PX_INDEPENDENT_ITERATIONS
      for (int64_t i = 0; i < end; ++i) {
        float state = first;
        for (int tap = 0; tap < kTaps; ++tap) state = fold.step(state, line[i * stride + tap * dilation]);
        out[i] = state;
      }
    } else {
      std::fill_n(out, end, first);
      for (int64_t tap = 0; tap < columns.kernel; ++tap) {
        const float* const its = line + tap * dilation;
        PX_INDEPENDENT_ITERATIONS
        for (int64_t i = 0; i < end; ++i) out[i] = fold.step(out[i], its[i * stride]);
      }
    }
  });
}

// Windows that are often seen have loops of their own.
template <int kTaps, class Fold>
void fold_along_by(const Fold& fold, const WindowAxis& columns, const float* from, int64_t count, float* to) {
  if (columns.stride == 1) return fold_along<kTaps, 1>(fold, columns, from, count, to);
  if (columns.stride == 2) return fold_along<kTaps, 2>(fold, columns, from, count, to);
  fold_along<0, 0>(fold, columns, from, count, to);
}
template <class Fold>
void fold_along(const Fold& fold, const WindowAxis& columns, const float* from, int64_t count, float* to) {
  if (columns.kernel == 2) return fold_along_by<2>(fold, columns, from, count, to);
  if (columns.kernel == 3) return fold_along_by<3>(fold, columns, from, count, to);
  if (columns.kernel == 5) return fold_along_by<5>(fold, columns, from, count, to);
  fold_along_by<0>(fold, columns, from, count, to);
}

// The divisors of the states of a row of outputs; 0 for windows without taps.
struct Divisors {
  std::vector<float> values;
  bool are_one = true;
};

// One for all rows whose taps are all inside, the first, and for each of the others; `numbers` says which is a row's.
template <class Fold>
std::vector<Divisors> divisors_of(const Fold& fold, const WindowAxis& rows, const WindowAxis& columns, int64_t rank,
                                  std::vector<size_t>& numbers) {
  const auto taps_at = [](const WindowAxis& axis, int64_t location) {
    int64_t taps = 0;
    for (int64_t tap = 0; tap < axis.kernel; ++tap) {
      const int64_t at = location * axis.stride + axis.begin_of(tap);
      taps += at >= 0 && at < axis.in ? 1 : 0;
    }
    return taps;
  };
  std::vector<int64_t> column_taps;
  for (int64_t location = 0; location < columns.out; ++location) column_taps.push_back(taps_at(columns, location));
  std::vector<Divisors> all(1);
  for (int64_t row = 0; row < rows.out; ++row) {
    const int64_t row_taps = taps_at(rows, row);
    const bool is_whole = row_taps == rows.kernel;
    if (!is_whole) all.emplace_back();
    numbers.push_back(is_whole ? 0 : all.size() - 1);
    Divisors& own = all[numbers.back()];
    for (int64_t location = 0; location < columns.out && own.values.size() < column_taps.size(); ++location) {
      const int64_t position[2] = {rank == 1 ? location : row, location};
      const int64_t taps = row_taps * column_taps[static_cast<size_t>(location)];
      own.values.push_back(taps == 0 ? 0 : fold.divisor(taps, position));
      own.are_one = own.are_one && own.values.back() == 1;
    }
  }
  return all;
}

template <class Fold>
void divide_row(const Fold& fold, const Divisors& divisors, int64_t count, float* states) {
  if (divisors.are_one) return;
  vectorized(0, count, [states, by = divisors.values.data(), empty = fold.empty()](int64_t, int64_t end) {
    float* const its = states;
    const float* const own = by;
    const float none = empty;
    PX_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < end; ++i) its[i] = own[i] == 0 ? none : its[i] / own[i];
  });
}

}  // namespace window_detail

// out[plane][position] as window_fold_channels_last has it, for one or two spatial axes; the Fold's first() is the
// state before the first tap, and a tap that changes nothing. Steps come in another order: the lines of a window first,
// each position with those below it, then along the results.
template <class Fold>
void window_fold_planes(Queue<Cpu>&, const Fold& fold, const WindowGeometry& window, int64_t planes, float* out,
                        const float* in) {
  const int64_t rank = window.kernel.size();
  const WindowAxis rows = rank == 2 ? window_axis(window, 0) : WindowAxis{};
  const WindowAxis columns = window_axis(window, rank - 1);
  if (planes * rows.out * columns.out == 0) return;
  std::vector<size_t> numbers;
  auto divisors = window_detail::divisors_of(fold, rows, columns, rank, numbers);
  const int64_t results = window_detail::width_of(columns) / columns.stride;
  for (auto& each : divisors) each.values.resize(static_cast<size_t>(results), 1.0F);
  const int64_t line_work = columns.out * (rows.kernel + columns.kernel) / 4 + 1;
  parallel_for(planes * rows.out, line_work, [&](int64_t begin, int64_t end) {
    window_detail::RowTile row_tile = window_detail::make_row_tile(rows, columns, fold.first());
    while (begin < end) {
      const int64_t row = begin % rows.out;
      const int64_t count = std::min({row_tile.rows, rows.out - row, end - begin});
      const float* const plane = in + begin / rows.out * rows.in * columns.in;
      const float* const lines = window_detail::fill_lines(row_tile, rows, columns, plane, row, count, fold.first());
      const float* const folded = window_detail::fold_down(fold, row_tile, rows, lines, count);
      float* const to = out + begin * columns.out;
      // Without a copy where the rows of results are as long as those of outputs.
      const bool is_direct = count == 1 || results == columns.out;
      float* const states = is_direct ? to : row_tile.results.data();
      window_detail::fold_along(fold, columns, folded, is_direct ? count * columns.out : count * results, states);
      for (int64_t i = 0; i < count; ++i) {
        float* const its = states + i * results;
        const auto& by = divisors[numbers[static_cast<size_t>(row + i)]];
        window_detail::divide_row(fold, by, is_direct ? columns.out : results, its);
        if (!is_direct) std::copy_n(its, columns.out, to + i * columns.out);
      }
      begin += count;
    }
  });
}

}  // namespace parallax::runtime
