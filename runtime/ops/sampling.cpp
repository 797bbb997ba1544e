// GridSample and AffineGrid: images read at fractional places, and the grids of such places.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "runtime/device/copy.h"
#include "runtime/device/gemm.h"
#include "runtime/device/map.h"
#include "runtime/device/tabulate.h"
#include "runtime/ops/families.h"
#include "runtime/ops/host_taps.h"
#include "runtime/ops/indices.h"

namespace parallax::runtime {
namespace {

enum class SampleMode : uint8_t { nearest, linear, cubic };
enum class Padding : uint8_t { zeros, border, reflection };

struct GridSettings {
  SampleMode mode = SampleMode::linear;
  Padding padding = Padding::zeros;
  bool align_corners = false;
};

Result<GridSettings> grid_settings(const OpCall& op) {
  GridSettings settings;
  const std::string mode = op.text("mode");
  const std::string padding = op.text("padding_mode");
  if (mode == "nearest") {
    settings.mode = SampleMode::nearest;
  } else if (mode == "cubic" || mode == "bicubic") {  // the latter of each pair is version 16's name
    settings.mode = SampleMode::cubic;
  } else if (mode != "linear" && mode != "bilinear") {
    return execution_error("attribute 'mode' is '" + mode + "'");
  }
  if (padding == "border") {
    settings.padding = Padding::border;
  } else if (padding == "reflection") {
    settings.padding = Padding::reflection;
  } else if (padding != "zeros") {
    return execution_error("attribute 'padding_mode' is '" + padding + "'");
  }
  settings.align_corners = op.integer("align_corners") != 0;
  return settings;
}

// The elements read along one axis, and their weights; -1: outside, where zeros are read.
template <class C>
struct AxisTaps {
  int64_t positions[4];
  C weights[4];
  int count = 0;
};

// One axis of the image: what is read at a coordinate in [-1, 1].
template <class C>
struct AxisSampler {
  GridSettings settings;
  int64_t length;

  PX_HD void place(C coordinate, AxisTaps<C>& taps) const {
    const C n = static_cast<C>(length);
    C x = settings.align_corners ? (coordinate + 1) / 2 * (n - 1) : ((coordinate + 1) * n - 1) / 2;
    // Not finite: outside. Beyond a thousand million elements nothing is inside either.
    const bool is_finite = x - x == C(0);
    x = !is_finite ? C(-2) : x < C(-1e9) ? C(-1e9) : x > C(1e9) ? C(1e9) : x;
    if (settings.mode != SampleMode::cubic && is_finite) x = padded(x);
    const C floor = std::floor(x);
    const auto below = static_cast<int64_t>(floor);
    if (settings.mode == SampleMode::nearest) {
      add(taps, static_cast<int64_t>(std::nearbyint(x)), C(1));
    } else if (settings.mode == SampleMode::linear) {
      add(taps, below, floor + 1 - x);
      add(taps, below + 1, x - floor);
    } else {
      const C t = x - floor;
      add(taps, below - 1, far_weight(t + 1));
      add(taps, below, near_weight(t));
      add(taps, below + 1, near_weight(1 - t));
      add(taps, below + 2, far_weight(2 - t));
    }
  }

 private:
  PX_HD void add(AxisTaps<C>& taps, int64_t position, C weight) const {
    if (position < 0 || position >= length) {
      if (settings.padding == Padding::zeros) {
        position = -1;
      } else {
        const C inside = padded(static_cast<C>(position));
        position = static_cast<int64_t>(std::floor(inside + C(0.5)));
        position = position >= length ? length - 1 : position;
      }
    }
    taps.positions[taps.count] = position;
    taps.weights[taps.count++] = weight;
  }
  PX_HD C padded(C x) const {
    if (settings.padding == Padding::zeros) return x;
    const C last = static_cast<C>(length - 1);
    if (settings.padding == Padding::reflection) {
      const C low = settings.align_corners ? C(0) : C(-0.5);
      x = reflected(x, low, settings.align_corners ? last : last + C(0.5));
    }
    return x < C(0) ? C(0) : (x > last ? last : x);
  }
  PX_HD static C reflected(C x, C low, C high) {
    const C span = high - low;
    if (span <= 0) return low;
    const C distance = std::fmod(std::fabs(x - low), 2 * span);
    return low + (distance > span ? 2 * span - distance : distance);
  }
  // Keys' kernel (1981) with the specification's a = -0.75.
  PX_HD static C near_weight(C d) { return (C(1.25) * d - C(2.25)) * d * d + 1; }
  PX_HD static C far_weight(C d) { return ((C(-0.75) * d + C(3.75)) * d - 6) * d + 3; }
};

// Places [samples, places, spatial axes], the last counted from the innermost axis of the image outward.
template <class Device, class C>
struct GridPlaces {
  Elements<Device, const C> grid;
  GridSettings settings;
  Axes lengths;  // of the image's spatial axes
  int64_t channels, places, plane;

