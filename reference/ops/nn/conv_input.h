// SPDX-License-Identifier: Apache-2.0
// The planes that the windows of convolutions and pools read: the input as numbers, their padding written out, so that
// windows are stretches of them.
#pragma once

#include <span>
#include <vector>

#include "reference/kernels/numbers.h"
#include "reference/kernels/products_kernel.h"
#include "reference/kernels/scratch.h"
#include "reference/ops/window.h"

namespace parallax::reference {

// Neighboring windows of one line: `count` of them, the first element of the first at `from`.
struct WindowRun {
  int64_t from, count;
};

// panel[k * width + column] = x[offsets[k] + the element where window `column` begins]. Width is the sum of the runs'
// counts.
void copy_windows(const double* x, std::span<const int64_t> offsets, std::span<const WindowRun> runs, double* panel);
void copy_windows(const uint64_t* x, std::span<const int64_t> offsets, std::span<const WindowRun> runs,
                  uint64_t* panel);

// best[column] = the greatest of itself and the same elements; NaN wins.
void raise_to_windows(const double* x, std::span<const int64_t> offsets, std::span<const WindowRun> runs, double* best);

// The layout of planes [channels, extent...] that hold the padding too. The elements of a line that neighboring windows
// read are adjacent: with a stride of 2 first those of even columns, then those of odd ones.
class PaddedLayout {
 public:
  PaddedLayout(const Window& window, int64_t channels);

  // True where the planes are of about the size of the input; false where padding or dilations reach far beyond it.
  bool is_compact() const { return is_compact_; }
  // The offsets of every kernel element of every channel, from the beginning of a window.
  std::span<const int64_t> offsets() const { return offsets_; }
  std::vector<WindowRun> runs_of(int64_t first, int64_t width) const;

  // The planes of `channels` channels that begin at element `first` of x, with room after them for what a WindowKernel
  // reads too many. Planes that held others before keep their padding.
  template <class Number>
  void load_planes(const TensorView& x, int64_t first, std::vector<Number>& planes, Number padding = {}) const {
    const auto count = static_cast<size_t>(channels_ * plane_ + kPanelWidth);
    if (planes.size() != count) planes.assign(count, padding);
    parallel_for(channels_, plane_, [&](int64_t begin, int64_t end) {
      for (int64_t channel = begin; channel < end; ++channel) {
        const auto plane =
            std::span(planes).subspan(static_cast<size_t>(channel * plane_), static_cast<size_t>(plane_));
        load_plane<Number>(x, first + channel * window_.input_count(), plane);
      }
    });
  }

 private:
  // The position in its line of a column, counted from the beginning of the padding.
  int64_t location(int64_t column) const { return column % step_ * phase_ + column / step_; }

  // The lines of one channel that windows reach, each after its padding.
  template <class Number>
  void load_plane(const TensorView& x, int64_t first, std::span<Number> plane) const {
    const int64_t columns = reached(last_);
    const int64_t lines = last_ == 0 ? 1 : reached(last_ - 1);
    if (columns <= 0 || lines <= 0) return;
    const std::span outer = std::span(window_.input).first(last_ == 0 ? 0 : last_ - 1);
    const int64_t blocks = count_of_dims(outer);
    const int64_t block = window_.input_count() / std::max<int64_t>(1, blocks);
    const int64_t width = window_.input[last_];
    Walk<1> walk(outer, {std::span(strides_).first(outer.size())});
    for (int64_t index = 0; index < blocks; ++index, walk.next()) {
      if (!is_reached(walk, outer.size())) continue;
      const Lines source{.begin = first + index * block, .stride = width, .lines = lines, .width = columns};
      load_lines_of(x, source, plane.subspan(static_cast<size_t>(origin_ + walk.offset())));
    }
  }

  // Lines of x into lines of a plane, from the first column after the padding on.
  template <class Number>
  void load_lines_of(const TensorView& x, Lines source, std::span<Number> target) const {
    const int64_t stride = last_ == 0 ? 0 : strides_[last_ - 1];
    const int64_t padding = window_.pads_begin[last_];
    if (step_ == 1) {
      source.spacing = stride;
      return load_lines<Number>(x, source, target.subspan(static_cast<size_t>(padding)));
    }
    Scratch<Number> numbers(static_cast<size_t>(source.out_count()));
    load_lines<Number>(x, source, std::span<Number>(numbers));
    for (int64_t line = 0; line < source.lines; ++line) {
      const Number* from = numbers.data() + line * source.width;
      Number* to = target.data() + line * stride;
      for (int64_t column = 0; column < step_; ++column)
        take_every(from + column, step_, (source.width - column + step_ - 1) / step_, to + location(column + padding));
    }
  }

  // to[index] = from[index * step], for index < count.
  static void take_every(const double* from, int64_t step, int64_t count, double* to);
  static void take_every(const uint64_t* from, int64_t step, int64_t count, uint64_t* to);

  // How many elements of an axis of the input are within the extent, which may end before the input does.
  int64_t reached(size_t axis) const { return std::min(window_.input[axis], extent_[axis] - window_.pads_begin[axis]); }
  bool is_reached(const Walk<1>& walk, size_t axes) const {
    for (size_t axis = 0; axis < axes; ++axis) {
      if (walk.index(axis) >= reached(axis)) return false;
    }
    return true;
  }
  static int64_t count_of_dims(std::span<const int64_t> dims) {
    int64_t count = 1;
    for (int64_t dim : dims) count *= dim;  // a part of a tensor's dimensions
    return count;
  }

  const Window& window_;
  int64_t channels_;
  size_t last_;   // the last axis
  int64_t step_;  // from window to window of a line
  bool is_compact_ = false;
  std::vector<int64_t> extent_, strides_;
  int64_t phase_ = 1;   // columns of a line that are adjacent
  int64_t plane_ = 1;   // elements of a plane
  int64_t origin_ = 0;  // of the line where the input begins
  std::vector<int64_t> offsets_;
};

}  // namespace parallax::reference
