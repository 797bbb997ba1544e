// SPDX-License-Identifier: Apache-2.0
// Resize and Upsample: one axis after the other.
#include <cmath>
#include <concepts>
#include <limits>

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/channels_last.h"
#include "runtime/device/cpu/copy.h"
#include "runtime/device/cpu/map.h"
#include "runtime/device/cpu/products/gemm.h"
#include "runtime/device/gpu/element_of.h"
#include "runtime/ops/families.h"
#include "runtime/ops/indices.h"
#include "runtime/ops/orders.h"
#include "runtime/ops/spatial/host_taps.h"
#include "runtime/ops/spatial/resize_axis.h"

namespace parallax::runtime {
namespace {

Result<std::vector<double>> reals_of_input(const OpCall& op, int64_t input) {
  const Tensor& tensor = op.input(input);
  if (!is_floating(tensor.dtype())) return wrong_input(op, input, "hold floating numbers");
  std::vector<double> values(static_cast<size_t>(tensor.element_count()));
  load_block<double>(tensor.dtype(), tensor.view().data, 0, 1, tensor.element_count(), values.data());
  return values;
}

// Which input holds what, by version: -1 where a version has none.
struct ResizeInputs {
  int64_t roi = -1, scales = -1, sizes = -1;
};

ResizeInputs inputs_of(const OpCall& op) {
  if (op.node().op_type == "Upsample") return {-1, op.since_version() >= 9 ? 1 : -1, -1};
  if (op.since_version() < 11) return {-1, 1, -1};
  return {1, 2, 3};
}

bool given(const OpCall& op, int64_t input) {
  return input >= 0 && op.has_input(input) && op.input(input).element_count() > 0;
}

Result<std::vector<double>> scales_of(const OpCall& op, const ResizeInputs& inputs) {
  if (given(op, inputs.scales)) return reals_of_input(op, inputs.scales);
  if (op.since_version() < 7)  // Upsample-1: feature maps alone
    return std::vector<double>{1.0, 1.0, op.real("height_scale"), op.real("width_scale")};
  std::vector<double> scales;
  for (float scale : op.find_reals("scales").value_or(std::vector<float>{}))
    scales.push_back(static_cast<double>(scale));
  return scales;
}

constexpr double kLargestSize = 4611686018427387904.0;  // 2^62

Status apply_sizes(const OpCall& op, const Ints& axes, const Ints& sizes, std::vector<ResizeAxis>& result) {
  if (sizes.size() != axes.size())
    return wrong_length("input 'sizes'", sizes.size(), "have {}, one for each axis", axes.size());
  const std::string policy = op.find_text("keep_aspect_ratio_policy").value_or("stretch");
  double common = policy == "not_larger" ? std::numeric_limits<double>::infinity() : 0.0;
  for (int64_t i = 0; i < axes.size(); ++i) {
    ResizeAxis& axis = result.data()[axes[i]];
    if (sizes[i] == 0 && axis.in == 0) continue;
    if (sizes[i] < 1 || axis.in < 1)
      return wrong_value(fmt::format("the size asked for axis {}, which has {} elements,", axes[i], axis.in), sizes[i],
                         "be 1 or more, and the axis not be empty");
    axis.scale = static_cast<double>(sizes[i]) / static_cast<double>(axis.in);
    axis.out = sizes[i];
    common = policy == "not_larger" ? std::min(common, axis.scale) : std::max(common, axis.scale);
  }
  for (int64_t i = 0; policy != "stretch" && i < axes.size(); ++i) {
    ResizeAxis& axis = result.data()[axes[i]];
    if (axis.in == 0) continue;
    const double size = std::floor(common * static_cast<double>(axis.in) + 0.5);
    if (size >= kLargestSize)
      return wrong_value(fmt::format("the size of axis {} at one scale for all", axes[i]), size, "be below 2^62");
    axis.scale = common;
    axis.out = static_cast<int64_t>(size);
  }
  return {};
}

Result<std::vector<ResizeAxis>> resize_axes(const OpCall& op) {
  const Shape& x = op.input(0).shape();
  std::vector<ResizeAxis> result;
  Ints axes;
  for (int64_t axis = 0; axis < rank_of(x); ++axis) {
    result.push_back({dim_of(x, axis), dim_of(x, axis), 1.0, 0.0, 1.0});
    axes.push_back(axis);
  }
  if (const auto chosen = op.find_integers("axes")) {
    PX_TRY(OpCall::resolve_axes(*chosen, rank_of(x)));
    axes = *chosen;
    for (int64_t& axis : axes) axis = axis < 0 ? axis + rank_of(x) : axis;
  }
  const ResizeInputs inputs = inputs_of(op);
  if (given(op, inputs.sizes)) {
    const Ints sizes = PX_TRY(op.integers_of_input(inputs.sizes));
    PX_TRY(apply_sizes(op, axes, sizes, result));
  } else {
    const std::vector<double> scales = PX_TRY(scales_of(op, inputs));
    if (static_cast<int64_t>(scales.size()) != axes.size())
      return wrong_length("input 'scales'", scales.size(), "have {}, one for each axis", axes.size());
    for (int64_t i = 0; i < axes.size(); ++i) {
      ResizeAxis& axis = result.data()[axes[i]];
      axis.scale = scales.data()[i];
      const double out = std::floor(axis.scale * static_cast<double>(axis.in));
      if (!(axis.scale > 0) || !(out < 1e9))
        return wrong_value(fmt::format("the scale of axis {}", axes[i]), axis.scale,
                           "be positive and give fewer than 1e9 elements");
      axis.out = static_cast<int64_t>(out);
    }
  }
  if (given(op, inputs.roi)) {
    const std::vector<double> roi = PX_TRY(reals_of_input(op, inputs.roi));
    if (static_cast<int64_t>(roi.size()) != 2 * axes.size())
      return wrong_length("input 'roi'", roi.size(), "have {}, two for each axis", 2 * axes.size());
    for (int64_t i = 0; i < axes.size(); ++i) {
      result.data()[axes[i]].roi_start = roi.data()[i];
      result.data()[axes[i]].roi_end = roi.data()[i + axes.size()];
    }
  }
  return result;
}

ResizeSettings settings_of(const OpCall& op) {
  ResizeSettings settings;
  settings.mode = op.find_text("mode").value_or("nearest");
  if (settings.mode == "bilinear") settings.mode = "linear";  // Upsample-1's word
  const bool is_old = op.node().op_type == "Upsample" || op.since_version() < 11;
  settings.transform = is_old ? "asymmetric" : op.find_text("coordinate_transformation_mode").value_or("half_pixel");
  settings.nearest_mode = is_old ? "floor" : op.find_text("nearest_mode").value_or("round_prefer_floor");
  settings.cubic_a = op.find_real("cubic_coeff_a").value_or(-0.75);
  settings.exclude_outside = op.find_integer("exclude_outside").value_or(0) != 0;
  settings.antialias = op.find_integer("antialias").value_or(0) != 0;
  return settings;
}

// One axis as tables that kernels read, every position with as many taps: tap t of position i is number t * out + i.
template <class Device>
struct AxisTables {
  Elements<Device, const int64_t> indices, outside;
  Elements<Device, const double> weights;
  int64_t taps = 1;
};
template <class Device>
Result<AxisTables<Device>> axis_tables(OpContext<Device>& op, const ResizeTable& table) {
  AxisTables<Device> result;
  for (const auto& indices : table.indices) result.taps = std::max(result.taps, static_cast<int64_t>(indices.size()));
  const size_t out = table.indices.size();
  Ints indices, outside;
  std::vector<double> weights;
  for (size_t tap = 0; tap < static_cast<size_t>(result.taps); ++tap) {
    for (size_t position = 0; position < out; ++position) {
      const bool present = tap < table.indices[position].size();
      indices.push_back(present ? table.indices[position][tap] : 0);
      weights.push_back(present ? table.weights[position][tap] : 0.0);
    }
  }
  for (size_t position = 0; position < out; ++position) outside.push_back(table.outside[position] ? 1 : 0);
  result.indices = PX_TRY(op.table(std::move(indices)));
  result.weights = PX_TRY(op.table(std::move(weights)));
  result.outside = PX_TRY(op.table(std::move(outside)));
  return result;
}

// One axis, from [outer, in, inner] to [outer, out, inner] of C. What has no weight is not read: it may be NaN.
template <class C>
void resample(const C* from, const AxisTables<Cpu>& table, int64_t outer, int64_t in, int64_t out, int64_t inner,
              C* to) {
  const double* const weights = table.weights.data;
  const int64_t* const indices = table.indices.data;
  const int64_t taps = table.taps;
  if (inner == 1 && in < INT32_MAX) {
    HostTaps<C> rows;
    rows.resize(taps, out);
    for (int64_t number = 0; number < taps * out; ++number) {
      const int64_t offset = weights[number] == 0.0 ? -1 : indices[number];
      rows.set(number / out, number % out, offset, static_cast<C>(weights[number]));
    }
    parallel_for(outer, out * taps, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) rows.add_up(from + row * in, out, to + row * out);
    });
    return;
  }
  parallel_for(outer * out, inner * taps, [=](int64_t begin, int64_t end) {
    vectorized(begin, end, [=](int64_t first, int64_t last) {
      for (int64_t row = first; row < last; ++row) {
        C* const target = to + row * inner;
        const int64_t position = row % out;
        const C before = static_cast<C>(weights[position]);
        const C after = taps == 2 ? static_cast<C>(weights[out + position]) : C(0);
        if (before != C(0) && after != C(0)) {  // both at once
          const C* const source = from + (row / out * in + indices[position]) * inner;
          const C* const next = from + (row / out * in + indices[out + position]) * inner;
          PX_INDEPENDENT_ITERATIONS
          for (int64_t i = 0; i < inner; ++i) target[i] = C(0) + before * source[i] + after * next[i];
          continue;
        }
        std::fill_n(target, inner, C(0));
        for (int64_t tap = row % out; tap < taps * out; tap += out) {
          const C weight = static_cast<C>(weights[tap]);
          if (weight == C(0)) continue;
          const C* const source = from + (row / out * in + indices[tap]) * inner;
          PX_INDEPENDENT_ITERATIONS
          for (int64_t i = 0; i < inner; ++i) target[i] += weight * source[i];
        }
      }
    });
  });
}

