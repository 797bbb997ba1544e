// SPDX-License-Identifier: Apache-2.0
// BatchNormalization in training, and with statistics for each element of a sample (attribute spatial = 0): what
// channel_norm.cpp, which has the statistics of a channel given, leaves out.
#include <cmath>

#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/copy.h"
#include "runtime/device/cpu/map.h"
#include "runtime/device/cpu/products/gemm.h"
#include "runtime/device/cpu/rows/rows.h"
#include "runtime/device/cpu/tabulate.h"
#include "runtime/ops/families.h"
#include "runtime/ops/row_folds.h"

namespace parallax::runtime {
namespace {

// A row for each channel: all its values of all samples. Where the moments are given, they are not those of the row.
template <class Device, class C>
struct ChannelRow {
  C epsilon;
  bool training;
  Elements<Device, const C> scale, bias;
  Elements<Device, C> mean, variance;

  template <class Team>
  PX_HD void operator()(Team& team, int64_t channel) const {
    Moments<C> moments{C(0), C(0), C(0)};
    if (training) {
      moments = moments_of(team);
      team.store(Target{reinterpret_cast<std::byte*>(mean.data), storage_of<C>()}, channel, moments.mean);
      team.store(Target{reinterpret_cast<std::byte*>(variance.data), storage_of<C>()}, channel, moments.variance);
    } else {
      moments = {mean[channel], variance[channel], C(0)};
    }
    const C factor = scale[channel] / std::sqrt(moments.variance + epsilon);
    team.emit(LinearFromMean<C>{moments, factor, bias[channel]});
  }
};

template <class C>
struct RunningMean {  // running * momentum + current * (1 - momentum)
  C momentum;
  PX_HD C operator()(C running, C current) const { return running * momentum + current * (C(1) - momentum); }
};

// Outputs 1 and 2 are the running moments; 3 and 4, which early versions have, those of the batch.
template <class C, class Device>
Status store_moments(OpContext<Device>& op, const MutableView (&moments)[2]) {
  const RunningMean<C> running{static_cast<C>(op.real("momentum"))};
  for (const int64_t which : {0, 1}) {
    const Tensor& given = op.input(3 + which);
    const TensorView current(moments[which]);
    if (op.wants_output(1 + which)) {
      const MutableView out = PX_TRY(op.make_output(1 + which, given.dtype(), given.shape()));
      map_as<C, C>(op.queue(), running, out, std::array<TensorView, 2>{given.view(), current});
    }
    if (op.wants_output(3 + which)) {
      const MutableView out = PX_TRY(op.make_output(3 + which, given.dtype(), given.shape()));
      map_as<C, C>(op.queue(), Same{}, out, std::array<TensorView, 1>{current});
    }
  }
  return {};
}

struct BatchShape {
  int64_t samples = 0, channels = 0, inner = 0;
  bool training = false;
};

// Version 14 says whether it trains, versions 7 and 9 by the outputs that are wanted, earlier ones by is_test.
Result<BatchShape> batch_shape(const OpCall& op) {
  const Ints dims(op.input(0).shape());
  if (dims.empty()) return wrong_input(op, 0, "have rank 1 or more");
  BatchShape shape;
  const int64_t version = op.since_version();
  const bool by_element = version < 9 && op.find_integer("spatial").value_or(1) == 0;
  const int64_t first_inner = by_element ? dims.size() : std::min<int64_t>(2, dims.size());
  shape.samples = dims[0];
  shape.channels = product(dims, 1, first_inner);
  shape.inner = product(dims, first_inner, dims.size());
  shape.training = version >= 14  ? op.integer("training_mode") != 0
                   : version >= 7 ? op.wants_output(1)
                                  : op.find_integer("is_test").value_or(0) == 0;
  for (int64_t input = 1; input < 5; ++input) {
    if (op.input(input).element_count() != shape.channels)
      return wrong_input(op, input, "have {} elements, one for each channel", shape.channels);
  }
  return shape;
}

template <class C, class Device>
Status normalize_batch(OpContext<Device>& op, const BatchShape& shape) {
  const Tensor& x = op.input(0);
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), x.shape()));
  const auto scale = PX_TRY(converted<C>(op.queue(), op.input(1).view(), op.is_constant(1)));
  const auto bias = PX_TRY(converted<C>(op.queue(), op.input(2).view(), op.is_constant(2)));
  const Shape channel_shape = op.input(3).shape();
  const MutableView moments[] = {PX_TRY(op.scratch(storage_of<C>(), channel_shape)),
                                 PX_TRY(op.scratch(storage_of<C>(), op.input(4).shape()))};
  for (const int64_t which : {0, 1}) {
    map_as<C, C>(op.queue(), Same{}, moments[which], std::array<TensorView, 1>{op.input(3 + which).view()});
  }
  // A copy with the channels in front.
  const Ints dims{shape.channels, shape.samples, shape.inner};
  const Ints strides{shape.inner, shape.channels * shape.inner, 1};
  const int64_t bytes = element_bytes(x.dtype());
  const MutableView permuted = PX_TRY(op.scratch(x.dtype(), shape_of(dims)));
  copy_strided(op.queue(), bytes, dims, {permuted.data, row_major_strides(dims), 0}, {x.view().data, strides, 0});
  const ChannelRow<Device, C> row{static_cast<C>(op.real("epsilon")),
                                  shape.training,
                                  {scale.get()},
                                  {bias.get()},
                                  {reinterpret_cast<C*>(moments[0].data)},
                                  {reinterpret_cast<C*>(moments[1].data)}};
  const RowLayout rows{shape.channels, shape.samples * shape.inner, 1};
  if (rows.length > 0) scan_rows<C, C>(op.queue(), row, rows, permuted, TensorView(permuted), 4);
  copy_strided(op.queue(), bytes, dims, {y.data, strides, 0}, {permuted.data, row_major_strides(dims), 0});
  return shape.training ? store_moments<C>(op, moments) : Status{};
}

template <class Device>
Status batch_statistics(OpContext<Device>& op) {
  const BatchShape shape = PX_TRY(batch_shape(op));
  return op.input(0).dtype() == DType::float64 ? normalize_batch<double>(op, shape) : normalize_batch<float>(op, shape);
}

template <class Device>
constexpr KernelRow<Device> kBatchStatisticsRows[] = {
    {"BatchNormalization", kFloats, batch_statistics<Device>},
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> batch_statistics_rows() {
  return kBatchStatisticsRows<CompiledDevice>;
}

}  // namespace parallax::runtime
