// Sums of a few weighted elements of an image for many places, on the host: what interpolation reads is found once for
// a block of places, and added up for every channel.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/device/multiversion.h"

namespace parallax::runtime {

template <class C>
class HostTaps {
 public:
  // For `places` places with at most `taps` elements each.
  void resize(int64_t taps, int64_t places) {
    taps_ = taps;
    places_ = places;
    offsets_.assign(static_cast<size_t>(taps * places), -1);
    weights_.assign(offsets_.size(), C(0));
  }
  // Element number `tap` that `place` reads lies at `offset` in a plane; -1: outside, where zero is read.
  void set(int64_t tap, int64_t place, int64_t offset, C weight) {
    offsets_.data()[tap * places_ + place] = static_cast<int32_t>(offset);
    weights_.data()[tap * places_ + place] = weight;
  }
  // y[place] = the sum of its elements times their weights, one tap after the other.
  void add_up(const C* plane, int64_t count, C* y) const {
    vectorised(0, count, [&, plane, y](int64_t begin, int64_t end) {
      const C* const values = plane;
      C* const sums = y;
      for (int64_t i = begin; i < end; ++i) sums[i] = C(0);
      for (int64_t tap = 0; tap < taps_; ++tap) {
        const int32_t* const offsets = offsets_.data() + tap * places_;
        const C* const weights = weights_.data() + tap * places_;
        PX_INDEPENDENT_ITERATIONS
        for (int64_t i = begin; i < end; ++i) {
          const int32_t offset = offsets[i];
          const C read = values[offset < 0 ? 0 : offset];
          sums[i] += offset < 0 ? C(0) : weights[i] * read;
        }
      }
    });
  }

 private:
  int64_t taps_ = 0, places_ = 0;
  std::vector<int32_t> offsets_;  // [taps, places], and the same
  std::vector<C> weights_;
};

}  // namespace parallax::runtime