// One result at a time: out is [outer, table, inner] of C.
template <class Device, class C>
struct Resampled {
  Source from;
  Elements<Device, const int64_t> indices;
  Elements<Device, const double> weights;
  Elements<Device, const int64_t> outside;  // of each position; none: nothing is extrapolated
  int64_t taps, in, out, inner;
  C fill_value;

  PX_HD C operator()(int64_t element) const {
    const int64_t position = element / inner % out;
    if (outside && outside[position] != 0) return fill_value;
    C sum = C(0);
    for (int64_t tap = position; tap < taps * out; tap += out) {
      const C weight = static_cast<C>(weights[tap]);
      if (weight == C(0)) continue;
      const int64_t source = (element / inner / out * in + indices[tap]) * inner + element % inner;
      sum += weight * element_of<Device, C>(from, source);
    }
    return sum;
  }
};

template <class C, GpuDevice Device>
Status interpolate(OpContext<Device>& op, TensorView from, const std::vector<ResizeAxis>& axes,
                   const std::vector<ResizeTable>& tables, const MutableView& y, bool extrapolates) {
  Ints dims(from.shape);
  const C fill_value = static_cast<C>(op.find_real("extrapolation_value").value_or(0.0));
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    if (axes[axis].is_plain() && !extrapolates) continue;
    const auto at = static_cast<int64_t>(axis);
    const AxisTables<Device> table = PX_TRY(axis_tables(op, tables[axis]));
    dims[at] = axes[axis].out;
    const MutableView to = PX_TRY(op.scratch(storage_of<C>(), shape_of(dims)));
    Resampled<Device, C> resampled{source_of(from), table.indices, table.weights,  {},
                                   table.taps,      axes[axis].in, axes[axis].out, product(dims, at + 1, dims.size()),
                                   fill_value};
    if (extrapolates) resampled.outside = table.outside;
    tabulate<C>(op.queue(), resampled, to);
    from = TensorView(to);
  }
  map_as<C, C>(op.queue(), Same{}, y, std::array<TensorView, 1>{from});
  return {};
}

