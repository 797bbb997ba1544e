// Normalisations with statistics of a channel: BatchNormalization, InstanceNormalization, GroupNormalization, LRN, MVN;
// and the global pools, which are folds over a channel's plane.
#include <cmath>

#include <fmt/format.h>

#include "runtime/device/gemm.h"
#include "runtime/device/map.h"
#include "runtime/device/math.h"
#include "runtime/device/rows.h"
#include "runtime/ops/families.h"

namespace parallax::runtime {
namespace {

template <class C>
struct ShiftedSum {
  C shift;
  bool squared;
  template <class T>
  C init() const {
    return C(0);
  }
  C step(C a, C x) const {
    const C difference = x - shift;
    return a + (squared ? difference * difference : difference);
  }
  C merge(C a, C b) const { return a + b; }
};

template <class C>
struct Moments {
  C mean;
  C variance;
};

template <class C>
Moments<C> moments_of(const C* values, int64_t count) {
  const C divisor = static_cast<C>(count);
  const C mean = rows_detail::fold_row<C>(ShiftedSum<C>{C(0), false}, values, count) / divisor;
  return {mean, rows_detail::fold_row<C>(ShiftedSum<C>{mean, true}, values, count) / divisor};
}

// y = x * factor + offset along a contiguous run
template <class C>
void scale_run(const C* x, C factor, C offset, C* y, int64_t count) {
  vectorised(0, count, [=](int64_t begin, int64_t end) {
    PX_INDEPENDENT_ITERATIONS
    for (int64_t i = begin; i < end; ++i) y[i] = x[i] * factor + offset;
  });
}

// The values of a [channels] input in C.
template <class C, class Device>
Result<std::vector<C>> per_channel(OpContext<Device>& op, int64_t input, int64_t channels) {
  const Tensor& tensor = op.input(input);
  if (tensor.element_count() != channels) {
    return execution_error(
        fmt::format("input {} must have {} values, its shape is {}", input, channels, tensor.shape().to_string()));
  }
  std::vector<C> values(static_cast<size_t>(channels));
  load_block<C>(tensor.dtype(), tensor.view().data, 0, 1, channels, values.data());
  return values;
}

template <class C, class Device>
Status batch_norm_as(OpContext<Device>& op, const MutableView& y) {
  const Tensor& x = op.input(0);
  const int64_t channels = x.shape().rank() > 1 ? x.shape()[1] : 1;
  const std::vector<C> scale = PX_TRY(per_channel<C>(op, 1, channels));
  const std::vector<C> bias = PX_TRY(per_channel<C>(op, 2, channels));
  const std::vector<C> mean = PX_TRY(per_channel<C>(op, 3, channels));
  const std::vector<C> variance = PX_TRY(per_channel<C>(op, 4, channels));
  const C epsilon = static_cast<C>(op.real("epsilon"));
  const Ints dims(x.shape());
  const RowLayout rows{x.shape()[0] * channels, product(dims, 2, dims.size()), 1};
  const auto row = [&](int64_t index, const C* in, C* out) {
    const auto channel = static_cast<size_t>(index % channels);
    const C factor = scale[channel] / std::sqrt(variance[channel] + epsilon);
    scale_run(in, factor, bias[channel] - mean[channel] * factor, out, rows.length);
  };
  scan_rows<C, C>(op.queue(), row, rows, y, x.view());
  return {};
}

template <class Device>
Status batch_normalization(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  if (op.find_integer("training_mode").value_or(0) != 0 ||
      (op.since_version() < 7 && op.find_integer("is_test").value_or(0) == 0)) {
    return unsupported("training mode has no kernel here; --fallback=reference runs it");
  }
  if (op.since_version() < 9 && op.find_integer("spatial").value_or(1) == 0) {
    return unsupported("statistics for each place have no kernel here; --fallback=reference runs it");
  }
  if (x.shape().rank() < 1) return execution_error("the input must have rank 1 or more");
  const MutableView y = PX_TRY(op.make_output_over(0, x.dtype(), x.shape(), {0}));
  return x.dtype() == DType::float64 ? batch_norm_as<double>(op, y) : batch_norm_as<float>(op, y);
}

bool is_batch_inference(const Node& node) {
  const Attribute* training = find_attribute(node, "training_mode");
  const auto* value = training == nullptr ? nullptr : std::get_if<int64_t>(&training->value);
  return value == nullptr || *value == 0;
}

// Rows of `groups` groups of channels, each normalised by its own moments; scale and bias for each channel or, before
// GroupNormalization-21, for each group.
template <class C, class Device>
Status group_norm_as(OpContext<Device>& op, int64_t groups, const MutableView& y) {
  const Tensor& x = op.input(0);
  const int64_t channels = x.shape()[1];
  const bool by_group = op.input(1).element_count() == groups && groups != channels;
  const std::vector<C> scale = PX_TRY(per_channel<C>(op, 1, by_group ? groups : channels));
  const std::vector<C> bias = PX_TRY(per_channel<C>(op, 2, by_group ? groups : channels));
  const C epsilon = static_cast<C>(op.real("epsilon"));
  const Ints dims(x.shape());
  const int64_t plane = product(dims, 2, dims.size());
  const int64_t per_group = channels / groups;
  const RowLayout rows{x.shape()[0] * groups, per_group * plane, 1};
  if (rows.length == 0) return {};
  const auto row = [&](int64_t index, const C* in, C* out) {
    const Moments<C> moments = moments_of(in, rows.length);
    const C inverse = C(1) / std::sqrt(moments.variance + epsilon);
    for (int64_t i = 0; i < per_group; ++i) {
      const int64_t group = index % groups;
      const auto parameter = static_cast<size_t>(by_group ? group : group * per_group + i);
      const C factor = scale[parameter] * inverse;
      scale_run(in + i * plane, factor, bias[parameter] - moments.mean * factor, out + i * plane, plane);
    }
  };
  scan_rows<C, C>(op.queue(), row, rows, y, x.view(), 3);
  return {};
}

template <class Device>
Status group_norm(OpContext<Device>& op, int64_t groups) {
  const Tensor& x = op.input(0);
  if (x.shape().rank() < 2 || groups < 1 || x.shape()[1] % groups != 0) {
    return execution_error(fmt::format("input {} has no {} groups of channels", x.shape().to_string(), groups));
  }
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), x.shape()));
  return x.dtype() == DType::float64 ? group_norm_as<double>(op, groups, y) : group_norm_as<float>(op, groups, y);
}

