// SPDX-License-Identifier: Apache-2.0
// Normalizations with statistics of a channel: BatchNormalization, InstanceNormalization, GroupNormalization, LRN, MVN;
// and the global pools, which are folds over a channel's plane.
#include <algorithm>
#include <cmath>

#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/channels_last.h"
#include "runtime/device/cpu/copy.h"
#include "runtime/device/cpu/map.h"
#include "runtime/device/cpu/math.h"
#include "runtime/device/cpu/products/gemm.h"
#include "runtime/device/cpu/rows/rows.h"
#include "runtime/device/cpu/window_channels_last.h"
#include "runtime/ops/families.h"
#include "runtime/ops/row_folds.h"

namespace parallax::runtime {
namespace {

template <class C>
struct Linear {  // x * factor + offset
  C factor;
  C offset;
  PX_HD C operator()(C x) const { return x * factor + offset; }
};

// The values of a [channels] input in C.
template <class C, class Device>
Result<std::shared_ptr<const C>> per_channel(OpContext<Device>& op, int64_t input, int64_t channels) {
  const Tensor& tensor = op.input(input);
  if (tensor.element_count() != channels)
    return wrong_input(op, input, "have {} elements, one for each channel", channels);
  return converted<C>(op.queue(), tensor.view(), op.is_constant(input));
}

template <class Device, class C>
struct BatchNormRow {
  static constexpr bool kEmitsOnce = true;
  int64_t channels;
  C epsilon;
  Elements<Device, const C> scale, bias, mean, variance;
  PX_HD Linear<C> linear_of(int64_t channel) const {
    const C factor = scale[channel] / std::sqrt(variance[channel] + epsilon);
    return {factor, bias[channel] - mean[channel] * factor};
  }
  template <class Team>
  PX_HD void operator()(Team& team, int64_t row) const {
    const Linear<C> linear = linear_of(row % channels);
    team.emit_runs(team.length(), [=](int64_t) { return linear; });
  }
};

struct TimesPlus {
  template <class C>
  PX_HD C operator()(C x, C factor, C offset) const {
    return x * factor + offset;
  }
};

// Planes of one element on the host: whole rows of channels, each with a factor and an offset of its own.
template <class C>
void batch_norm_of_rows(Queue<Cpu>& queue, const BatchNormRow<Cpu, C>& row, const MutableView& y, TensorView x) {
  std::vector<C> factors, offsets;
  for (int64_t channel = 0; channel < row.channels; ++channel) {
    const Linear<C> linear = row.linear_of(channel);
    factors.push_back(linear.factor);
    offsets.push_back(linear.offset);
  }
  const auto view_of = [](const std::vector<C>& values) {
    const Shape shape{static_cast<int64_t>(values.size())};
    return TensorView{storage_of<C>(), shape, reinterpret_cast<const std::byte*>(values.data()), {}};
  };
  x.shape = Shape{x.element_count() / row.channels, row.channels};
  const MutableView rows{y.dtype, x.shape, y.data};
  map_as<C, C>(queue, TimesPlus{}, rows, std::array<TensorView, 3>{x, view_of(factors), view_of(offsets)});
}

template <class C, class Device>
Status batch_norm_as(OpContext<Device>& op, const MutableView& y) {
  const Tensor& x = op.input(0);
  const int64_t channels = x.shape().rank() > 1 ? x.shape()[1] : 1;
  const auto scale = PX_TRY(per_channel<C>(op, 1, channels));
  const auto bias = PX_TRY(per_channel<C>(op, 2, channels));
  const auto mean = PX_TRY(per_channel<C>(op, 3, channels));
  const auto variance = PX_TRY(per_channel<C>(op, 4, channels));
  const Ints dims(x.shape());
  const RowLayout rows{x.shape()[0] * channels, product(dims, 2, dims.size()), 1};
  const BatchNormRow<Device, C> row{
      channels, static_cast<C>(op.real("epsilon")), {scale.get()}, {bias.get()}, {mean.get()}, {variance.get()}};
  if constexpr (std::is_same_v<Device, Cpu>) {
    if (rows.length == 1 && channels > 1) return batch_norm_of_rows(op.queue(), row, y, x.view()), Status{};
  }
  scan_rows<C, C>(op.queue(), row, rows, y, x.view());
  return {};
}

template <class Device>
Status batch_normalization(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  if (x.shape().rank() < 1) return wrong_input(op, 0, "have rank 1 or more");
  const MutableView y = PX_TRY(op.make_output_over(0, x.dtype(), x.shape(), {0}));
  return x.dtype() == DType::float64 ? batch_norm_as<double>(op, y) : batch_norm_as<float>(op, y);
}

// With the statistics of each channel given; batch_statistics.cpp has the rest.
bool is_batch_inference(const Node& node) {
  const auto integer = [&](std::string_view name, int64_t otherwise) {
    const Attribute* found = find_attribute(node, name);
    const auto* value = found == nullptr ? nullptr : std::get_if<int64_t>(&found->value);
    return value == nullptr ? otherwise : *value;
  };
  const int64_t version = node.schema->since_version;
  if (version >= 14) return integer("training_mode", 0) == 0;
  if (version < 9 && integer("spatial", 1) == 0) return false;
  return version >= 7 ? node.outputs.size() < 2 || node.outputs[1] == kNoValue : integer("is_test", 0) != 0;
}

// Rows of `groups` groups of channels, each normalized by its own moments; scale and bias for each channel or, before
// GroupNormalization-21, for each group.
template <class Device, class C>
struct GroupNormRow {
  static constexpr bool kEmitsOnce = true;
  int64_t groups, per_group, plane;
  bool by_group;
  C epsilon;
  Elements<Device, const C> scale, bias;

