// What a place reads is found once for all channels, some places at a time. Few channels are gathered, each from its
// plane; of more the image is turned first, so that what a place reads of a group of them lies side by side.
#include "runtime/ops/host_grid.h"

#include <algorithm>

#include "inspector/base/thread_pool.h"
#include "runtime/device/transpose_block.h"
#include "runtime/ops/host_taps.h"

namespace parallax::runtime {
namespace {

constexpr int64_t kPlacesAtOnce = 256;
constexpr int64_t kPlaceWork = 80;

// target[row][column] = source[column][row].
template <class T>
void turn(T* target, int64_t target_stride, const T* source, int64_t source_stride, int64_t rows, int64_t columns) {
  constexpr int64_t kLanes = kTransposeLanes<T>;
  const int64_t whole_rows = rows / kLanes * kLanes, whole_columns = columns / kLanes * kLanes;
  for (int64_t row = 0; row < whole_rows; row += kLanes) {
    for (int64_t column = 0; column < whole_columns; column += kLanes)
      transpose_block(target + row * target_stride + column, target_stride, source + column * source_stride + row,
                      source_stride);
  }
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = row < whole_rows ? whole_columns : 0; column < columns; ++column)
      target[row * target_stride + column] = source[column * source_stride + row];
  }
}

// The two taps along an axis at places side by side.
template <class C>
struct AxisPairs {
  int32_t positions[2][kPlacesAtOnce];
  C weights[2][kPlacesAtOnce];
};

