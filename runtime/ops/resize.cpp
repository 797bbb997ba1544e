// Resize and Upsample: one axis after the other.
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "runtime/device/copy.h"
#include "runtime/device/element_of.h"
#include "runtime/device/map.h"
#include "runtime/ops/families.h"
#include "runtime/ops/indices.h"
#include "runtime/ops/resize_axis.h"

namespace parallax::runtime {
namespace {

Result<std::vector<double>> reals_of_input(const OpCall& op, int64_t input) {
  const Tensor& tensor = op.input(input);
  if (!is_floating(tensor.dtype())) return execution_error(fmt::format("input {} must hold floats", input));
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
  if (op.since_version() < 7)  // Upsample-1: images alone
    return std::vector<double>{1.0, 1.0, op.real("height_scale"), op.real("width_scale")};
  std::vector<double> scales;
  for (float scale : op.find_reals("scales").value_or(std::vector<float>{}))
    scales.push_back(static_cast<double>(scale));
  return scales;
}

Status apply_sizes(const OpCall& op, const Ints& axes, const Ints& sizes, std::vector<ResizeAxis>& result) {
  if (sizes.size() != axes.size()) return execution_error("sizes and axes differ in length");
  const std::string policy = op.find_text("keep_aspect_ratio_policy").value_or("stretch");
  double common = policy == "not_larger" ? std::numeric_limits<double>::infinity() : 0.0;
  for (int64_t i = 0; i < axes.size(); ++i) {
    ResizeAxis& axis = result.data()[axes[i]];
    if (sizes[i] < 1 || axis.in < 1) return execution_error("a size is not positive");
    axis.scale = static_cast<double>(sizes[i]) / static_cast<double>(axis.in);
    axis.out = sizes[i];
    common = policy == "not_larger" ? std::min(common, axis.scale) : std::max(common, axis.scale);
  }
  for (int64_t i = 0; policy != "stretch" && i < axes.size(); ++i) {
    ResizeAxis& axis = result.data()[axes[i]];
    axis.scale = common;
    axis.out = static_cast<int64_t>(std::floor(common * static_cast<double>(axis.in) + 0.5));
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
    if (static_cast<int64_t>(scales.size()) != axes.size()) return execution_error("scales and axes differ in length");
    for (int64_t i = 0; i < axes.size(); ++i) {
      ResizeAxis& axis = result.data()[axes[i]];
      axis.scale = scales.data()[i];
      const double out = std::floor(axis.scale * static_cast<double>(axis.in));
      if (!(axis.scale > 0) || !(out < 1e9)) return execution_error(fmt::format("a scale is {}", axis.scale));
      axis.out = static_cast<int64_t>(out);
    }
  }
  if (given(op, inputs.roi)) {
    const std::vector<double> roi = PX_TRY(reals_of_input(op, inputs.roi));
    if (static_cast<int64_t>(roi.size()) != 2 * axes.size()) return execution_error("roi and axes differ in length");
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

// One axis: [outer, in, inner] to [outer, out, inner].
template <class C>
void resample(const std::vector<C>& from, const ResizeTable& table, int64_t outer, int64_t in, int64_t inner,
              std::vector<C>& to) {
  const auto out = static_cast<int64_t>(table.indices.size());
  to.assign(static_cast<size_t>(outer * out * inner), C(0));
  parallel_for(outer * out, inner * 4, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      const auto position = static_cast<size_t>(index % out);
      C* target = to.data() + index * inner;
      for (size_t tap = 0; tap < table.indices[position].size(); ++tap) {
        const C weight = static_cast<C>(table.weights[position][tap]);
        if (weight == C(0)) continue;
        const C* source = from.data() + (index / out * in + table.indices[position][tap]) * inner;
        for (int64_t i = 0; i < inner; ++i) target[i] += weight * source[i];
      }
    }
  });
}

// The same a result at a time: out is [outer, table, inner] of C.
template <class Device, class C>
struct Resampled {
  Source from;
  Elements<Device, const int64_t> indices;  // `taps` for each position
  Elements<Device, const double> weights;
  Elements<Device, const int64_t> outside;  // of each position; none: nothing is extrapolated
  int64_t taps, in, out, inner;
  C fill_value;

