// SPDX-License-Identifier: Apache-2.0
// RoiAlign and MaxRoiPool: bins over regions of a feature map.
#include <cmath>

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/find.h"
#include "runtime/device/cpu/map.h"
#include "runtime/device/cpu/math.h"
#include "runtime/device/cpu/products/gemm.h"
#include "runtime/device/cpu/tabulate.h"
#include "runtime/device/cpu/transpose_blocks.h"
#include "runtime/device/gpu/element_of.h"
#include "runtime/ops/families.h"
#include "runtime/ops/spatial/host_taps.h"

namespace parallax::runtime {
namespace {

struct OutsideBatch {
  int64_t batch;
  PX_HD bool operator()(int64_t index, int64_t) const { return index < 0 || index >= batch; }
};

template <class C>
PX_HD C clamped(C x, C low, C high) {
  return x < low ? low : (x > high ? high : x);
}

// Keeps the number of samples of a bin within bounds.
struct OutsideReach {
  double scale;
  PX_HD bool operator()(double corner, int64_t) const { return !(std::fabs(corner * scale) < 16777216.0); }
};

// ---- RoiAlign: the mean or the greatest of bilinear samples in each bin ----

struct RoiSettings {
  int64_t height, width, samples;
  double scale;
  bool half_pixel, takes_max;
};

// A region's bins in positions of the plane, and how many samples each has.
template <class C>
struct RegionBins {
  C start_x, start_y, bin_h, bin_w;
  int64_t grid_h, grid_w;

  PX_HD RegionBins(const RoiSettings& settings, C x1, C y1, C x2, C y2) {
    const C shift = settings.half_pixel ? C(0.5) : C(0);
    const C scale = static_cast<C>(settings.scale);
    start_x = x1 * scale - shift;
    start_y = y1 * scale - shift;
    C width = x2 * scale - shift - start_x;
    C height = y2 * scale - shift - start_y;
    if (!settings.half_pixel) {
      width = width > C(1) ? width : C(1);
      height = height > C(1) ? height : C(1);
    }
    bin_h = height / static_cast<C>(settings.height);
    bin_w = width / static_cast<C>(settings.width);
    grid_h = settings.samples > 0 ? settings.samples : static_cast<int64_t>(std::ceil(bin_h));
    grid_w = settings.samples > 0 ? settings.samples : static_cast<int64_t>(std::ceil(bin_w));
  }
  PX_HD int64_t sample_count() const { return grid_h * grid_w < 1 ? 1 : grid_h * grid_w; }
  PX_HD C sample_y(int64_t i, int64_t sample) const {
    return start_y + static_cast<C>(i) * bin_h + (static_cast<C>(sample) + C(0.5)) * bin_h / static_cast<C>(grid_h);
  }
  PX_HD C sample_x(int64_t j, int64_t sample) const {
    return start_x + static_cast<C>(j) * bin_w + (static_cast<C>(sample) + C(0.5)) * bin_w / static_cast<C>(grid_w);
  }
};

// The four elements of a plane around a position and their weights. The position is clamped to the plane; more than one
// element off it there is nothing.
template <class C>
struct Corners {
  bool is_inside;
  int64_t offsets[4] = {};
  C dy = 0, dx = 0;

  PX_HD Corners(C y, C x, int64_t rows, int64_t columns)
      : is_inside(!(y < C(-1) || y > static_cast<C>(rows) || x < C(-1) || x > static_cast<C>(columns))) {
    if (!is_inside) return;
    const C cy = clamped(y, C(0), static_cast<C>(rows - 1));
    const C cx = clamped(x, C(0), static_cast<C>(columns - 1));
    const auto top = static_cast<int64_t>(cy), left = static_cast<int64_t>(cx);
    const int64_t bottom = top + 1 < rows ? top + 1 : rows - 1;
    const int64_t right = left + 1 < columns ? left + 1 : columns - 1;
    dy = cy - static_cast<C>(top);
    dx = cx - static_cast<C>(left);
    offsets[0] = top * columns + left;
    offsets[1] = top * columns + right;
    offsets[2] = bottom * columns + left;
    offsets[3] = bottom * columns + right;
  }
  PX_HD C weight(int corner) const { return (corner < 2 ? 1 - dy : dy) * (corner % 2 == 0 ? 1 - dx : dx); }
};

template <class Device, class C>
struct AlignedBin {
  static constexpr int64_t kWork = 100;
  RoiSettings settings;
  int64_t channels, rows, columns;
  Elements<Device, const C> feature_maps, regions;
  Source batches;