  PX_HD int64_t row_of(int64_t element) const { return element / places / channels * places + element % places; }

  // Calls f(offset in a plane, weight) for everything that is read at row `row` of the grid, the taps of one axis with
  // those of all others; the offset is -1 outside of the image.
  template <class F>
  PX_HD void for_each_tap(int64_t row, const F& f) const {
    AxisTaps<C> taps[Shape::kMaxRank];
    int64_t combinations = 1;
    for (int axis = 0; axis < lengths.count; ++axis) {
      AxisSampler<C>{settings, lengths[axis]}.place(grid[row * lengths.count + lengths.count - 1 - axis], taps[axis]);
      combinations *= taps[axis].count;
    }
    for (int64_t number = 0; number < combinations; ++number) {
      int64_t offset = 0, scale = 1, rest = number;
      C weight = 1;
      for (int axis = lengths.count - 1; axis >= 0 && offset >= 0; --axis) {
        const auto tap = static_cast<int>(rest % taps[axis].count);
        rest /= taps[axis].count;
        const int64_t position = taps[axis].positions[tap];
        offset = position < 0 ? -1 : offset + position * scale;
        scale *= lengths[axis];
        weight *= taps[axis].weights[tap];
      }
      f(offset, weight);
    }
  }

  // The same of output element `element`, with offsets in the image and without those outside.
  template <class F>
  PX_HD void for_each_read(int64_t element, const F& f) const {
    for_each_tap(row_of(element), [&](int64_t offset, C weight) {
      if (offset >= 0) f(element / places * plane + offset, weight);
    });
  }
};

template <class Device, class C>
struct Interpolated {
  static constexpr int64_t kWork = 40;
  GridPlaces<Device, C> places;
  Elements<Device, const C> image;
  PX_HD C operator()(int64_t element) const {
    C sum = 0;
    places.for_each_read(element, [&](int64_t offset, C weight) { sum += weight * image[offset]; });
    return sum;
  }
};

// Mode nearest moves elements, whatever their type.
template <class Device>
struct NearestElement {
  GridPlaces<Device, double> places;
  PX_HD int64_t operator()(int64_t element) const {
    int64_t found = -1;
    places.for_each_read(element, [&](int64_t offset, double) { found = offset; });
    return found;
  }
};

template <class C, class Device>
Result<GridPlaces<Device, C>> grid_places(OpContext<Device>& op, const GridSettings& settings,
                                          std::shared_ptr<const C>& grid) {
  const Ints dims(op.input(0).shape());
  const Ints grid_dims(op.input(1).shape());
  grid = PX_TRY(converted<C>(op.queue(), op.input(1).view(), op.is_constant(1)));
  const Ints lengths(std::span<const int64_t>(dims).subspan(2));
  return GridPlaces<Device, C>{
      {grid.get()}, settings, Axes(lengths), dims[1], product(grid_dims, 1, grid_dims.size() - 1), product(lengths)};
}

// On the host: what a place reads is found once for all channels, `kPlacesAtOnce` places at a time.
template <class C>
class PlaneInterpolation {
 public:
  explicit PlaneInterpolation(const GridPlaces<Cpu, C>& places) : places_(places) {
    for (int axis = 0; axis < places.lengths.count; ++axis) taps_ *= places.settings.mode == SampleMode::cubic ? 4 : 2;
  }
  static bool suits(const GridPlaces<Cpu, C>& places) { return places.lengths.count <= 3 && places.plane < INT32_MAX; }

  void run(const C* image, int64_t samples, C* y) const {
    const int64_t blocks = (places_.places + kPlacesAtOnce - 1) / kPlacesAtOnce;
    const int64_t work = kPlacesAtOnce * (kPlaceWork + places_.channels * taps_);
    parallel_for(samples * blocks, work, [&](int64_t begin, int64_t end) {
      HostTaps<C> taps;
      taps.resize(taps_, kPlacesAtOnce);
      for (int64_t number = begin; number < end; ++number) {
        const int64_t sample = number / blocks, first = number % blocks * kPlacesAtOnce;
        const int64_t count = std::min(kPlacesAtOnce, places_.places - first);
        for (int64_t i = 0; i < count; ++i) {
          int64_t tap = 0;
          places_.for_each_tap(sample * places_.places + first + i,
                               [&](int64_t offset, C weight) { taps.set(tap++, i, offset, weight); });
        }
        for (int64_t channel = 0; channel < places_.channels; ++channel) {
          const int64_t plane = sample * places_.channels + channel;
          taps.add_up(image + plane * places_.plane, count, y + plane * places_.places + first);
        }
      }
    });
  }

 private:
  static constexpr int64_t kPlacesAtOnce = 256;
  static constexpr int64_t kPlaceWork = 80;