  template <class Team>
  PX_HD void operator()(Team& team, int64_t row) const {
    const Moments<C> moments = moments_of(team);
    const C inverse = C(1) / std::sqrt(moments.variance + epsilon);
    const int64_t group = row % groups;
    team.emit_runs(plane, [&](int64_t channel) {
      const int64_t parameter = by_group ? group : group * per_group + channel;
      return LinearFromMean<C>{moments, scale[parameter] * inverse, bias[parameter]};
    });
  }
};

template <class C, class Device>
Status group_norm_as(OpContext<Device>& op, int64_t groups, const MutableView& y) {
  const Tensor& x = op.input(0);
  const int64_t channels = x.shape()[1];
  const bool by_group = op.input(1).element_count() == groups && groups != channels;
  const auto scale = PX_TRY(per_channel<C>(op, 1, by_group ? groups : channels));
  const auto bias = PX_TRY(per_channel<C>(op, 2, by_group ? groups : channels));
  const Ints dims(x.shape());
  const int64_t plane = product(dims, 2, dims.size());
  const int64_t per_group = channels / groups;
  const RowLayout rows{x.shape()[0] * groups, per_group * plane, 1};
  if (rows.length == 0) return {};
  const GroupNormRow<Device, C> row{groups,        per_group,   plane, by_group, static_cast<C>(op.real("epsilon")),
                                    {scale.get()}, {bias.get()}};
  scan_rows<C, C>(op.queue(), row, rows, y, x.view(), 3);
  return {};
}

template <class Device>
Status group_norm(OpContext<Device>& op, int64_t groups) {
  const Tensor& x = op.input(0);
  if (x.shape().rank() < 2 || groups < 1 || x.shape()[1] % groups != 0)
    return wrong_input(op, 0, "have rank 2 or more and channels that split into {} groups, 1 or more", groups);
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), x.shape()));
  return x.dtype() == DType::float64 ? group_norm_as<double>(op, groups, y) : group_norm_as<float>(op, groups, y);
}

template <class Device>
Status instance_normalization(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  if (x.element_count() == 0) {
    PX_TRY(op.make_output(0, x.dtype(), x.shape()));
    return {};
  }
  return group_norm(op, op.input(0).shape().rank() < 2 ? 1 : op.input(0).shape()[1]);
}

template <class Device>
Status group_normalization(OpContext<Device>& op) {
  return group_norm(op, op.integer("num_groups"));
}

// y = x / (bias + alpha / size * sum of squares over `size` neighboring channels) ^ beta
template <class Team>
struct LrnIndex {
  using C = typename Team::Value;
  const Team* team;
  int64_t size;
  C alpha, beta, bias;
  PX_HD C operator()(C x, int64_t location) const {
    // floor((size-1)/2) before, ceil((size-1)/2) after
    const int64_t first = location - (size - 1) / 2 < 0 ? 0 : location - (size - 1) / 2;
    const int64_t last = location + size / 2 < team->length() ? location + size / 2 : team->length() - 1;
    C sum = 0;
    for (int64_t i = first; i <= last; ++i) sum += team->in(i)*team->in(i);
    return x / std::pow(bias + alpha * sum, beta);
  }
};
template <class C>
struct LrnRow {
  static constexpr bool kEmitsOnce = true;
  int64_t size;
  C alpha, beta, bias;
  template <class Team>
  PX_HD void operator()(Team& team, int64_t) const {
    team.emit(LrnIndex<Team>{&team, size, alpha, beta, bias});
  }
};

template <class Device>
Status lrn(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  if (x.shape().rank() < 2) return wrong_input(op, 0, "have rank 2 or more");
  const int64_t size = op.integer("size");
  if (size < 1) return wrong_attribute("size", size, "be 1 or more");
  const RowLayout rows = rows_along(x.shape(), 1);
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), x.shape()));
  return visit_arithmetic<Floats>(x.dtype(), [&](auto zero) -> Status {
    using C = decltype(zero);
    const C alpha = static_cast<C>(op.real("alpha")) / static_cast<C>(size);
    const C beta = static_cast<C>(op.real("beta"));
    const C bias = static_cast<C>(op.real("bias"));
    const LrnRow<C> row{size, alpha, beta, bias};
    scan_rows<C, C>(op.queue(), row, rows, y, x.view(), 2 * std::min(size, x.shape()[1]) + 20);
    return {};
  });
}

// ---- MeanVarianceNormalization: (x - mean) / (deviation + 1e-9) over any axes ----

