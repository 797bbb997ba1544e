// SPDX-License-Identifier: Apache-2.0
// The reads of an output position are found once for all channels, some positions at a time. Few channels are gathered,
// each from its plane; with more the input is transposed first, so that the elements of a group of channels are
// adjacent.
#include "runtime/ops/spatial/host_grid.h"

#include <algorithm>

#include "inspector/base/thread_pool.h"
#include "runtime/device/cpu/transpose_blocks.h"
#include "runtime/ops/spatial/host_taps.h"

namespace parallax::runtime {
namespace {

constexpr int64_t kPositionsAtOnce = 256;
constexpr int64_t kElementWork = 80;

// The two taps along an axis at adjacent positions.
template <class C>
struct AxisPairs {
  int32_t positions[2][kPositionsAtOnce];
  C weights[2][kPositionsAtOnce];
};

// As AxisSampler::add_taps gives them for mode linear.
template <Padding kPadding, class C>
void find_pairs(const AxisSampler<C>& given, const C* coordinates, int64_t count, AxisPairs<C>& pairs) {
  vectorized(0, count, [&](int64_t begin, int64_t end) {
    AxisSampler<C> axis = given;
    axis.settings.mode = SampleMode::linear;
    axis.settings.padding = kPadding;
    const auto last = static_cast<int32_t>(axis.length - 1);
    const C* const from = coordinates;
    AxisPairs<C>& to = pairs;
    PX_INDEPENDENT_ITERATIONS
    for (int64_t i = begin; i < end; ++i) {
      const C x = axis.located(from[i]), floor = std::floor(x);
      const auto below = static_cast<int32_t>(floor);
      to.weights[0][i] = floor + 1 - x;
      to.weights[1][i] = x - floor;
      for (int32_t tap = 0; tap < 2; ++tap) {
        const int32_t position = below + tap;
        const int32_t inside = position < 0 ? 0 : position > last ? last : position;
        to.positions[tap][i] = kPadding == Padding::zeros && inside != position ? -1 : inside;
      }
    }
  });
}

template <class C>
class HostGrid {
 public:
  HostGrid(const GridPositions<Cpu, C>& locations, int64_t samples) : locations_(locations), samples_(samples) {
    for (int axis = 0; axis < locations.lengths.count; ++axis)
      taps_ *= locations.settings.mode == SampleMode::cubic ? 4 : 2;
  }

  // Transposing pays off where a group is at least half full and there are not too few positions for the feature map.
  bool suits_groups() const {
    return locations_.channels * 2 >= kGroup && locations_.plane <= locations_.locations * 4;
  }
  int64_t grouped_elements() const { return samples_ * groups_ * kGroup * locations_.plane; }

  void from_planes(const C* feature_maps, C* y) const {
    for_each_block([&](int64_t sample, int64_t first, int64_t count, const HostTaps<C>& taps) {
      for (int64_t channel = 0; channel < locations_.channels; ++channel) {
        const int64_t plane = sample * locations_.channels + channel;
        taps.add_up(feature_maps + plane * locations_.plane, count, y + plane * locations_.locations + first);
      }
    });
  }

  // `grouped` is made here.
  void from_groups(const C* feature_maps, C* grouped, C* y) const {
    group_channels(feature_maps, samples_, locations_.channels, locations_.plane, grouped);
    for_each_block([&](int64_t sample, int64_t first, int64_t count, const HostTaps<C>& taps) {
      alignas(64) C sums[kPositionsAtOnce * kGroup];
      for (int64_t channel = 0; channel < locations_.channels; channel += kGroup) {
        const int64_t width = std::min(kGroup, locations_.channels - channel);
        taps.add_up_group(grouped + (sample * groups_ * kGroup + channel) * locations_.plane, count, sums);
        transpose(y + (sample * locations_.channels + channel) * locations_.locations + first, locations_.locations,
                  sums, kGroup, width, count);
      }
    });
  }

 private:
  static constexpr int64_t kGroup = kChannelGroup<C>;

  // Calls f(sample, first position, positions, their taps).
  template <class F>
  void for_each_block(const F& f) const {
    const int64_t blocks = (locations_.locations + kPositionsAtOnce - 1) / kPositionsAtOnce;
    const int64_t work = kPositionsAtOnce * (kElementWork + locations_.channels * taps_);
    parallel_for(samples_ * blocks, work, [&](int64_t begin, int64_t end) {
      HostTaps<C> taps;
      taps.resize(taps_, kPositionsAtOnce);
      for (int64_t number = begin; number < end; ++number) {
        const int64_t sample = number / blocks, first = number % blocks * kPositionsAtOnce;
        const int64_t count = std::min(kPositionsAtOnce, locations_.locations - first);
        find_taps(sample * locations_.locations + first, count, taps);
        f(sample, first, count, taps);
      }
    });
  }

  void find_taps(int64_t row, int64_t count, HostTaps<C>& taps) const {
    if (locations_.settings.mode == SampleMode::linear && locations_.settings.padding != Padding::reflection)
      return find_linear_taps(row, count, taps);
    for (int64_t i = 0; i < count; ++i) {
      int64_t tap = 0;
      locations_.for_each_tap(row + i, [&](int64_t offset, C weight) { taps.set(tap++, i, offset, weight); });
    }
  }

  void find_linear_taps(int64_t row, int64_t count, HostTaps<C>& taps) const {
    const int axes = locations_.lengths.count;
    AxisPairs<C> pairs[3];
    for (int axis = 0; axis < axes; ++axis) {
      const AxisSampler<C> sampler{locations_.settings, locations_.lengths[axis]};
      const C* const from = &locations_.grid[row * axes + axes - 1 - axis];
      C coordinates[kPositionsAtOnce];
      for (int64_t i = 0; i < count; ++i) coordinates[i] = from[i * axes];
      locations_.settings.padding == Padding::zeros
          ? find_pairs<Padding::zeros>(sampler, coordinates, count, pairs[axis])
          : find_pairs<Padding::border>(sampler, coordinates, count, pairs[axis]);
    }
    for (int64_t tap = 0; tap < taps_; ++tap) {
      int64_t stride = 1;
      taps.begin(tap, count);
      for (int axis = axes - 1; axis >= 0; --axis) {
        const int64_t side = tap >> (axes - 1 - axis) & 1;
        taps.extend(tap, pairs[axis].positions[side], pairs[axis].weights[side], stride, count);
        stride *= locations_.lengths[axis];
      }
    }
  }

  const GridPositions<Cpu, C>& locations_;
  int64_t samples_;
  int64_t taps_ = 1;
  int64_t groups_ = channel_groups<C>(locations_.channels);
};

}  // namespace

template <class C>
Status interpolate_on_host(OpContext<Cpu>& op, const GridPositions<Cpu, C>& locations, const C* feature_maps,
                           int64_t samples, C* y) {
  const HostGrid<C> grid(locations, samples);
  if (!grid.suits_groups()) {
    grid.from_planes(feature_maps, y);
    return {};
  }
  const MutableView grouped = PX_TRY(op.scratch(storage_of<C>(), shape_of({grid.grouped_elements()})));
  grid.from_groups(feature_maps, reinterpret_cast<C*>(grouped.data), y);
  return {};
}

template Status interpolate_on_host(OpContext<Cpu>&, const GridPositions<Cpu, float>&, const float*, int64_t, float*);
template Status interpolate_on_host(OpContext<Cpu>&, const GridPositions<Cpu, double>&, const double*, int64_t,
                                    double*);

}  // namespace parallax::runtime