  PX_HD RegionBins<C> bins_of(int64_t region) const {
    return {settings, regions[region * 4], regions[region * 4 + 1], regions[region * 4 + 2], regions[region * 4 + 3]};
  }
  PX_HD int64_t plane_of(int64_t region, int64_t channel) const {
    return (element_of<Device, int64_t>(batches, region) * channels + channel) * rows * columns;
  }

  PX_HD C operator()(int64_t element) const {
    const int64_t j = element % settings.width;
    const int64_t i = element / settings.width % settings.height;
    const int64_t region = element / (channels * settings.height * settings.width);
    const int64_t plane = plane_of(region, element / (settings.height * settings.width) % channels);
    const RegionBins<C> bins = bins_of(region);
    Sampled sampled;
    for (int64_t sy = 0; sy < bins.grid_h; ++sy) {
      for (int64_t sx = 0; sx < bins.grid_w; ++sx)
        add_sample(plane, {bins.sample_y(i, sy), bins.sample_x(j, sx), rows, columns}, sampled);
    }
    return settings.takes_max ? sampled.result : sampled.result / static_cast<C>(bins.sample_count());
  }

 private:
  struct Sampled {
    C result = 0;
    bool is_first = true;
  };
  PX_HD void add_sample(int64_t plane, const Corners<C>& corners, Sampled& sampled) const {
    for (int corner = 0; corner < 4; ++corner) {
      const C part = corners.is_inside ? feature_maps[plane + corners.offsets[corner]] * corners.weight(corner) : C(0);
      if (!settings.takes_max) {
        sampled.result += part;
      } else if (sampled.is_first || part > sampled.result) {
        sampled.result = part;
      }
      sampled.is_first = false;
    }
  }
};

// Means on the host: the samples of a region's bins are found once for all channels. `grouped`: the feature map as
// group_channels makes it, or null. False: there are too many samples.
template <class C>
bool align_region(const AlignedBin<Cpu, C>& bin, const C* grouped, int64_t region, HostTaps<C>& taps,
                  std::vector<C>& sums, C* y) {
  constexpr int64_t kMostSamples = 64;
  const RegionBins<C> bins = bin.bins_of(region);
  const int64_t samples = bins.grid_h * bins.grid_w, locations = bin.settings.height * bin.settings.width;
  // None: of a region that ends before it begins.
  if (bins.grid_h < 1 || bins.grid_w < 1 || samples > kMostSamples) return false;
  taps.resize(4 * samples, locations);
  for (int64_t location = 0; location < locations; ++location) {
    for (int64_t sample = 0; sample < samples; ++sample) {
      const Corners<C> corners(bins.sample_y(location / bin.settings.width, sample / bins.grid_w),
                               bins.sample_x(location % bin.settings.width, sample % bins.grid_w), bin.rows,
                               bin.columns);
      for (int corner = 0; corners.is_inside && corner < 4; ++corner)
        taps.set(4 * sample + corner, location, corners.offsets[corner], corners.weight(corner));
    }
  }
  const C count = static_cast<C>(bins.sample_count());
  constexpr int64_t kGroup = kChannelGroup<C>;
  for (int64_t channel = 0; channel < bin.channels && grouped != nullptr; channel += kGroup) {
    sums.resize(static_cast<size_t>(locations * kGroup));
    const int64_t groups = channel_groups<C>(bin.channels), plane = bin.rows * bin.columns;
    const int64_t sample = bin.plane_of(region, 0) / (bin.channels * plane);
    taps.add_up_group(grouped + (sample * groups * kGroup + channel) * plane, locations, sums.data());
    transpose(y + channel * locations, locations, sums.data(), kGroup, std::min(kGroup, bin.channels - channel),
              locations);
  }
  for (int64_t channel = 0; channel < bin.channels; ++channel, y += locations) {
    if (grouped == nullptr) taps.add_up(bin.feature_maps.data + bin.plane_of(region, channel), locations, y);
    for (int64_t location = 0; location < locations; ++location) y[location] /= count;
  }
  return true;
}

template <class C>
Status align_regions(OpContext<Cpu>& op, const AlignedBin<Cpu, C>& bin, int64_t count, C* y) {
  const int64_t locations = bin.settings.height * bin.settings.width, size = bin.channels * locations;
  const int64_t samples = op.input(0).shape()[0], plane = bin.rows * bin.columns;
  C* grouped = nullptr;
  // Applies where groups are at least half full and regions have about as many positions as the feature map.
  if (bin.channels * 2 >= kChannelGroup<C> && samples * plane <= count * locations * 4) {
    const int64_t elements = samples * channel_groups<C>(bin.channels) * kChannelGroup<C> * plane;
    grouped = reinterpret_cast<C*>(PX_TRY(op.scratch(storage_of<C>(), shape_of({elements}))).data);
    group_channels(bin.feature_maps.data, samples, bin.channels, plane, grouped);
  }
  parallel_for(count, size * 8, [&](int64_t begin, int64_t end) {
    HostTaps<C> taps;
    std::vector<C> sums;
    for (int64_t region = begin; region < end; ++region) {
      C* const own = y + region * size;
      if (align_region<C>(bin, grouped, region, taps, sums, own)) continue;
      for (int64_t i = 0; i < size; ++i) own[i] = bin(region * size + i);
    }
  });
  return {};
}

template <class Device>
Status roi_align(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const Tensor& regions = op.input(1);
  const Tensor& batches = op.input(2);
  if (x.shape().rank() != 4 || regions.shape().rank() != 2 || regions.shape()[1] != 4 ||
      batches.element_count() != regions.shape()[0])
    return wrong_input(op, 0, "be [N,C,H,W], rois, {}, be [n,4] and batch_indices, {}, be [n]",
                       op.input(1).shape().to_string(), op.input(2).shape().to_string());
  RoiSettings settings{op.integer("output_height"), op.integer("output_width"), op.integer("sampling_ratio"),
                       op.real("spatial_scale"),    op.since_version() >= 16,   op.text("mode") == "max"};
  if (op.since_version() >= 16) settings.half_pixel = op.text("coordinate_transformation_mode") == "half_pixel";
  constexpr int64_t kMostSamples = 1 << 12;  // along each axis of a bin
  if (op.integer("sampling_ratio") > kMostSamples)
    return wrong_attribute("sampling_ratio", op.integer("sampling_ratio"), "be at most {}", kMostSamples);
  if (settings.height < 1 || settings.width < 1)
    return wrong_value("the output's size", fmt::format("{} x {}", settings.height, settings.width),
                       "be 1 or more in 'output_height' and 'output_width'");
  const int64_t bad = PX_TRY(find_first<int64_t>(op.queue(), OutsideBatch{x.shape()[0]}, batches.view()));
  if (bad >= 0) return wrong_entry(op, 2, bad, "be in [0, {}), the batch of X", x.shape()[0]);
  const int64_t far = PX_TRY(find_first<double>(op.queue(), OutsideReach{settings.scale}, regions.view()));
  if (far >= 0) return wrong_entry(op, 1, far, "be within 2^24 after 'spatial_scale' ({})", settings.scale);
  const int64_t count = regions.shape()[0], channels = x.shape()[1];
  const Ints dims{count, channels, settings.height, settings.width};
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), shape_of(dims)));
  if (y.element_count() == 0) return {};
  return visit_arithmetic<Floats>(x.dtype(), [&](auto zero) -> Status {
    using C = decltype(zero);
    const auto feature_maps = PX_TRY(converted<C>(op.queue(), x.view(), op.is_constant(0)));
    const auto corners = PX_TRY(converted<C>(op.queue(), regions.view(), op.is_constant(1)));
    const AlignedBin<Device, C> bin{settings,
                                    channels,
                                    x.shape()[2],
                                    x.shape()[3],
                                    {feature_maps.get()},
                                    {corners.get()},
                                    source_of(batches.view())};
    if constexpr (!GpuDevice<Device>) {
      const bool is_small = x.shape()[2] * x.shape()[3] < INT32_MAX;
      if (is_small && y.dtype == storage_of<C>() && !settings.takes_max)
        return align_regions(op, bin, count, reinterpret_cast<C*>(y.data));
    }
    tabulate<C>(op.queue(), bin, y);
    return {};
  });
}