// Stores `value` where a position is outside along any axis, `value`.
template <class C>
void fill_outside(const std::vector<ResizeTable>& tables, const Ints& dims, C value, C* values) {
  for (int64_t i = 0; i < product(dims); ++i) {
    int64_t rest = i;
    for (int64_t axis = dims.size() - 1; axis >= 0; --axis) {
      if (tables[static_cast<size_t>(axis)].outside[static_cast<size_t>(rest % dims[axis])]) values[i] = value;
      rest /= dims[axis];
    }
  }
}

// x and y in either layout, the axes and their tables in its order.
template <class C>
Status interpolate(OpContext<Cpu>& op, const TensorView& x, const std::vector<ResizeAxis>& axes,
                   const std::vector<ResizeTable>& tables, const MutableView& y, bool extrapolates) {
  size_t last = axes.size();  // axis that changes anything
  for (size_t axis = 0; axis < axes.size(); ++axis) last = axes[axis].is_plain() && !extrapolates ? last : axis;
  const std::shared_ptr<const C> start = PX_TRY(converted<C>(op.queue(), x, false));
  TensorView from{storage_of<C>(), x.shape, reinterpret_cast<const std::byte*>(start.get()), x.device};
  Ints dims(x.shape);
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    if (axes[axis].is_plain() && !extrapolates) continue;
    const auto at = static_cast<int64_t>(axis);
    const AxisTables<Cpu> table = PX_TRY(axis_tables(op, tables[axis]));
    const int64_t in = dims[at];
    dims[at] = axes[axis].out;
    const bool is_result = axis == last && y.dtype == storage_of<C>();
    MutableView to = y;
    if (!is_result) to = PX_TRY(op.scratch(storage_of<C>(), shape_of(dims)));
    resample(reinterpret_cast<const C*>(from.data), table, product(dims, 0, at), in, dims[at],
             product(dims, at + 1, dims.size()), reinterpret_cast<C*>(to.data));
    const bool is_last = axis + 1 == axes.size();
    if (extrapolates && is_last)
      fill_outside(tables, dims, static_cast<C>(op.find_real("extrapolation_value").value_or(0.0)),
                   reinterpret_cast<C*>(to.data));
    from = TensorView(to);
  }
  if (from.data != y.data) map_as<C, C>(op.queue(), Same{}, y, std::array<TensorView, 1>{from});
  return {};
}

