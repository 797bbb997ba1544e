// SPDX-License-Identifier: Apache-2.0
// Offsets of windows in padded planes, and the loops over them.
#include "reference/ops/nn/conv_input.h"

#include <algorithm>

#include "inspector/base/checked_math.h"
#include "reference/kernels/lanes.h"

namespace parallax::reference {
namespace {

template <class Number>
__attribute__((always_inline)) inline void copy_all(const Number* x, std::span<const int64_t> offsets,
                                                    std::span<const WindowRun> runs, Number* panel) {
  for (const int64_t offset : offsets) {
    for (const WindowRun& run : runs) {
      const Number* from = x + offset + run.from;
      for (int64_t column = 0; column < run.count; ++column) panel[column] = from[column];
      panel += run.count;
    }
  }
}

template <class Number>
__attribute__((always_inline)) inline void take(const Number* from, int64_t step, int64_t count, Number* to) {
  if (step == 2) {  // with the step known, a vector is filled at a time
    for (int64_t index = 0; index < count; ++index) to[index] = from[2 * index];
  } else {
    for (int64_t index = 0; index < count; ++index) to[index] = from[step * index];
  }
}

}  // namespace

void copy_windows(const double* x, std::span<const int64_t> offsets, std::span<const WindowRun> runs, double* panel) {
  with_widest_vectors([&](auto) PX_INLINE { copy_all(x, offsets, runs, panel); });
}
void copy_windows(const uint64_t* x, std::span<const int64_t> offsets, std::span<const WindowRun> runs,
                  uint64_t* panel) {
  with_widest_vectors([&](auto) PX_INLINE { copy_all(x, offsets, runs, panel); });
}

void raise_to_windows(const double* x, std::span<const int64_t> offsets, std::span<const WindowRun> runs,
                      double* best) {
  with_widest_vectors([&](auto) PX_INLINE {
    for (const int64_t offset : offsets) {
      double* target = best;
      for (const WindowRun& run : runs) {
        const double* from = x + offset + run.from;
        for (int64_t column = 0; column < run.count; ++column) {
          const double value = from[column];
          target[column] = value > target[column] || value != value ? value : target[column];
        }
        target += run.count;
      }
    }
  });
}

void PaddedLayout::take_every(const double* from, int64_t step, int64_t count, double* to) {
  with_widest_vectors([&](auto) PX_INLINE { take(from, step, count, to); });
}
void PaddedLayout::take_every(const uint64_t* from, int64_t step, int64_t count, uint64_t* to) {
  with_widest_vectors([&](auto) PX_INLINE { take(from, step, count, to); });
}

PaddedLayout::PaddedLayout(const Window& window, int64_t channels)
    : window_(window),
      channels_(channels),
      last_(window.rank() - 1),
      step_(window.output[last_] > 1 ? window.strides[last_] : 1),
      extent_(window.rank()),
      strides_(window.rank()) {
  // From the first element of the first window to the last of the last one.
  for (size_t axis = 0; axis < window.rank(); ++axis) {
    extent_[axis] = (std::max<int64_t>(1, window.output[axis]) - 1) * window.strides[axis] +
                    (window.kernel[axis] - 1) * window.dilations[axis] + 1;
  }
  constexpr int64_t kSlack = 1024;
  const auto elements = checked_product(extent_);
  is_compact_ = elements.has_value() && *elements <= 4 * window.input_count() + kSlack;
  if (!is_compact_) return;
  phase_ = (extent_[last_] + step_ - 1) / step_;
  plane_ = phase_ * step_;
  strides_[last_] = 1;
  for (size_t axis = last_; axis-- > 0;) {
    strides_[axis] = plane_;
    origin_ += window.pads_begin[axis] * plane_;
    plane_ *= extent_[axis];
  }
  std::vector<int64_t> within(window.rank(), 0);
  for (size_t axis = 0; axis < last_; ++axis) within[axis] = strides_[axis] * window.dilations[axis];
  for (int64_t channel = 0; channel < channels; ++channel) {
    Walk<1> walk(window.kernel, {within});
    for (int64_t element = 0; element < window.kernel_count(); ++element, walk.next())
      offsets_.push_back(channel * plane_ + walk.offset() + location(walk.index(last_) * window.dilations[last_]));
  }
}

std::vector<WindowRun> PaddedLayout::runs_of(int64_t first, int64_t width) const {
  std::vector<int64_t> steps(last_);
  for (size_t axis = 0; axis < last_; ++axis) steps[axis] = strides_[axis] * window_.strides[axis];
  const int64_t line = window_.output[last_];
  Walk<1> walk(std::span(window_.output).first(last_), {steps}, first / line);
  std::vector<WindowRun> runs;
  int64_t within = first % line;
  for (int64_t done = 0; done < width; within = 0, walk.next()) {
    runs.push_back({walk.offset() + within, std::min(width - done, line - within)});
    done += runs.back().count;
  }
  return runs;
}

}  // namespace parallax::reference
