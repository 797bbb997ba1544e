// Windows over planes of floats, row by row: the taps of a row of outputs are folded side by side, in whole vectors.
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
  bool is_axis = false;  // else one place where there is none

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
  return {window.in_spatial[axis],
          window.out_spatial[axis],
          window.kernel[axis],
          window.strides[axis],
          window.dilations[axis],
          window.pads_begin[axis],
          true};
}

namespace window_detail {

constexpr int64_t kWindowLane = 16;  // floats of the widest vector: rows are filled up to whole ones

// Some lines of a plane as a row of windows walks along them: filled up at both ends with what changes no state, and
// columns that neighbouring windows do not share, for a stride, apart: tap t of window i is number i + shift of a
// phase.
class PhasedLines {
 public:
  PhasedLines(const WindowAxis& columns, int64_t most_lines, float filler)
      : columns_(columns),
        outputs_((columns.out + kWindowLane - 1) / kWindowLane * kWindowLane),
        length_(outputs_ + (columns.kernel - 1) * columns.dilation / columns.stride + 1),
        filler_(filler),
        values_(static_cast<size_t>(most_lines * line_size())) {}

  int64_t outputs() const { return outputs_; }
  const float* line(int64_t number) const { return values_.data() + number * line_size(); }
  // Where window 0 finds its tap, from the begin of a line on.
  int64_t offset(int64_t tap) const {
    const int64_t column = tap * columns_.dilation;
    return column % columns_.stride * length_ + column / columns_.stride;
  }

  void fill(int64_t number, const float* from) {
    float* const to = values_.data() + number * line_size();
    std::fill_n(to, line_size(), filler_);
    const int64_t stride = columns_.stride;
    for (int64_t first = 0; first < std::min(stride, columns_.in); ++first) {
      const int64_t at = first + columns_.pad;
      float* const target = to + at % stride * length_ + at / stride;
      // What no window reaches is left out.
      const int64_t count = std::min((columns_.in - first + stride - 1) / stride, length_ - at / stride);
      copy_phase(from + first, stride, count, target);
    }
  }

 private:
  int64_t line_size() const { return columns_.stride * length_; }

  static void copy_phase(const float* from, int64_t stride, int64_t count, float* to) {
    if (stride == 1) return static_cast<void>(std::copy_n(from, std::max<int64_t>(0, count), to));
    vectorised(0, count, [=](int64_t begin, int64_t end) {
      const float* const source = from;
      float* const target = to;
      if (stride == 2) {
        PX_INDEPENDENT_ITERATIONS
        for (int64_t i = begin; i < end; ++i) target[i] = source[2 * i];
      } else {
        for (int64_t i = begin; i < end; ++i) target[i] = source[i * stride];
      }
    });
  }

  WindowAxis columns_;
  int64_t outputs_, length_;
  float filler_;
  std::vector<float> values_;
};

template <int kTaps, class Fold>
inline void fold_taps(const Fold& fold, const float* from, const int64_t* offsets, int64_t count, float* to) {
  const float* taps[kTaps];
  for (int tap = 0; tap < kTaps; ++tap) taps[tap] = from + offsets[tap];
  PX_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < count; ++i) {
    float state = to[i];
    for (int tap = 0; tap < kTaps; ++tap) state = fold.step(state, taps[tap][i]);
    to[i] = state;
  }
}

// to[i] = the fold of source[i + offset] for each source and offset, in that order; count is of whole vectors.
template <class Fold>
void fold_sources(const Fold& given, const std::vector<const float*>& sources, const std::vector<int64_t>& offsets,
                  int64_t count, float* to) {
  vectorised(0, count, [&, to](int64_t, int64_t end) {
    const Fold fold = given;
    std::fill_n(to, end, fold.first());
    const int64_t* const places = offsets.data();
    for (const float* source : sources) {
      switch (offsets.size()) {
        case 2:
          fold_taps<2>(fold, source, places, end, to);
          break;
        case 3:
          fold_taps<3>(fold, source, places, end, to);
          break;
        case 5:
          fold_taps<5>(fold, source, places, end, to);
          break;
        default:
          for (size_t tap = 0; tap < offsets.size(); ++tap) fold_taps<1>(fold, source, places + tap, end, to);
      }
    }
  });
}

// Folds whose steps may come in any order say so: along each line first, which rows of windows share.
template <class Fold>
concept InAnyOrder = Fold::kInAnyOrder;

// How many taps of each window lie inside the line.
inline std::vector<int64_t> taps_inside(const WindowAxis& axis) {
  std::vector<int64_t> taps(static_cast<size_t>(axis.out), 0);
  for (int64_t tap = 0; tap < axis.kernel; ++tap) {
    for (int64_t place = axis.first_inside(tap); place < axis.end_inside(tap); ++place)
      ++taps[static_cast<size_t>(place)];
  }
  return taps;
}