// ---- Nearest on the host: lines of the last axis, each made once ----

// Elements of a line that its positions come from: copies of neighbors where it grows by a whole factor.
template <class T>
inline void pick_line(const T* from, const int64_t* locations, int64_t count, bool is_twice, T* to) {
  if (is_twice) {
    const int64_t pairs = count / 2;  // GCC's annotation takes no division that UBSan checks
    PX_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < pairs; ++i) to[2 * i] = to[2 * i + 1] = from[i];
    return;
  }
  for (int64_t i = 0; i < count; ++i) to[i] = from[locations[i]];
}

template <class T>
void pick_lines(const std::vector<std::vector<int64_t>>& locations, const Ints& in_strides, const Ints& dims,
                const std::byte* x, std::byte* y) {
  const int64_t last = dims.size() - 1, width = dims[last];
  const std::vector<int64_t>& columns = locations[static_cast<size_t>(last)];
  bool is_twice = width % 2 == 0, is_same = true;
  for (int64_t i = 0; i < width; ++i) {
    is_twice = is_twice && columns[static_cast<size_t>(i)] == i / 2;
    is_same = is_same && columns[static_cast<size_t>(i)] == i;
  }
  const auto pick_from = [&](int64_t begin, int64_t end) {
    int64_t before = -1;
    for (int64_t line = begin; line < end; ++line) {
      int64_t at = 0, rest = line;
      for (int64_t axis = last - 1; axis >= 0; --axis) {
        at += locations[static_cast<size_t>(axis)][static_cast<size_t>(rest % dims[axis])] * in_strides[axis];
        rest /= dims[axis];
      }
      T* const target = reinterpret_cast<T*>(y) + line * width;
      if (is_same) {
        std::copy_n(reinterpret_cast<const T*>(x) + at, width, target);
      } else if (at == before) {
        std::copy_n(target - width, width, target);
      } else {
        pick_line(reinterpret_cast<const T*>(x) + at, columns.data(), width, is_twice, target);
      }
      before = at;
    }
  };
  parallel_for(product(dims, 0, last), width, [&](int64_t begin, int64_t end) { vectorized(begin, end, pick_from); });
}

// False for elements of another width. The host's alone.
[[maybe_unused]] bool pick_nearest(const std::vector<ResizeTable>& tables, const Tensor& x, const Ints& dims,
                                   const MutableView& y) {
  std::vector<std::vector<int64_t>> locations;
  for (const ResizeTable& table : tables) {
    locations.emplace_back();
    for (const std::vector<int64_t>& indices : table.indices) locations.back().push_back(indices[0]);
  }
  const Ints strides = row_major_strides(x.shape());
  switch (element_bytes(x.dtype())) {
    case 1:
      return pick_lines<uint8_t>(locations, strides, dims, x.view().data, y.data), true;
    case 2:
      return pick_lines<uint16_t>(locations, strides, dims, x.view().data, y.data), true;
    case 4:
      return pick_lines<uint32_t>(locations, strides, dims, x.view().data, y.data), true;
    default:
      return false;
  }
}