// ---- MaxRoiPool: the greatest element of each bin of each region [sample, x1, y1, x2, y2] ----

// The specification leaves the bins open; these are those of the paper that names the operator (Fast R-CNN, 2015) and
// of its first implementation: corners rounded, away from zero at a half, regions of one element at least, bins from
// floor to ceil, an empty bin 0.
struct Bin {
  int64_t begin, end;
};
PX_HD inline Bin bin_of(double first, double last, int64_t index, int64_t count, int64_t length) {
  const double extent = last - first + 1 > 1.0 ? last - first + 1 : 1.0;
  const double size = extent / static_cast<double>(count);
  const double limit = static_cast<double>(length);
  const double begin = first + std::floor(static_cast<double>(index) * size);
  const double end = first + std::ceil(static_cast<double>(index + 1) * size);
  return {static_cast<int64_t>(clamped(begin, 0.0, limit)), static_cast<int64_t>(clamped(end, 0.0, limit))};
}

template <class Device, class C>
struct GreatestOfBin {
  static constexpr int64_t kWork = 30;
  double scale;
  int64_t height, width;  // bins
  int64_t channels, rows, columns;
  Elements<Device, const C> feature_maps;
  Source regions;

  PX_HD C operator()(int64_t element) const {
    const int64_t region = element / (channels * height * width);
    const auto sample = static_cast<int64_t>(element_of<Device, double>(regions, region * 5));
    const int64_t plane = (sample * channels + element / (height * width) % channels) * rows * columns;
    const Bin down = bin_of(corner(region, 2), corner(region, 4), element / width % height, height, rows);
    const Bin along = bin_of(corner(region, 1), corner(region, 3), element % width, width, columns);
    if (down.begin >= down.end || along.begin >= along.end) return C(0);
    C best = feature_maps[plane + down.begin * columns + along.begin];
    for (int64_t row = down.begin; row < down.end; ++row) {
      for (int64_t column = along.begin; column < along.end; ++column) {
        best = math::maximum(best, feature_maps[plane + row * columns + column]);
      }
    }
    return best;
  }