  PX_HD C operator()(int64_t element) const {
    const int64_t position = element / inner % out;
    if (outside && outside[position] != 0) return fill_value;
    C sum = C(0);
    for (int64_t tap = position * taps; tap < (position + 1) * taps; ++tap) {
      const C weight = static_cast<C>(weights[tap]);
      if (weight == C(0)) continue;
      const int64_t source = (element / inner / out * in + indices[tap]) * inner + element % inner;
      sum += weight * element_of<Device, C>(from, source);
    }
    return sum;
  }
};

// One axis as tables that kernels read, every position with as many taps.
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
  const auto taps = static_cast<size_t>(result.taps);
  Ints indices, outside;
  std::vector<double> weights;
  for (size_t position = 0; position < table.indices.size(); ++position) {
    for (size_t tap = 0; tap < taps; ++tap) {
      const bool present = tap < table.indices[position].size();
      indices.push_back(present ? table.indices[position][tap] : 0);
      weights.push_back(present ? table.weights[position][tap] : 0.0);
    }
    outside.push_back(table.outside[position] ? 1 : 0);
  }
  result.indices = PX_TRY(op.table(std::move(indices)));
  result.weights = PX_TRY(op.table(std::move(weights)));
  result.outside = PX_TRY(op.table(std::move(outside)));
  return result;
}

template <class C, GpuDevice Device>
Status interpolate(OpContext<Device>& op, const std::vector<ResizeAxis>& axes, const std::vector<ResizeTable>& tables,
                   const MutableView& y, bool extrapolates) {
  TensorView from = op.input(0).view();
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

template <class C>
Status interpolate(OpContext<Cpu>& op, const std::vector<ResizeAxis>& axes, const std::vector<ResizeTable>& tables,
                   const MutableView& y, bool extrapolates) {
  const Tensor& x = op.input(0);
  std::vector<C> values(static_cast<size_t>(x.element_count())), next;
  load_block<C>(x.dtype(), x.view().data, 0, 1, x.element_count(), values.data());
  Ints dims(x.shape());
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    if (axes[axis].is_plain() && !extrapolates) continue;
    const auto at = static_cast<int64_t>(axis);
    resample(values, tables[axis], product(dims, 0, at), dims[at], product(dims, at + 1, dims.size()), next);
    dims[at] = axes[axis].out;
    values.swap(next);
  }
  const C fill_value = static_cast<C>(op.find_real("extrapolation_value").value_or(0.0));
  for (int64_t i = 0; extrapolates && i < y.element_count(); ++i) {
    int64_t rest = i;
    for (int64_t axis = dims.size() - 1; axis >= 0; --axis) {
      if (tables[static_cast<size_t>(axis)].outside[static_cast<size_t>(rest % dims[axis])])
        values.data()[i] = fill_value;
      rest /= dims[axis];
    }
  }
  store_block<C>(y.dtype, y.data, 0, y.element_count(), values.data());
  return {};
}

template <class Device>
struct NearestIndex {
  Elements<Device, const int64_t> places;  // of all axes one after the other
  Axes dims;                               // of the output
  Axes strides;                            // of the input
  PX_HD int64_t operator()(int64_t element) const {
    int64_t table = 0;
    for (int axis = 0; axis < dims.count; ++axis) table += dims[axis];
    int64_t offset = 0;
    for (int axis = dims.count - 1; axis >= 0; --axis) {
      table -= dims[axis];
      offset += places[table + element % dims[axis]] * strides[axis];
      element /= dims[axis];
    }
    return offset;
  }
};

template <class Device>
Status resize(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const std::vector<ResizeAxis> axes = PX_TRY(resize_axes(op));
  const ResizeSettings settings = settings_of(op);
  Ints dims;
  std::vector<ResizeTable> tables;
  for (const ResizeAxis& axis : axes) {
    dims.push_back(axis.out);
    if (axis.in == 0 && axis.out > 0) return execution_error("an empty axis cannot grow");
    tables.push_back(PX_TRY(resize_table(axis, settings)));
  }
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), shape_of(dims)));
  const bool extrapolates = settings.transform == "tf_crop_and_resize";
  if (settings.mode == "nearest" && !extrapolates) {
    Ints places;
    for (const ResizeTable& table : tables) {
      for (const std::vector<int64_t>& indices : table.indices) places.push_back(indices[0]);
    }
    const NearestIndex<Device> index{PX_TRY(op.table(std::move(places))), Axes(dims),
                                     Axes(row_major_strides(x.shape()))};
    return index_map(op.queue(), index, y, x.view().data, 1), Status{};
  }
  if (arithmetic_of(x.dtype()) == Arithmetic::none || x.dtype() == DType::bool_) return unsupported_dtype(x.dtype());
  if (x.dtype() == DType::float64 || !is_floating(x.dtype())) {
    return interpolate<double>(op, axes, tables, y, extrapolates);
  }
  return interpolate<float>(op, axes, tables, y, extrapolates);
}

template <class Device>
constexpr KernelRow<Device> kResizeRows[] = {
    reads_on_host<Device>({1, 2, 3}, {"Resize", kMovable, resize<Device>}),
    reads_on_host<Device>({1}, {"Upsample", kMovable, resize<Device>}),
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> resize_rows() {
  return kResizeRows<CompiledDevice>;
}

}  // namespace parallax::runtime
