// SPDX-License-Identifier: Apache-2.0
// Windows over float tensors in channels-last order: all channels of a position are folded side by side.
#pragma once

#include "runtime/device/cpu/multiversion.h"
#include "runtime/device/cpu/window.h"

namespace parallax::runtime {

// The positions of a window's taps in an input [positions, channels].
inline void find_taps(const WindowGeometry& window, const int64_t* position, const float* sample, int64_t channels,
                      std::vector<const float*>& taps) {
  taps.clear();
  if (window.kernel.size() != 2) {
    for_each_tap(window, position, [&](int64_t offset, int64_t) { taps.push_back(sample + offset * channels); });
    return;
  }
  const int64_t height = window.in_spatial[0], width = window.in_spatial[1];
  const int64_t top = position[0] * window.strides[0] - window.pads_begin[0];
  const int64_t left = position[1] * window.strides[1] - window.pads_begin[1];
  for (int64_t i = 0; i < window.kernel[0]; ++i) {
    const int64_t row = top + i * window.dilations[0];
    if (row < 0 || row >= height) continue;
    for (int64_t j = 0; j < window.kernel[1]; ++j) {
      const int64_t column = left + j * window.dilations[1];
      if (column >= 0 && column < width) taps.push_back(sample + (row * width + column) * channels);
    }
  }
}

// out[n][position][c] = finish(fold of x[n][taps of the window at position][c]). The Fold has step(state, value), whose
// first state is the first tap's value; empty(), the result of a window without taps; and divisor(taps, position), by
// which the state is divided where it is not 1.
template <class Fold>
void window_fold_channels_last(Queue<Cpu>&, const Fold& fold, const WindowGeometry& window, int64_t batch,
                               int64_t channels, float* out, const float* in) {
  const int64_t in_locations = product(window.in_spatial);
  const int64_t out_positions = product(window.out_spatial);
  parallel_for(batch * out_positions, channels * product(window.kernel), [&](int64_t begin, int64_t end) {
    std::vector<const float*> taps;
    for (int64_t index = begin; index < end; ++index) {
      int64_t position[Shape::kMaxRank] = {};
      unravel(index % out_positions, window.out_spatial, position);
      const float* sample = in + index / out_positions * in_locations * channels;
      find_taps(window, position, sample, channels, taps);
      const float divisor = fold.divisor(static_cast<int64_t>(taps.size()), position);
      float* row = out + index * channels;
      vectorized(0, channels, [&fold, &taps, divisor, row](int64_t first, int64_t last) {
        if (taps.empty()) return static_cast<void>(std::fill(row + first, row + last, fold.empty()));
        std::copy(taps[0] + first, taps[0] + last, row + first);
        size_t tap = 1;
        for (; tap + 2 <= taps.size(); tap += 2) {  // each pass over the row takes two
          const float *const values = taps[tap], *const next = taps[tap + 1];
          PX_INDEPENDENT_ITERATIONS
          for (int64_t c = first; c < last; ++c) row[c] = fold.step(fold.step(row[c], values[c]), next[c]);
        }
        if (tap < taps.size()) {
          const float* const values = taps[tap];
          PX_INDEPENDENT_ITERATIONS
          for (int64_t c = first; c < last; ++c) row[c] = fold.step(row[c], values[c]);
        }
        if (divisor == 1.0F) return;
        for (int64_t c = first; c < last; ++c) row[c] = row[c] / divisor;
      });
    }
  });
}

// out[n][c] = fold of x[n][every position][c]: along each line of the last spatial axis first, then over the lines,
// which keeps the rounding of long sums small.
template <class Fold>
void fold_elements_channels_last(Queue<Cpu>&, const Fold& fold, int64_t batch, int64_t lines, int64_t locations,
                                 int64_t channels, float* out, const float* in) {
  constexpr int64_t kChannels = 64;
  const int64_t groups = (channels + kChannels - 1) / kChannels;
  parallel_for(batch * groups, lines * locations * kChannels / 4, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      const int64_t channel = index % groups * kChannels;
      const float* sample = in + index / groups * lines * locations * channels + channel;
      float* result = out + index / groups * channels + channel;
      vectorized(0, std::min(kChannels, channels - channel), [=, &fold](int64_t first, int64_t last) {
        float total[kChannels];
        float sum[kChannels];
        for (int64_t c = first; c < last; ++c) total[c] = fold.template init<float>();
        for (int64_t line = 0; line < lines; ++line) {
          for (int64_t c = first; c < last; ++c) sum[c] = fold.template init<float>();
          const float* values = sample + line * locations * channels;
          int64_t location = 0;
          for (; location + 4 <= locations;
               location += 4, values += 4 * channels) {  // each pass over the sums takes four
            const float *const second = values + channels, *const third = second + channels,
                               *const fourth = third + channels;
            for (int64_t c = first; c < last; ++c)
              sum[c] = fold.step(fold.step(fold.step(fold.step(sum[c], values[c]), second[c]), third[c]), fourth[c]);
          }
          for (; location < locations; ++location, values += channels) {
            for (int64_t c = first; c < last; ++c) sum[c] = fold.step(sum[c], values[c]);
          }
          for (int64_t c = first; c < last; ++c) total[c] = fold.merge(total[c], sum[c]);
        }
        for (int64_t c = first; c < last; ++c) result[c] = fold.finish(total[c], lines * locations);
      });
    }
  });
}

}  // namespace parallax::runtime
