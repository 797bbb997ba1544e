// Offsets of windows in padded planes, and the loops over them.
#include "reference/ops/conv_input.h"

#include <algorithm>

#include "inspector/base/checked_math.h"
#include "reference/ops/widest.h"

namespace parallax::reference {
namespace {

template <class Number>
__attribute__((always_inline)) inline void copy_all(const Number* x, std::span<const int64_t> offsets,
                                                    std::span<const WindowRun> runs, int64_t step, Number* panel) {
  for (const int64_t offset : offsets) {
    for (const WindowRun& run : runs) {
      const Number* from = x + offset + run.from;
      if (step == 1) {
        for (int64_t column = 0; column < run.count; ++column) panel[column] = from[column];
      } else {
        for (int64_t column = 0; column < run.count; ++column) panel[column] = from[column * step];
      }
      panel += run.count;
    }
  }
}

template <class Number>
__attribute__((always_inline)) inline void add_all(const Number* x, std::span<const int64_t> offsets,
                                                   std::span<const Number> weights, std::span<const WindowRun> runs,
                                                   int64_t step, Number* sums) {
  for (size_t k = 0; k < offsets.size(); ++k) {
    const Number weight = weights[k];
    Number* target = sums;
    for (const WindowRun& run : runs) {
      const Number* from = x + offsets[k] + run.from;
      if (step == 1) {
        for (int64_t column = 0; column < run.count; ++column) target[column] += weight * from[column];
      } else {
        for (int64_t column = 0; column < run.count; ++column) target[column] += weight * from[column * step];
      }
      target += run.count;
    }
  }
}

}  // namespace

PX_WIDEST void copy_windows(const double* x, std::span<const int64_t> offsets, std::span<const WindowRun> runs,
                            int64_t step, double* panel) {
  copy_all(x, offsets, runs, step, panel);
}
PX_WIDEST void copy_windows(const uint64_t* x, std::span<const int64_t> offsets, std::span<const WindowRun> runs,
                            int64_t step, uint64_t* panel) {
  copy_all(x, offsets, runs, step, panel);
}

PX_WIDEST void add_windows(const double* x, std::span<const int64_t> offsets, std::span<const double> weights,
                           std::span<const WindowRun> runs, int64_t step, double* sums) {
  add_all(x, offsets, weights, runs, step, sums);
}
PX_WIDEST void add_windows(const uint64_t* x, std::span<const int64_t> offsets, std::span<const uint64_t> weights,
                           std::span<const WindowRun> runs, int64_t step, uint64_t* sums) {
  add_all(x, offsets, weights, runs, step, sums);
}

PX_WIDEST void raise_to_windows(const double* x, std::span<const int64_t> offsets, std::span<const WindowRun> runs,
                                int64_t step, double* best) {
  for (const int64_t offset : offsets) {
    double* target = best;
    for (const WindowRun& run : runs) {
      const double* from = x + offset + run.from;
      for (int64_t column = 0; column < run.count; ++column) {
        const double value = from[column * step];
        target[column] = value > target[column] || value != value ? value : target[column];
      }
      target += run.count;
    }
  }
}

PaddedLayout::PaddedLayout(const Window& window, int64_t channels)
    : window_(window), channels_(channels), extent_(window.rank()), strides_(window.rank()) {
  // From the first element of the first window to the last of the last one.
  for (size_t axis = 0; axis < window.rank(); ++axis) {
    extent_[axis] = (std::max<int64_t>(1, window.output[axis]) - 1) * window.strides[axis] +
                    (window.kernel[axis] - 1) * window.dilations[axis] + 1;
  }
  constexpr int64_t kSlack = 1024;
  const auto elements = checked_product(extent_);
  is_compact_ = elements.has_value() && *elements <= 4 * window.input_count() + kSlack;
  if (!is_compact_) return;
  for (size_t axis = window.rank(); axis-- > 0;) {
    strides_[axis] = plane_;
    origin_ += window.pads_begin[axis] * plane_;
    plane_ *= extent_[axis];
  }
  std::vector<int64_t> within(window.rank());
  for (size_t axis = 0; axis < window.rank(); ++axis) within[axis] = strides_[axis] * window.dilations[axis];
  for (int64_t channel = 0; channel < channels; ++channel) {
    Walk<1> walk(window.kernel, {within});
    for (int64_t element = 0; element < window.kernel_count(); ++element, walk.next())
      offsets_.push_back(channel * plane_ + walk.offset());
  }
}

std::vector<WindowRun> PaddedLayout::runs_of(int64_t first, int64_t width) const {
  const size_t last = window_.rank() - 1;
  std::vector<int64_t> steps(last);
  for (size_t axis = 0; axis < last; ++axis) steps[axis] = strides_[axis] * window_.strides[axis];
  const int64_t line = window_.output[last];
  Walk<1> walk(std::span(window_.output).first(last), {steps}, first / line);
  std::vector<WindowRun> runs;
  int64_t within = first % line;
  for (int64_t done = 0; done < width; within = 0, walk.next()) {
    runs.push_back({walk.offset() + within * step(), std::min(width - done, line - within)});
    done += runs.back().count;
  }
  return runs;
}

}  // namespace parallax::reference
