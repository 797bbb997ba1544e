// SPDX-License-Identifier: Apache-2.0
// Sums of a few weighted elements of a feature map for many positions, on the host: the elements that interpolation
// reads are found once for a block of positions, and added up for every channel.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "runtime/device/cpu/multiversion.h"

namespace parallax::runtime {

// As many channels as a line of the cache holds: [samples, groups, plane, kChannelGroup], with zeros after the last
// channel, is an order in which the elements that a tap reads of a group are adjacent.
template <class C>
constexpr int64_t kChannelGroup = 64 / static_cast<int64_t>(sizeof(C));
template <class C>
constexpr int64_t channel_groups(int64_t channels) {
  return (channels + kChannelGroup<C> - 1) / kChannelGroup<C>;
}
// Brings a feature map [samples, channels, plane] into that order; of float and double.
template <class C>
void group_channels(const C* feature_maps, int64_t samples, int64_t channels, int64_t plane, C* grouped);

// HostTaps::add_up by instructions that gather; false where there are none.
bool add_up_gathered(const float* plane, const int32_t* offsets, const float* weights, int64_t taps, int64_t locations,
                     int64_t count, float* y);

template <class C>
class HostTaps {
 public:
  // For `locations` output positions with at most `taps` elements each.
  void resize(int64_t taps, int64_t locations) {
    taps_ = taps;
    locations_ = locations;
    offsets_.assign(static_cast<size_t>(taps * locations), -1);
    weights_.assign(offsets_.size(), C(0));
  }
  // Element number `tap` that position `location` reads is at `offset` in a plane; -1: outside, where zero is read.
  void set(int64_t tap, int64_t location, int64_t offset, C weight) {
    offsets_.data()[tap * locations_ + location] = static_cast<int32_t>(offset);
    weights_.data()[tap * locations_ + location] = weight;
  }
  // Begins the taps of several output positions, one axis of the input after the other; positions along one are
  // `stride` elements from each other.
  void begin(int64_t tap, int64_t count) {
    std::fill_n(offsets_.data() + tap * locations_, count, 0);
    std::fill_n(weights_.data() + tap * locations_, count, C(1));
  }
  void extend(int64_t tap, const int32_t* positions, const C* weights, int64_t stride, int64_t count) {
    vectorized(0, count, [=, this](int64_t begin, int64_t end) {
      int32_t* const offsets = offsets_.data() + tap * locations_;
      C* const products = weights_.data() + tap * locations_;
      const int32_t* const at = positions;
      const C* const factors = weights;
      const auto step = static_cast<int32_t>(stride);
      PX_INDEPENDENT_ITERATIONS
      for (int64_t i = begin; i < end; ++i) {
        const int32_t offset = offsets[i] + at[i] * step;
        offsets[i] = (offsets[i] | at[i]) < 0 ? -1 : offset;
        products[i] *= factors[i];
      }
    });
  }
  // y[position] = the sum of its elements times their weights, one tap after the other.
  void add_up(const C* plane, int64_t count, C* y) const {
    if constexpr (std::is_same_v<C, float>) {
      if (add_up_gathered(plane, offsets_.data(), weights_.data(), taps_, locations_, count, y)) return;
    }
    vectorized(0, count, [&, plane, y](int64_t begin, int64_t end) {
      const C* const values = plane;
      C* const sums = y;
      for (int64_t i = begin; i < end; ++i) sums[i] = C(0);
      for (int64_t tap = 0; tap < taps_; ++tap) {
        const int32_t* const offsets = offsets_.data() + tap * locations_;
        const C* const weights = weights_.data() + tap * locations_;
        PX_INDEPENDENT_ITERATIONS
        for (int64_t i = begin; i < end; ++i) {
          const int32_t offset = offsets[i];
          const C read = values[offset < 0 ? 0 : offset];
          sums[i] += offset < 0 ? C(0) : weights[i] * read;
        }
      }
    });
  }
  // sums [position, kChannelGroup], in the same order, of one group of channels.
  void add_up_group(const C* values, int64_t count, C* sums) const {
    vectorized(0, count, [&, values, sums](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        Group sum{};
        for (int64_t tap = 0; tap < taps_; ++tap) {
          const int32_t offset = offsets_.data()[tap * locations_ + i];
          if (offset < 0) continue;
          Group read;
          std::memcpy(&read, values + offset * kChannelGroup<C>, sizeof(read));
          sum += weights_.data()[tap * locations_ + i] * read;
        }
        std::memcpy(sums + i * kChannelGroup<C>, &sum, sizeof(sum));
      }
    });
  }

 private:
  using Group __attribute__((vector_size(64))) = C;

  int64_t taps_ = 0, locations_ = 0;
  std::vector<int32_t> offsets_;  // [taps, positions], and the same
  std::vector<C> weights_;
};

}  // namespace parallax::runtime
