// What the windows of convolutions and pools read: planes of the input as numbers, their padding written out, so that
// windows are stretches of them.
#pragma once

#include <span>
#include <vector>

#include "reference/ops/numbers.h"
#include "reference/ops/window.h"

namespace parallax::reference {

// Neighbouring windows of one line: `count` of them, the first element of the first at `from`.
struct WindowRun {
  int64_t from, count;
};

// panel[k * width + column] = x[offsets[k] + the element where window `column` begins]; windows of a run begin `step`
// apart. Width is the sum of the runs' counts.
void copy_windows(const double* x, std::span<const int64_t> offsets, std::span<const WindowRun> runs, int64_t step,
                  double* panel);
void copy_windows(const uint64_t* x, std::span<const int64_t> offsets, std::span<const WindowRun> runs, int64_t step,
                  uint64_t* panel);

// sums[column] += weights[k] * the same element, for k upward.
void add_windows(const double* x, std::span<const int64_t> offsets, std::span<const double> weights,
                 std::span<const WindowRun> runs, int64_t step, double* sums);
void add_windows(const uint64_t* x, std::span<const int64_t> offsets, std::span<const uint64_t> weights,
                 std::span<const WindowRun> runs, int64_t step, uint64_t* sums);

// best[column] = the greatest of itself and the same elements; NaN wins.
void raise_to_windows(const double* x, std::span<const int64_t> offsets, std::span<const WindowRun> runs, int64_t step,
                      double* best);

// Where windows lie in planes [channels, extent...] that hold the padding too.
class PaddedLayout {
 public:
  PaddedLayout(const Window& window, int64_t channels);

  // Whether the planes are of about the size of the input: not where padding or dilations reach far beyond it.
  bool is_compact() const { return is_compact_; }
  int64_t step() const { return window_.strides.back(); }
  // Of every kernel element of every channel, from the beginning of a window.
  std::span<const int64_t> offsets() const { return offsets_; }
  std::vector<WindowRun> runs_of(int64_t first, int64_t width) const;

  // The planes of `channels` channels that begin at element `first` of x. Planes that held others before keep their
  // padding.
  template <class Number>
  void load_planes(const TensorView& x, int64_t first, std::vector<Number>& planes, Number padding = {}) const {
    const auto count = static_cast<size_t>(channels_ * plane_);
    if (planes.size() != count) planes.assign(count, padding);
    const bool is_bare = extent_ == window_.input && origin_ == 0;  // no padding
    parallel_for(channels_, plane_, [&](int64_t begin, int64_t end) {
      if (!is_bare) {
        for (int64_t channel = begin; channel < end; ++channel) load_lines_of(x, first, channel, planes);
        return;
      }
      const auto target =
          std::span(planes).subspan(static_cast<size_t>(begin * plane_), static_cast<size_t>((end - begin) * plane_));
      load<Number>(x, first + begin * plane_, target);
    });
  }

 private:
  // The lines of one channel that windows reach, each behind its padding.
  template <class Number>
  void load_lines_of(const TensorView& x, int64_t first, int64_t channel, std::vector<Number>& planes) const {
    const size_t last = window_.rank() - 1;
    const int64_t count = std::min(window_.input[last], extent_[last] - window_.pads_begin[last]);
    if (count <= 0) return;
    const int64_t lines = window_.input_count() / window_.input[last];
    Walk<1> walk(std::span(window_.input).first(last), {std::span(strides_).first(last)});
    for (int64_t line = 0; line < lines; ++line, walk.next()) {
      if (!is_reached(walk)) continue;
      const auto target = std::span(planes).subspan(static_cast<size_t>(channel * plane_ + origin_ + walk.offset()),
                                                    static_cast<size_t>(count));
      load<Number>(x, first + (channel * lines + line) * window_.input[last], target);
    }
  }

  // Whether a line of the input lies within the extent, which may end before the input does.
  bool is_reached(const Walk<1>& walk) const {
    for (size_t axis = 0; axis + 1 < window_.rank(); ++axis) {
      if (walk.index(axis) + window_.pads_begin[axis] >= extent_[axis]) return false;
    }
    return true;
  }

  const Window& window_;
  int64_t channels_;
  bool is_compact_ = false;
  std::vector<int64_t> extent_, strides_;
  int64_t plane_ = 1;   // elements of a plane
  int64_t origin_ = 0;  // where the input begins in it
  std::vector<int64_t> offsets_;
};

}  // namespace parallax::reference