 private:
  PX_HD double corner(int64_t region, int64_t which) const {
    return std::round(element_of<Device, double>(regions, region * 5 + which) * scale);
  }
};

struct OutsideSamples {
  double batch, scale;
  PX_HD bool operator()(double value, int64_t location) const {
    constexpr double kFarthest = 4611686018427387904.0;  // 2^62
    return location % 5 == 0 ? !(value >= 0 && value < batch) : !(std::fabs(value * scale) < kFarthest);
  }
};

template <class Device>
Status max_roi_pool(OpContext<Device>& op) {
  const Shape& x = op.input(0).shape();
  const Tensor& regions = op.input(1);
  const Ints bins = op.find_integers("pooled_shape").value_or(Ints{});
  if (x.rank() != 4 || regions.shape().rank() != 2 || regions.shape()[1] != 5)
    return wrong_input(op, 0, "be [N,C,H,W], and rois, {}, be [n,5]", op.input(1).shape().to_string());
  if (bins.size() != 2 || bins[0] < 1 || bins[1] < 1)
    return wrong_attribute("pooled_shape", bins, "be two sizes of 1 or more");
  const double batch = static_cast<double>(x[0]), scale = op.real("spatial_scale");
  const int64_t bad = PX_TRY(find_first<double>(op.queue(), OutsideSamples{batch, scale}, regions.view()));
  if (bad >= 0)
    return wrong_entry(op, 1, bad, "be a sample in [0, {}) or a corner below 2^62 after 'spatial_scale' ({})", x[0],
                       scale);
  const DType dtype = op.input(0).dtype();
  const MutableView y = PX_TRY(op.make_output(0, dtype, shape_of({regions.shape()[0], x[1], bins[0], bins[1]})));
  if (y.element_count() == 0) return {};
  return visit_arithmetic<Floats>(dtype, [&](auto zero) -> Status {
    using C = decltype(zero);
    const auto feature_maps = PX_TRY(converted<C>(op.queue(), op.input(0).view(), op.is_constant(0)));
    tabulate<C>(op.queue(),
                GreatestOfBin<Device, C>{
                    scale, bins[0], bins[1], x[1], x[2], x[3], {feature_maps.get()}, source_of(regions.view())},
                y);
    return {};
  });
}

template <class Device>
constexpr KernelRow<Device> kRegionRows[] = {
    {"MaxRoiPool", kFloats, max_roi_pool<Device>},
    {"RoiAlign", kFloats, roi_align<Device>},
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> region_rows() {
  return kRegionRows<CompiledDevice>;
}

}  // namespace parallax::runtime