struct DeviationRow {
  template <class Team>
  PX_HD void operator()(Team& team, int64_t) const {
    const auto moments = moments_of(team);
    const double factor = 1.0 / (std::sqrt(moments.variance) + 1e-9);
    const LinearFromMean<double> centered{moments, factor, 0.0};
    team.emit_runs(team.length(), [=](int64_t) { return centered; });
  }
};

// A copy with the normalized axes last, its rows, and the way back.
template <class Device>
Status mean_variance_normalization(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const Ints axes = PX_TRY(OpCall::resolve_axes(op.find_integers("axes").value_or(Ints{0, 2, 3}), rank_of(x.shape())));
  const Ints dims(x.shape());
  const Ints strides = row_major_strides(dims);
  Ints walk, from;
  RowLayout rows;
  for (const bool normalized : {false, true}) {
    for (int64_t axis = 0; axis < dims.size(); ++axis) {
      if (axes.contains(axis) != normalized) continue;
      walk.push_back(dims[axis]);
      from.push_back(strides[axis]);
      (normalized ? rows.length : rows.outer) *= dims[axis];
    }
  }
  const int64_t bytes = element_bytes(x.dtype());
  const MutableView copy = PX_TRY(op.scratch(x.dtype(), shape_of(walk)));
  copy_strided(op.queue(), bytes, walk, {copy.data, row_major_strides(walk), 0}, {x.view().data, from, 0});
  scan_rows<double, double>(op.queue(), DeviationRow{}, rows, copy, TensorView(copy));
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), x.shape()));
  copy_strided(op.queue(), bytes, walk, {y.data, from, 0}, {copy.data, row_major_strides(walk), 0});
  return {};
}

// ---- Global pools: one row for each channel ----

struct PlaneNorm {  // in double: powers of many values span many magnitudes
  double p;
  template <class C>
  PX_HD C init() const {
    return C(0);
  }
  PX_HD double step(double a, double x) const { return a + std::pow(std::fabs(x), p); }
  PX_HD double merge(double a, double b) const { return a + b; }
  PX_HD double finish(double a, int64_t) const { return std::pow(a, 1.0 / p); }
};

template <class Device>
Result<MutableView> global_output(OpContext<Device>& op, RowLayout& rows) {
  const Tensor& x = op.input(0);
  const Ints dims(x.shape());
  if (dims.size() < 2) return wrong_input(op, 0, "have rank 2 or more");
  rows = RowLayout{dims[0] * dims[1], product(dims, 2, dims.size()), 1};
  Ints out{dims[0], dims[1]};
  while (out.size() < dims.size()) out.push_back(1);
  return op.make_output(0, x.dtype(), shape_of(out));
}

template <class Device, class Fold>
Status global_pool(OpContext<Device>& op) {
  RowLayout rows;
  const MutableView y = PX_TRY(global_output(op, rows));
  Tensor x = op.input(0);
  if constexpr (std::is_same_v<Device, Cpu>) {
    if (is_channels_last(x) && y.dtype == DType::float32) {
      const Ints dims(x.shape());
      fold_elements_channels_last(op.queue(), Fold{}, dims[0], product(dims, 2, dims.size() - 1), dims.back(), dims[1],
                                  reinterpret_cast<float*>(y.data), reinterpret_cast<const float*>(x.view().data));
      return {};
    }
    x = PX_TRY(to_row_major(op.queue(), x));
  }
  return visit_arithmetic<Floats>(y.dtype, [&](auto zero) -> Status {
    return fold_rows<decltype(zero)>(op.queue(), Fold{}, rows, y, x.view()), Status{};
  });
}

template <class Device>
Status global_lp_pool(OpContext<Device>& op) {
  RowLayout rows;
  const MutableView y = PX_TRY(global_output(op, rows));
  // Version 1 has a float for the power.
  const PlaneNorm norm{op.since_version() < 2 ? op.real("p") : static_cast<double>(op.find_integer("p").value_or(2))};
  return fold_rows<double>(op.queue(), norm, rows, y, op.input(0).view()), Status{};
}

template <class Device>
constexpr KernelRow<Device> kChannelNormRows[] = {
    {"BatchNormalization", kFloats, batch_normalization<Device>, 1, INT64_MAX, 0, Arguments::tensors, "ai.onnx",
     is_batch_inference},
    takes_channels_last<Device>({0}, {"GlobalAveragePool", kFloats, global_pool<Device, FoldMean>}),
    {"GlobalLpPool", kFloats, global_lp_pool<Device>},
    takes_channels_last<Device>({0}, {"GlobalMaxPool", kFloats, global_pool<Device, FoldMax>}),
    {"GroupNormalization", kFloats, group_normalization<Device>},
    {"InstanceNormalization", kFloats, instance_normalization<Device>},
    {"LRN", kFloats, lrn<Device>},
    {"MeanVarianceNormalization", kFloats, mean_variance_normalization<Device>},
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> channel_norm_rows() {
  return kChannelNormRows<CompiledDevice>;
}

}  // namespace parallax::runtime
