// SPDX-License-Identifier: Apache-2.0
// GridSample and AffineGrid: feature maps read at fractional coordinates, and the grids of such coordinates.
#include <cmath>

#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/copy.h"
#include "runtime/device/cpu/map.h"
#include "runtime/device/cpu/products/gemm.h"
#include "runtime/device/cpu/tabulate.h"
#include "runtime/ops/families.h"
#include "runtime/ops/indices.h"
#include "runtime/ops/spatial/grid_positions.h"
#include "runtime/ops/spatial/host_grid.h"

namespace parallax::runtime {
namespace {

Result<GridSettings> grid_settings(const OpCall& op) {
  GridSettings settings;
  const std::string mode = op.text("mode");
  const std::string padding = op.text("padding_mode");
  if (mode == "nearest") {
    settings.mode = SampleMode::nearest;
  } else if (mode == "cubic" || mode == "bicubic") {  // the latter of each pair is version 16's name
    settings.mode = SampleMode::cubic;
  } else if (mode != "linear" && mode != "bilinear")
    return wrong_attribute("mode", mode, "be nearest, linear or cubic (bilinear, bicubic in version 16)");
  if (padding == "border") {
    settings.padding = Padding::border;
  } else if (padding == "reflection") {
    settings.padding = Padding::reflection;
  } else if (padding != "zeros")
    return wrong_attribute("padding_mode", padding, "be zeros, border or reflection");
  settings.align_corners = op.integer("align_corners") != 0;
  return settings;
}

template <class Device, class C>
struct Interpolated {
  static constexpr int64_t kWork = 40;
  GridPositions<Device, C> locations;
  Elements<Device, const C> feature_maps;
  PX_HD C operator()(int64_t element) const {
    C sum = 0;
    locations.for_each_read(element, [&](int64_t offset, C weight) { sum += weight * feature_maps[offset]; });
    return sum;
  }
};

// Mode nearest moves elements, whatever their type.
template <class Device>
struct NearestElement {
  GridPositions<Device, double> locations;
  PX_HD int64_t operator()(int64_t element) const {
    int64_t found = -1;
    locations.for_each_read(element, [&](int64_t offset, double) { found = offset; });
    return found;
  }
};

template <class C, class Device>
Result<GridPositions<Device, C>> grid_positions(OpContext<Device>& op, const GridSettings& settings,
                                                std::shared_ptr<const C>& grid) {
  const Ints dims(op.input(0).shape());
  const Ints grid_dims(op.input(1).shape());
  grid = PX_TRY(converted<C>(op.queue(), op.input(1).view(), op.is_constant(1)));
  const Ints lengths(std::span<const int64_t>(dims).subspan(2));
  return GridPositions<Device, C>{
      {grid.get()}, settings, Axes(lengths), dims[1], product(grid_dims, 1, grid_dims.size() - 1), product(lengths)};
}

template <class C, class Device>
Status interpolate(OpContext<Device>& op, const GridSettings& settings, const MutableView& y) {
  std::shared_ptr<const C> grid;
  const GridPositions<Device, C> locations = PX_TRY(grid_positions<C>(op, settings, grid));
  const auto feature_maps = PX_TRY(converted<C>(op.queue(), op.input(0).view(), op.is_constant(0)));
  if constexpr (!GpuDevice<Device>) {
    if (y.dtype == storage_of<C>() && suits_host_grid(locations))
      return interpolate_on_host<C>(op, locations, feature_maps.get(), op.input(0).shape()[0],
                                    reinterpret_cast<C*>(y.data));
  }
  tabulate<C>(op.queue(), Interpolated<Device, C>{locations, {feature_maps.get()}}, y);
  return {};
}

template <class Device>
Status grid_sample(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const Ints dims(x.shape());
  const Ints grid(op.input(1).shape());
  const GridSettings settings = PX_TRY(grid_settings(op));
  if (dims.size() < 3 || grid.size() != dims.size() || grid[0] != dims[0] || grid.back() != dims.size() - 2)
    return wrong_input(op, 1, "be [N,...,{}] with the rank and batch of X {}", dims.size() - 2, x.shape().to_string());
  if (product(dims, 2, dims.size()) == 0) return wrong_input(op, 0, "have one element or more along each spatial axis");
  Ints out{dims[0], dims[1]};
  for (int64_t axis = 1; axis + 1 < grid.size(); ++axis) out.push_back(grid[axis]);
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), shape_of(out)));
  if (y.element_count() == 0) return {};
  if (settings.mode == SampleMode::nearest) {
    std::shared_ptr<const double> locations;
    const NearestElement<Device> element{PX_TRY(grid_positions<double>(op, settings, locations))};
    index_map(op.queue(), element, y, x.view().data, 1);
    return {};
  }
  if (is_complex(x.dtype()) || x.dtype() == DType::bool_) return unsupported_dtype(x.dtype());
  const bool in_float = is_floating(x.dtype()) && x.dtype() != DType::float64;
  return in_float ? interpolate<float>(op, settings, y) : interpolate<double>(op, settings, y);
}

// ---- AffineGrid ----

// The coordinate of element `element` of [sample, positions, axis], counted from the innermost axis outward: theta
// times the evenly spaced coordinate and 1.
template <class Device, class C>
struct AffineIndex {
  Elements<Device, const C> theta;
  Axes sizes;
  int64_t locations;
  bool align_corners;
  PX_HD C operator()(int64_t element) const {
    const int axes = sizes.count;
    const int64_t row = element / axes / locations * axes + element % axes;
    C sum = theta[row * (axes + 1) + axes];
    int64_t rest = element / axes % locations;
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
  if (axes != 2 && axes != 3) return wrong_length("input 'size'", size.size(), "have 4 or 5");
  const Shape wanted = PX_TRY(shape_of({size[0], axes, axes + 1}));
  if (!(theta.shape() == wanted)) return wrong_input(op, 0, "have shape {}, as size says", wanted.to_string());
  const Ints spatial(std::span<const int64_t>(size).subspan(2));
  Ints dims{size[0]};
  for (int64_t dim : spatial) dims.push_back(dim);
  dims.push_back(axes);
  const MutableView grid = PX_TRY(op.make_output(0, theta.dtype(), shape_of(dims)));
  const bool align = op.integer("align_corners") != 0;
  return visit_arithmetic<Floats>(theta.dtype(), [&](auto zero) -> Status {
    using C = decltype(zero);
    const auto values = PX_TRY(converted<C>(op.queue(), theta.view(), op.is_constant(0)));
    tabulate<C>(op.queue(), AffineIndex<Device, C>{{values.get()}, Axes(spatial), product(spatial), align}, grid);
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