template <class Device>
Status instance_normalization(OpContext<Device>& op) {
  return group_norm(op, op.input(0).shape().rank() < 2 ? 1 : op.input(0).shape()[1]);
}

template <class Device>
Status group_normalization(OpContext<Device>& op) {
  return group_norm(op, op.integer("num_groups"));
}

// y = x / (bias + alpha / size * sum of squares over `size` neighbouring channels) ^ beta
template <class Device>
Status lrn(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  if (x.shape().rank() < 2) return execution_error("the input must have rank 2 or more");
  const int64_t size = op.integer("size");
  const RowLayout rows = rows_along(x.shape(), 1);
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), x.shape()));
  return visit_arithmetic<Floats>(x.dtype(), [&](auto zero) -> Status {
    using C = decltype(zero);
    const C alpha = static_cast<C>(op.real("alpha")) / static_cast<C>(size);
    const C beta = static_cast<C>(op.real("beta"));
    const C bias = static_cast<C>(op.real("bias"));
    const auto row = [&](int64_t, const C* in, C* out) {
      for (int64_t c = 0; c < rows.length; ++c) {
        C sum = 0;
        const int64_t last =
            std::min(rows.length - 1, c + size / 2);  // floor((size-1)/2) before, ceil((size-1)/2) behind
        for (int64_t i = std::max<int64_t>(0, c - (size - 1) / 2); i <= last; ++i) sum += in[i] * in[i];
        out[c] = in[c] / std::pow(bias + alpha * sum, beta);
      }
    };
    scan_rows<C, C>(op.queue(), row, rows, y, x.view(), 2 * size + 20);
    return {};
  });
}

// ---- MeanVarianceNormalization: (x - mean) / (deviation + 1e-9) over any axes ----