  const GridPlaces<Cpu, C>& places_;
  int64_t taps_ = 1;
};

template <class C, class Device>
Status interpolate(OpContext<Device>& op, const GridSettings& settings, const MutableView& y) {
  std::shared_ptr<const C> grid;
  const GridPlaces<Device, C> places = PX_TRY(grid_places<C>(op, settings, grid));
  const auto image = PX_TRY(converted<C>(op.queue(), op.input(0).view(), op.is_constant(0)));
  if constexpr (!GpuDevice<Device>) {
    if (y.dtype == storage_of<C>() && PlaneInterpolation<C>::suits(places)) {
      PlaneInterpolation<C>(places).run(image.get(), op.input(0).shape()[0], reinterpret_cast<C*>(y.data));
      return {};
    }
  }
  tabulate<C>(op.queue(), Interpolated<Device, C>{places, {image.get()}}, y);
  return {};
}

template <class Device>
Status grid_sample(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const Ints dims(x.shape());
  const Ints grid(op.input(1).shape());
  const GridSettings settings = PX_TRY(grid_settings(op));
  if (dims.size() < 3 || grid.size() != dims.size() || grid[0] != dims[0] || grid.back() != dims.size() - 2)
    return execution_error("the grid " + op.input(1).shape().to_string() + " does not fit " + x.shape().to_string());
  if (product(dims, 2, dims.size()) == 0) return execution_error("the input has empty planes");
  Ints out{dims[0], dims[1]};
  for (int64_t axis = 1; axis + 1 < grid.size(); ++axis) out.push_back(grid[axis]);
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), shape_of(out)));
  if (y.element_count() == 0) return {};
  if (settings.mode == SampleMode::nearest) {
    std::shared_ptr<const double> places;
    const NearestElement<Device> element{PX_TRY(grid_places<double>(op, settings, places))};
    index_map(op.queue(), element, y, x.view().data, 1);
    return {};
  }
  if (is_complex(x.dtype()) || x.dtype() == DType::bool_) return unsupported_dtype(x.dtype());
  const bool in_float = is_floating(x.dtype()) && x.dtype() != DType::float64;
  return in_float ? interpolate<float>(op, settings, y) : interpolate<double>(op, settings, y);
}

// ---- AffineGrid ----

// The place of element `element` of [sample, places, axis], counted from the innermost axis outward: theta times the
// evenly spaced place and 1.
template <class Device, class C>
struct AffinePlace {
  Elements<Device, const C> theta;
  Axes sizes;
  int64_t places;
  bool align_corners;
  PX_HD C operator()(int64_t element) const {
    const int axes = sizes.count;
    const int64_t row = element / axes / places * axes + element % axes;
    C sum = theta[row * (axes + 1) + axes];
    int64_t rest = element / axes % places;
    for (int axis = axes - 1; axis >= 0; --axis) {
      const C at = static_cast<C>(rest % sizes[axis]);
      const C size = static_cast<C>(sizes[axis]);
      rest /= sizes[axis];
      const C spaced = align_corners ? (size > 1 ? C(-1) + C(2) * at / (size - 1) : C(0)) : (C(2) * at + 1) / size - 1;
      sum += theta[row * (axes + 1) + axes - 1 - axis] * spaced;
    }
    return sum;
  }
};

template <class Device>
Status affine_grid(OpContext<Device>& op) {
  const Tensor& theta = op.input(0);
  const Ints size = PX_TRY(op.integers_of_input(1));
  const int64_t axes = size.size() - 2;
  if (axes != 2 && axes != 3) return execution_error("size must name 4 or 5 dimensions");
  const Shape wanted = PX_TRY(shape_of({size[0], axes, axes + 1}));
  if (!(theta.shape() == wanted))
    return execution_error("theta is " + theta.shape().to_string() + ", size asks for " + wanted.to_string());
  const Ints spatial(std::span<const int64_t>(size).subspan(2));
  Ints dims{size[0]};
  for (int64_t dim : spatial) dims.push_back(dim);
  dims.push_back(axes);
  const MutableView grid = PX_TRY(op.make_output(0, theta.dtype(), shape_of(dims)));
  const bool align = op.integer("align_corners") != 0;
  return visit_arithmetic<Floats>(theta.dtype(), [&](auto zero) -> Status {
    using C = decltype(zero);
    const auto values = PX_TRY(converted<C>(op.queue(), theta.view(), op.is_constant(0)));
    tabulate<C>(op.queue(), AffinePlace<Device, C>{{values.get()}, Axes(spatial), product(spatial), align}, grid);
    return {};
  });
}

template <class Device>
constexpr KernelRow<Device> kSamplingRows[] = {
    reads_on_host<Device>({1}, {"AffineGrid", kFloats, affine_grid<Device>}),
    {"GridSample", kMovable, grid_sample<Device>},
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> sampling_rows() {
  return kSamplingRows<CompiledDevice>;
}

}  // namespace parallax::runtime