// ---- Channels last, on the host ----

// The plan of each axis, in the order [N, spatial..., C].
template <class T>
std::vector<T> in_order_of_positions(const std::vector<T>& of_axes) {
  std::vector<T> ordered{of_axes[0]};
  ordered.insert(ordered.end(), of_axes.begin() + 2, of_axes.end());
  ordered.push_back(of_axes[1]);
  return ordered;
}

// A template, so that nothing of it is instantiated where this source is compiled for another device.
template <std::same_as<Cpu> Device>
Status resize_channels_last(OpContext<Device>& op, const std::vector<ResizeAxis>& axes,
                            const std::vector<ResizeTable>& tables, const Ints& dims, bool nearest) {
  const Tensor& x = op.input(0);
  const Shape shape = PX_TRY(shape_of(dims));
  const MutableView made = PX_TRY(make_channels_last_output(op, 0, shape, x.dtype()));
  if (made.element_count() == 0) return {};
  const Ints locations = with_channels_last(dims);
  const Tensor seen = Tensor::wrap(x.dtype(), PX_TRY(shape_of(with_channels_last(Ints(x.shape())))), x.storage());
  const MutableView y{x.dtype(), PX_TRY(shape_of(locations)), made.data};
  const auto ordered = in_order_of_positions(tables);
  if (nearest) return pick_nearest(ordered, seen, locations, y), Status{};
  return interpolate<float>(op, seen.view(), in_order_of_positions(axes), ordered, y, false);
}

template <class Device>
Status resize(OpContext<Device>& op) {
  Tensor x = op.input(0);
  const std::vector<ResizeAxis> axes = PX_TRY(resize_axes(op));
  const ResizeSettings settings = settings_of(op);
  constexpr int64_t kLongest = int64_t{1} << 26;  // the weights of an axis are all held at once
  Ints dims;
  std::vector<ResizeTable> tables;
  for (const ResizeAxis& axis : axes) {
    dims.push_back(axis.out);
    if (axis.out > kLongest && !axis.is_plain())
      return out_of_memory(fmt::format(
          "a resized axis has {} elements; it must have at most {}, as the weights of an axis are held at once",
          axis.out, kLongest));
    if (axis.in == 0 && axis.out > 0)
      return wrong_value("the size asked for an axis without elements", axis.out, "be 0");
    tables.push_back(PX_TRY(resize_table(axis, settings)));
  }
  const bool extrapolates = settings.transform == "tf_crop_and_resize";
  if constexpr (std::is_same_v<Device, Cpu>) {
    if (is_channels_last(x) && x.dtype() == DType::float32 && !extrapolates)
      return resize_channels_last(op, axes, tables, dims, settings.mode == "nearest");
    x = PX_TRY(to_row_major(op.queue(), x));
  }
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), shape_of(dims)));
  if (y.element_count() == 0) return {};
  if (settings.mode == "nearest" && !extrapolates) {
    if constexpr (std::is_same_v<Device, Cpu>) {
      if (!dims.empty() && pick_nearest(tables, x, dims, y)) return {};
    }
    Ints locations;
    for (const ResizeTable& table : tables) {
      for (const std::vector<int64_t>& indices : table.indices) locations.push_back(indices[0]);
    }
    const auto index = PX_TRY(tables_index(op, std::move(locations), dims, row_major_strides(x.shape())));
    return index_rows(op.queue(), index, y, x.view().data, index.columns()), Status{};
  }
  if (arithmetic_of(x.dtype()) == Arithmetic::none || x.dtype() == DType::bool_) return unsupported_dtype(x.dtype());
  if (x.dtype() == DType::float64 || !is_floating(x.dtype())) {
    return interpolate<double>(op, x.view(), axes, tables, y, extrapolates);
  }
  return interpolate<float>(op, x.view(), axes, tables, y, extrapolates);
}

template <class Device>
constexpr KernelRow<Device> kResizeRows[] = {
    takes_channels_last<Device>({0}, reads_on_host<Device>({1, 2, 3}, {"Resize", kMovable, resize<Device>})),
    takes_channels_last<Device>({0}, reads_on_host<Device>({1}, {"Upsample", kMovable, resize<Device>})),
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> resize_rows() {
  return kResizeRows<CompiledDevice>;
}

}  // namespace parallax::runtime