template <class C, class Device>
Status mean_variance_as(OpContext<Device>& op, const Ints& axes, const MutableView& y) {
  const Tensor& x = op.input(0);
  const Ints dims(x.shape());
  Ints kept_strides(dims.size());  // of the statistics: 0 along normalised axes
  int64_t kept = 1;
  for (int64_t axis = dims.size() - 1; axis >= 0; --axis) {
    if (axes.contains(axis)) continue;
    kept_strides[axis] = kept;
    kept *= dims[axis];
  }
  const auto group_of = [&](int64_t element) {
    int64_t group = 0;
    for (int64_t axis = dims.size() - 1; axis >= 0; --axis) {
      group += element % dims[axis] * kept_strides[axis];
      element /= dims[axis];
    }
    return group;
  };
  std::vector<double> mean(static_cast<size_t>(kept)), variance(static_cast<size_t>(kept));
  const double count = static_cast<double>(x.element_count()) / static_cast<double>(std::max<int64_t>(1, kept));
  for (int64_t i = 0; i < x.element_count(); ++i) {
    mean.data()[group_of(i)] += load_element<double>(x.dtype(), x.view().data, i) / count;
  }
  for (int64_t i = 0; i < x.element_count(); ++i) {
    const double difference = load_element<double>(x.dtype(), x.view().data, i) - mean.data()[group_of(i)];
    variance.data()[group_of(i)] += difference * difference / count;
  }
  for (int64_t i = 0; i < x.element_count(); ++i) {
    const int64_t group = group_of(i);
    const double value = (load_element<double>(x.dtype(), x.view().data, i) - mean.data()[group]) /
                         (std::sqrt(variance.data()[group]) + 1e-9);
    const C result = static_cast<C>(value);
    store_block<C>(y.dtype, y.data, i, 1, &result);
  }
  return {};
}

template <class Device>
Status mean_variance_normalization(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const Ints axes = PX_TRY(OpCall::resolve_axes(op.find_integers("axes").value_or(Ints{0, 2, 3}), rank_of(x.shape())));
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), x.shape()));
  return x.dtype() == DType::float64 ? mean_variance_as<double>(op, axes, y) : mean_variance_as<float>(op, axes, y);
}

// ---- Global pools: one row for each channel ----

template <class C, class F, class Device>
Status global_as(OpContext<Device>& op, const F& f) {
  const Tensor& x = op.input(0);
  const Ints dims(x.shape());
  if (dims.size() < 2) return execution_error("the input must have rank 2 or more");
  const RowLayout rows{dims[0] * dims[1], product(dims, 2, dims.size()), 1};
  Ints out{dims[0], dims[1]};
  while (out.size() < dims.size()) out.push_back(1);
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), shape_of(out)));
  parallel_for(rows.row_count(), rows.length, [&](int64_t begin, int64_t end) {
    std::vector<C> buffer;
    for (int64_t row = begin; row < end; ++row) {
      const C value = f(load_row<C>(x, rows, row, buffer), rows.length);
      store_block<C>(y.dtype, y.data, row, 1, &value);
    }
  });
  return {};
}

struct PlaneMean {
  template <class C>
  C operator()(const C* values, int64_t count) const {
    return rows_detail::fold_row<C>(ShiftedSum<C>{C(0), false}, values, count) / static_cast<C>(count);
  }
};
struct PlaneMax {
  template <class C>
  C operator()(const C* values, int64_t count) const {
    C best = -std::numeric_limits<C>::infinity();
    for (int64_t i = 0; i < count; ++i) best = math::maximum(best, values[i]);
    return best;
  }
};

template <class Device, class F>
Status global_pool(OpContext<Device>& op) {
  return op.input(0).dtype() == DType::float64 ? global_as<double>(op, F{}) : global_as<float>(op, F{});
}

template <class Device>
Status global_lp_pool(OpContext<Device>& op) {
  const double p = static_cast<double>(op.find_integer("p").value_or(2));
  const auto norm = [p](const auto* values, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += std::pow(std::fabs(static_cast<double>(values[i])), p);
    return static_cast<std::remove_const_t<std::remove_pointer_t<decltype(values)>>>(std::pow(sum, 1.0 / p));
  };
  return op.input(0).dtype() == DType::float64 ? global_as<double>(op, norm) : global_as<float>(op, norm);
}

template <class Device>
constexpr KernelRow<Device> kRows[] = {
    {"BatchNormalization", kFloats, batch_normalization<Device>, 1, INT64_MAX, 0, Arguments::tensors, "ai.onnx",
     is_batch_inference},
    {"GlobalAveragePool", kFloats, global_pool<Device, PlaneMean>},
    {"GlobalLpPool", kFloats, global_lp_pool<Device>, 2},
    {"GlobalMaxPool", kFloats, global_pool<Device, PlaneMax>},
    {"GroupNormalization", kFloats, group_normalization<Device>},
    {"InstanceNormalization", kFloats, instance_normalization<Device>, 6},
    {"LRN", kFloats, lrn<Device>},
    {"MeanVarianceNormalization", kFloats, mean_variance_normalization<Device>},
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> channel_norm_rows() {
  return kRows<CompiledDevice>;
}

}  // namespace parallax::runtime