// Some rows of one plane.
template <class Fold>
class PlaneRows {
 public:
  PlaneRows(const Fold& fold, const WindowAxis& rows, const WindowAxis& columns, int64_t most_rows)
      : fold_(fold),
        rows_(rows),
        columns_(columns),
        lines_(columns, (most_rows - 1) * rows.stride + (rows.kernel - 1) * rows.dilation + 1, fold.first()),
        row_(static_cast<size_t>(lines_.outputs())),
        taps_of_column_(taps_inside(columns)) {
    for (int64_t tap = 0; tap < columns.kernel; ++tap) offsets_.push_back(lines_.offset(tap));
    const auto partial = [&](int64_t taps) { return taps < columns.kernel; };
    const auto first = std::find_if_not(taps_of_column_.begin(), taps_of_column_.end(), partial);
    inner_begin_ = first - taps_of_column_.begin();
    inner_end_ = std::find_if(first, taps_of_column_.end(), partial) - taps_of_column_.begin();
  }

  void run(const float* plane, int64_t begin, int64_t end, float* out) {
    const int64_t first_line = begin * rows_.stride - rows_.pad;
    const int64_t last_line = (end - 1) * rows_.stride + rows_.begin_of(rows_.kernel - 1);
    const int64_t from = std::clamp<int64_t>(first_line, 0, rows_.in), to = std::min(rows_.in, last_line + 1);
    for (int64_t line = from; line < to; ++line) lines_.fill(line - from, plane + line * columns_.in);
    if constexpr (InAnyOrder<Fold>) {
      along_.resize(static_cast<size_t>(std::max<int64_t>(0, to - from) * lines_.outputs()));
      for (int64_t line = 0; line < to - from; ++line)
        fold_sources(fold_, {lines_.line(line)}, offsets_, lines_.outputs(), along_.data() + line * lines_.outputs());
    }
    for (int64_t row = begin; row < end; ++row) run_row(row, from, out + row * columns_.out);
  }

 private:
  void run_row(int64_t row, int64_t from, float* out) {
    sources_.clear();
    for (int64_t tap = 0; tap < rows_.kernel; ++tap) {
      const int64_t line = row * rows_.stride + rows_.begin_of(tap);
      if (line < 0 || line >= rows_.in) continue;
      if constexpr (InAnyOrder<Fold>) {
        sources_.push_back(along_.data() + (line - from) * lines_.outputs());
      } else {
        sources_.push_back(lines_.line(line - from));
      }
    }
    fold_sources(fold_, sources_, InAnyOrder<Fold> ? kNoShift : offsets_, lines_.outputs(), row_.data());
    std::copy_n(row_.data(), columns_.out, out);
    finish(row, static_cast<int64_t>(sources_.size()), out);
  }

  void finish(int64_t row, int64_t row_taps, float* out) const {
    int64_t position[2] = {row, 0};
    int64_t& column = position[rows_.is_axis ? 1 : 0];
    const auto finish_place = [&](int64_t place) {
      column = place;
      const int64_t taps = row_taps * taps_of_column_[static_cast<size_t>(place)];
      out[place] = taps == 0 ? fold_.empty() : out[place] / fold_.divisor(taps, position);
    };
    const bool is_whole = row_taps == rows_.kernel;
    const int64_t begin = is_whole ? inner_begin_ : columns_.out, end = is_whole ? inner_end_ : columns_.out;
    for (int64_t place = 0; place < begin; ++place) finish_place(place);
    for (int64_t place = end; place < columns_.out; ++place) finish_place(place);
    if (begin >= end) return;
    column = begin;
    const float divisor = fold_.divisor(row_taps * columns_.kernel, position);  // of windows that lie inside
    if (divisor == 1) return;
    vectorised(begin, end, [out, divisor](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) out[i] /= divisor;
    });
  }

  inline static const std::vector<int64_t> kNoShift{0};

  const Fold& fold_;
  WindowAxis rows_, columns_;
  PhasedLines lines_;
  std::vector<float> row_, along_;
  std::vector<int64_t> taps_of_column_, offsets_;
  std::vector<const float*> sources_;
  int64_t inner_begin_ = 0, inner_end_ = 0;
};

}  // namespace window_detail

// out[plane][place] as window_fold_channels_last has it, for one or two spatial axes; the Fold's first() is the state
// before the first tap, and a value that changes no state.
template <class Fold>
void window_fold_planes(Queue<Cpu>&, const Fold& fold, const WindowGeometry& window, int64_t planes, float* out,
                        const float* in) {
  constexpr int64_t kRowsAtOnce = 32;
  const int64_t rank = window.kernel.size();
  const WindowAxis rows = rank == 2 ? window_axis(window, 0) : WindowAxis{};
  const WindowAxis columns = window_axis(window, rank - 1);
  const int64_t at_once = std::min(rows.out, kRowsAtOnce);
  if (at_once == 0 || columns.out == 0) return;
  const int64_t parts = (rows.out + at_once - 1) / at_once;
  parallel_for(planes * parts, at_once * columns.out * rows.kernel * columns.kernel / 4,
               [&](int64_t begin, int64_t end) {
                 window_detail::PlaneRows<Fold> some(fold, rows, columns, at_once);
                 for (int64_t index = begin; index < end; ++index) {
                   const int64_t plane = index / parts, first = index % parts * at_once;
                   some.run(in + plane * rows.in * columns.in, first, std::min(rows.out, first + at_once),
                            out + plane * rows.out * columns.out);
                 }
               });
}

}  // namespace parallax::runtime