// As AxisSampler::place gives them for mode linear.
template <Padding kPadding, class C>
void find_pairs(const AxisSampler<C>& given, const C* coordinates, int64_t count, AxisPairs<C>& pairs) {
  vectorised(0, count, [&](int64_t begin, int64_t end) {
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
  HostGrid(const GridPlaces<Cpu, C>& places, int64_t samples) : places_(places), samples_(samples) {
    for (int axis = 0; axis < places.lengths.count; ++axis) taps_ *= places.settings.mode == SampleMode::cubic ? 4 : 2;
  }

  // Turning pays where a group is at least half full and there are not too few places for the image.
  bool suits_groups() const { return places_.channels * 2 >= kGroup && places_.plane <= places_.places * 4; }
  int64_t grouped_elements() const { return samples_ * groups_ * places_.plane * kGroup; }

  void from_planes(const C* image, C* y) const {
    for_each_block([&](int64_t sample, int64_t first, int64_t count, const HostTaps<C>& taps) {
      for (int64_t channel = 0; channel < places_.channels; ++channel) {
        const int64_t plane = sample * places_.channels + channel;
        taps.add_up(image + plane * places_.plane, count, y + plane * places_.places + first);
      }
    });
  }

  // `grouped` [samples, groups, plane, kGroup] is made here.
  void from_groups(const C* image, C* grouped, C* y) const {
    make_groups(image, grouped);
    for_each_block([&](int64_t sample, int64_t first, int64_t count, const HostTaps<C>& taps) {
      alignas(64) C sums[kPlacesAtOnce * kGroup];
      for (int64_t group = 0; group < groups_; ++group) {
        const int64_t channel = group * kGroup, width = std::min(kGroup, places_.channels - channel);
        taps.add_up_groups(grouped + (sample * groups_ + group) * places_.plane * kGroup, count, sums);
        turn(y + (sample * places_.channels + channel) * places_.places + first, places_.places, sums, kGroup, width,
             count);
      }
    });
  }

 private:
  static constexpr int64_t kGroup = HostTaps<C>::kGroup;

  // Calls f(sample, first place, places, their taps).
  template <class F>
  void for_each_block(const F& f) const {
    const int64_t blocks = (places_.places + kPlacesAtOnce - 1) / kPlacesAtOnce;
    const int64_t work = kPlacesAtOnce * (kPlaceWork + places_.channels * taps_);
    parallel_for(samples_ * blocks, work, [&](int64_t begin, int64_t end) {
      HostTaps<C> taps;
      taps.resize(taps_, kPlacesAtOnce);
      for (int64_t number = begin; number < end; ++number) {
        const int64_t sample = number / blocks, first = number % blocks * kPlacesAtOnce;
        const int64_t count = std::min(kPlacesAtOnce, places_.places - first);
        find_taps(sample * places_.places + first, count, taps);
        f(sample, first, count, taps);
      }
    });
  }

  void make_groups(const C* image, C* grouped) const {
    constexpr int64_t kPart = 1024;
    const int64_t parts = (places_.plane + kPart - 1) / kPart;
    parallel_for(samples_ * groups_ * parts, kPart * kGroup / 4, [&](int64_t begin, int64_t end) {
      for (int64_t number = begin; number < end; ++number) {
        const int64_t of = number / parts, first = number % parts * kPart;
        const int64_t count = std::min(kPart, places_.plane - first);
        const int64_t channel = of % groups_ * kGroup, width = std::min(kGroup, places_.channels - channel);
        C* const target = grouped + (of * places_.plane + first) * kGroup;
        const C* const source = image + (of / groups_ * places_.channels + channel) * places_.plane + first;
        if (width < kGroup) std::fill_n(target, count * kGroup, C(0));
        turn(target, kGroup, source, places_.plane, count, width);
      }
    });
  }

  void find_taps(int64_t row, int64_t count, HostTaps<C>& taps) const {
    if (places_.settings.mode == SampleMode::linear && places_.settings.padding != Padding::reflection)
      return find_linear_taps(row, count, taps);
    for (int64_t i = 0; i < count; ++i) {
      int64_t tap = 0;
      places_.for_each_tap(row + i, [&](int64_t offset, C weight) { taps.set(tap++, i, offset, weight); });
    }
  }

  void find_linear_taps(int64_t row, int64_t count, HostTaps<C>& taps) const {
    const int axes = places_.lengths.count;
    AxisPairs<C> pairs[3];
    for (int axis = 0; axis < axes; ++axis) {
      const AxisSampler<C> sampler{places_.settings, places_.lengths[axis]};
      const C* const from = &places_.grid[row * axes + axes - 1 - axis];
      C coordinates[kPlacesAtOnce];
      for (int64_t i = 0; i < count; ++i) coordinates[i] = from[i * axes];
      places_.settings.padding == Padding::zeros
          ? find_pairs<Padding::zeros>(sampler, coordinates, count, pairs[axis])
          : find_pairs<Padding::border>(sampler, coordinates, count, pairs[axis]);
    }
    for (int64_t tap = 0; tap < taps_; ++tap) {
      int64_t stride = 1;
      taps.begin(tap, count);
      for (int axis = axes - 1; axis >= 0; --axis) {
        const int64_t side = tap >> (axes - 1 - axis) & 1;
        taps.extend(tap, pairs[axis].positions[side], pairs[axis].weights[side], stride, count);
        stride *= places_.lengths[axis];
      }
    }
  }

  const GridPlaces<Cpu, C>& places_;
  int64_t samples_;
  int64_t taps_ = 1;
  int64_t groups_ = (places_.channels + kGroup - 1) / kGroup;
};

}  // namespace

template <class C>
Status interpolate_on_host(OpContext<Cpu>& op, const GridPlaces<Cpu, C>& places, const C* image, int64_t samples,
                           C* y) {
  const HostGrid<C> grid(places, samples);
  if (!grid.suits_groups()) {
    grid.from_planes(image, y);
    return {};
  }
  const MutableView grouped = PX_TRY(op.scratch(storage_of<C>(), shape_of({grid.grouped_elements()})));
  grid.from_groups(image, reinterpret_cast<C*>(grouped.data), y);
  return {};
}

template Status interpolate_on_host(OpContext<Cpu>&, const GridPlaces<Cpu, float>&, const float*, int64_t, float*);
template Status interpolate_on_host(OpContext<Cpu>&, const GridPlaces<Cpu, double>&, const double*, int64_t, double*);

}  // namespace parallax::runtime
